import torch

def main():
    print("not CUDA")
