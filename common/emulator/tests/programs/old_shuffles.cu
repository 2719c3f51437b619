// Sums and votes with the functions that have no mask, as on devices before Volta.
#include <cstdio>

__global__ void sum(const float* x, float* out, int* votes) {
  float value = x[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down(value, step);
  const float total = __shfl(value, 0);
  const int lower = __shfl_up(int(threadIdx.x), 1), other = __shfl_xor(int(threadIdx.x), 1);
  const bool is_right = lower == int(threadIdx.x) - (threadIdx.x > 0) && other == (int(threadIdx.x) ^ 1);
  if (threadIdx.x < 16) votes[0] = __ballot(threadIdx.x % 2);  // only the lanes of this branch
  const int all = __all(is_right), any = __any(threadIdx.x == 31);
  if (threadIdx.x == 0) {
    *out = total;
    votes[1] = all + any;
  }
}

int main() {
  float x[32], *d_x, *out, result;
  int *votes, counted[2];
  for (int i = 0; i < 32; i++) x[i] = float(i);
  cudaMalloc(&d_x, sizeof(x));
  cudaMalloc(&out, sizeof(float));
  cudaMalloc(&votes, sizeof(counted));
  cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice);
  sum<<<1, 32>>>(d_x, out, votes);
  cudaMemcpy(&result, out, sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(counted, votes, sizeof(counted), cudaMemcpyDeviceToHost);
  std::printf("%g %x %d\n", result, unsigned(counted[0]), counted[1]);
  cudaFree(d_x);
  cudaFree(out);
  cudaFree(votes);
}
