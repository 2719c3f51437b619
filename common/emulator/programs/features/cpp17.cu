// Language: C++17, also with functions of the program whose names C++20 adds to std
// Support: yes
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <tuple>
#include <type_traits>

using namespace std;

static_assert(__cplusplus == 201703L);

// In C++20 these would be ambiguous, or conflict with std::lerp.
__host__ __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
__host__ __device__ float midpoint(float a, float b) { return (a + b) / 2; }
__host__ __device__ int popcount(unsigned bits) {
  int count = 0;
  for (; bits; bits &= bits - 1) count++;
  return count;
}

template <typename... Numbers>
__host__ __device__ auto add(Numbers... numbers) {
  return (numbers + ...);
}

struct Pair {
  int first, second;
};

template <typename T>
__global__ void compute(T* out) {
  const int i = threadIdx.x;
  const auto [first, second] = Pair{i, 2 * i};
  if constexpr (is_floating_point_v<T>)
    out[i] = add(lerp(first, second, 0.5f), midpoint(first, second));
  else
    out[i] = add(first, second, popcount(unsigned(i)));
}

template <typename T, typename Expected>
bool is_right(const char* type, Expected expected) {
  constexpr int kThreads = 32;
  T *d_out, out[kThreads];
  cudaMalloc(&d_out, sizeof(out));
  compute<<<1, kThreads>>>(d_out);
  cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost);
  cudaFree(d_out);
  for (int i = 0; i < kThreads; i++)
    if (out[i] != expected(i)) {
      fprintf(stderr, "%s out[%d]: got %g, expected %g\n", type, i, double(out[i]), double(expected(i)));
      return false;
    }
  return true;
}

int main() {
  const bool floats = is_right<float>("float", [](int i) { return 3.0f * i; });
  const bool ints = is_right<int>("int", [](int i) { return 3 * i + popcount(unsigned(i)); });
  return floats && ints ? 0 : 1;
}
