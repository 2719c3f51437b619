#include <cuda_runtime.h>
#include <helper_cuda.h>
int main() {}
