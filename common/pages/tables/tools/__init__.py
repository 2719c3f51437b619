"""Tables of what tools say of kernels: compute-sanitizer and Nsight Compute."""
