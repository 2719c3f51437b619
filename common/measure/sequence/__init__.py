"""Times whole sequences: stage 7's rungs beside loops, CUDA graphs, torch.compile and cuDNN, in the same run."""
