// Libraries: cuBLASLt (cublasLt.h can be included)
// Support: refused: the emulator does not support cublasLtMatmul
#include <cublasLt.h>

#include <cstdio>

int main() {
  cublasLtHandle_t handle;
  if (cublasLtCreate(&handle)) return fprintf(stderr, "there is no handle\n"), 1;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  float one = 1, *matrix = nullptr;
  return cublasLtMatmul(handle, description, &one, matrix, layout, matrix, layout, &one, matrix, layout,
                        matrix, layout, nullptr, nullptr, 0, nullptr) != CUBLAS_STATUS_SUCCESS;
}
