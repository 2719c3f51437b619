// Calls the functions of places.h: places ROW GATE UNIT STATE_SIZE BLOCK THREADS THREAD, any number of times.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "places.h"

constexpr int kNumbers = 7;  // in a question

// One thread per question: writes three answers.
__global__ void places_kernel(int64_t* answers, const int* questions, int count) {  // [count,3], [count,7]
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  const int* asked = questions + k * kNumbers;
  answers[k * 3] = place_of(asked[0], asked[1], asked[2], asked[3]);
  answers[k * 3 + 1] = number_of(asked[4], asked[5], asked[6]);
  answers[k * 3 + 2] = blocks_for(asked[0] + 1, asked[3], asked[5]);
}

int main(int words_count, char** words) {
  const int count = (words_count - 1) / kNumbers;
  int64_t* answers;
  int* questions;
  cudaMallocManaged(&answers, count * 3 * sizeof(int64_t));
  cudaMallocManaged(&questions, count * kNumbers * sizeof(int));
  for (int k = 0; k < count * kNumbers; ++k) questions[k] = std::atoi(words[1 + k]);

  places_kernel<<<(count + 63) / 64, 64>>>(answers, questions, count);
  cudaDeviceSynchronize();

  for (int k = 0; k < count * 3; ++k) std::printf("%lld\n", static_cast<long long>(answers[k]));
  cudaFree(answers);
  cudaFree(questions);
}
