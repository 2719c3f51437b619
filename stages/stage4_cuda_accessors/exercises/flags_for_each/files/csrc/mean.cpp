#include <torch/csrc/utils/pybind.h>

void mean_on_gpu(float* out, const float* x, int rows, int cols);  // in mean_kernel.cu

// The mean of each row of x (rows, cols), on the CPU by OpenMP.
void mean_on_cpu(float* out, const float* x, int rows, int cols) {
#pragma omp parallel for
  for (int row = 0; row < rows; row++) {
    float sum = 0;
    for (int col = 0; col < cols; col++) sum += x[row * cols + col];
    out[row] = sum / cols;
  }
}

// Addresses come as numbers, so that this file shows flags and nothing else.
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("mean", [](uintptr_t out, uintptr_t x, int rows, int cols, bool on_gpu) {
    auto* mean = on_gpu ? mean_on_gpu : mean_on_cpu;
    mean(reinterpret_cast<float*>(out), reinterpret_cast<const float*>(x), rows, cols);
  });
}
