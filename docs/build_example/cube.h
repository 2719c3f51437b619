#pragma once

// Replaces *x by its cube, on the GPU. Returns CUDA's message when that fails, else nullptr.
const char* cube_on_gpu(float* x);
