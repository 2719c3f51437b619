// Runs the kernels of lengths.cuh: sequence T B S X... WEIGHTS... H0... GRAD_OUTPUTS... LENGTHS...
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "lengths.cuh"

// Memory for `size` numbers. The first `given` are read from the command line.
template <typename number_t>
number_t* numbers(int size, int given, char**& words) {
  number_t* x;
  cudaMallocManaged(&x, size * sizeof(number_t));
  for (int k = 0; k < given; ++k) x[k] = number_t(std::atof(*words++));
  return x;
}

void print(const float* x, int size) {
  for (int k = 0; k < size; ++k) std::printf("%.9g\n", x[k]);
}

int main(int, char** words) {
  const int T = std::atoi(words[1]), B = std::atoi(words[2]), S = std::atoi(words[3]);
  words += 4;
  const int state = B * S, all = T * state;
  float *x = numbers<float>(all, all, words), *weights = numbers<float>(S * S, S * S, words);
  float *h0 = numbers<float>(state, state, words), *grad_outputs = numbers<float>(all, all, words);
  int* lengths = numbers<int>(B, B, words);
  float *outputs = numbers<float>(all, 0, words), *d_x = numbers<float>(all, 0, words);
  float* d_h0 = numbers<float>(state, 0, words);

  const dim3 threads(S, B);
  forward_kernel<<<1, threads, 2 * state * sizeof(float)>>>(outputs, x, weights, h0, lengths, T);
  backward_kernel<<<1, threads, state * sizeof(float)>>>(d_x, d_h0, grad_outputs, outputs, weights, lengths,
                                                         T);
  cudaDeviceSynchronize();

  print(outputs, all);
  print(d_x, all);
  print(d_h0, state);
  for (float* memory : {x, weights, h0, grad_outputs, outputs, d_x, d_h0}) cudaFree(memory);
  cudaFree(lengths);
}
