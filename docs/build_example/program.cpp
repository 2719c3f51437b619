// A program without Python.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sum.h>

#include <cstdint>
#include <iostream>

int main() { std::cout << "0 + 1 + ... + 9 = " << at::arange(10).sum().item<int64_t>() << '\n'; }
