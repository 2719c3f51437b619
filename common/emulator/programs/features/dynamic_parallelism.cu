// Language: kernels that launch kernels (dynamic parallelism), also as tail launches
// Support: approximate: a kernel starts when the kernel that launched it has ended
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

// Sorts by halves: each half by a kernel of its own, then both are merged by a kernel that runs after them.
__global__ void merge(int* values, int count) {
  const int half = count / 2;
  for (int i = half; i < count; i++) {  // insertion is enough here
    const int value = values[i];
    int at = i;
    for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
    values[at] = value;
  }
}

__global__ void sort(int* values, int count) {
  if (count < 2) return;
  const int half = count / 2;
  sort<<<1, 1, 0, cudaStreamFireAndForget>>>(values, half);
  sort<<<1, 1, 0, cudaStreamFireAndForget>>>(values + half, count - half);
  merge<<<1, 1, 0, cudaStreamTailLaunch>>>(values, count);
}

// A block prepares its part, one thread of it launches the work on this part.
__global__ void square(float* part) { part[threadIdx.x] *= part[threadIdx.x]; }
__global__ void add_one(float* part) { part[threadIdx.x] += 1; }

__global__ void prepare(float* values) {
  float* part = values + blockIdx.x * blockDim.x;
  part[threadIdx.x] = float(threadIdx.x + blockIdx.x);
  __syncthreads();
  if (threadIdx.x > 0) return;
  square<<<1, blockDim.x>>>(part);
  add_one<<<1, blockDim.x>>>(part);  // after it: both are in the default stream of the block
}

// Streams that a kernel creates, and templates.
template <typename T, int N>
__global__ void fill(T* values, T value) {
  if (threadIdx.x < N) values[threadIdx.x] = value;
}
__global__ void fill_both(double* values) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  fill<double, 4><<<1, 32, 0, stream>>>(values, 1.0);
  fill<double, 4><<<1, 32>>>(values + 4, 2.0);
  cudaStreamDestroy(stream);
}

// A device function may launch a kernel, too.
__device__ void count_down(int* counter);
__global__ void step(int* counter) {
  if (*counter > 0) count_down(counter);
}
__device__ void count_down(int* counter) {
  *counter -= 1;
  step<<<1, 1>>>(counter);
}

static int wrong = 0;

static void expect(const char* what, double got, double expected) {
  if (got == expected) return;
  fprintf(stderr, "%s: got %g, expected %g\n", what, got, expected);
  wrong++;
}

template <typename T>
static std::vector<T> from_device(const T* memory, size_t count) {
  std::vector<T> values(count);
  if (cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost) != cudaSuccess) wrong++;
  return values;
}

int main() {
  const std::vector<int> numbers = {5, 3, 9, 1, 7, 8, 2, 6, 4, 0, 11, 10};
  int* values;
  cudaMalloc(&values, numbers.size() * sizeof(int));
  cudaMemcpy(values, numbers.data(), numbers.size() * sizeof(int), cudaMemcpyHostToDevice);
  sort<<<1, 1>>>(values, int(numbers.size()));
  const auto sorted = from_device(values, numbers.size());
  for (size_t i = 0; i < sorted.size(); i++) expect("sorted", sorted[i], double(i));

  float* parts;
  cudaMalloc(&parts, 3 * 8 * sizeof(float));
  prepare<<<3, 8>>>(parts);
  const auto squares = from_device(parts, 3 * 8);
  for (int i = 0; i < 3 * 8; i++) expect("square", squares[i], (i % 8 + i / 8) * (i % 8 + i / 8) + 1);

  double* both;
  cudaMalloc(&both, 8 * sizeof(double));
  fill_both<<<1, 1>>>(both);
  const auto filled = from_device(both, 8);
  for (int i = 0; i < 8; i++) expect("filled", filled[i], i < 4 ? 1 : 2);

  int* counter;
  const int start = 10;
  cudaMalloc(&counter, sizeof(int));
  cudaMemcpy(counter, &start, sizeof(int), cudaMemcpyHostToDevice);
  step<<<1, 1>>>(counter);
  expect("counter", from_device(counter, 1)[0], 0);

  cudaFree(values);
  cudaFree(parts);
  cudaFree(both);
  cudaFree(counter);
  return wrong != 0;
}
