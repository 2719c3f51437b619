"""The emulator: CUDA kernels on the CPU, from the same sources."""
