// Device code: malloc, free, new and delete in kernels
// Support: yes
#include <cuda_runtime.h>

#include <cstdio>

struct Node {
  int value;
  Node* next;
  __device__ Node(int value_, Node* next_) : value(value_), next(next_) {}
};

__device__ Node* heads[8];

__global__ void build(int count) {
  Node* head = nullptr;
  for (int i = 1; i <= count; i++) head = new Node(i * (threadIdx.x + 1), head);
  heads[threadIdx.x] = head;
}

__global__ void sum_and_free(int* sums, int count) {
  int* values = static_cast<int*>(malloc(count * sizeof(int)));
  int length = 0;
  for (Node* node = heads[threadIdx.x]; node;) {
    Node* next = node->next;
    values[length++] = node->value;
    delete node;
    node = next;
  }
  int* copy = new int[length];
  memcpy(copy, values, length * sizeof(int));
  int sum = 0;
  for (int i = 0; i < length; i++) sum += copy[i];
  delete[] copy;
  free(values);
  sums[threadIdx.x] = sum;
}

int main() {
  constexpr int threads = 8, count = 10;
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 8 << 20);
  int *sums, results[threads];
  cudaMalloc(&sums, sizeof(results));
  build<<<1, threads>>>(count);
  sum_and_free<<<1, threads>>>(sums, count);
  cudaMemcpy(results, sums, sizeof(results), cudaMemcpyDeviceToHost);
  cudaFree(sums);
  for (int i = 0; i < threads; i++) {
    const int expected = count * (count + 1) / 2 * (i + 1);
    if (results[i] != expected)
      return fprintf(stderr, "sum %d: got %d, expected %d\n", i, results[i], expected), 1;
  }
  return 0;
}
