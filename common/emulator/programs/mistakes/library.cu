// C library functions in kernels: copies, and the heap of the device.
#include "case.h"

// ---- memcpy, memset

__global__ void copy_rows(float* out, const float* x, int bytes) {
  memcpy(out + 8 * threadIdx.x, x, bytes);  // BUG memory: x
}
CASE(wrong_length_of_a_copy) {
  copy_rows<<<1, 4>>>(unwritten<float>(40), zeros<float>(8), 9 * sizeof(float));
}

__global__ void clear_rows(float* out, int bytes) {
  memset(out + 8 * threadIdx.x, 0, bytes);  // BUG memory: out
}
CASE(wrong_length_of_a_memset) { clear_rows<<<1, 4>>>(unwritten<float>(28), 8 * sizeof(float)); }

__global__ void copy_unwritten(float* out, const float* x) {
  float four[4];
  memcpy(four, x + 4 * threadIdx.x, sizeof(four));  // BUG initialisation: x
  out[threadIdx.x] = four[0] + four[3];
}
CASE(wrong_copy_of_unwritten_memory) { copy_unwritten<<<1, 4>>>(unwritten<float>(4), unwritten<float>(16)); }

__global__ void copies(float* out, const float* x) {
  float four[4];
  memcpy(four, x + 4 * threadIdx.x, sizeof(four));
  memset(out + 4 * threadIdx.x, 0, 3 * sizeof(float));
  memcpy(out + 4 * threadIdx.x + 3, &four[3], sizeof(float));
}
CASE(right_copies) {
  float* out = unwritten<float>(16);
  copies<<<1, 4>>>(out, numbers<float>(16));
  expect_each(out, 16, [](int i) { return i % 4 == 3 ? i : 0; });
}

__global__ void clear_rows_right(float* out, int bytes) { memset(out + 8 * threadIdx.x, 0, bytes); }
CASE(right_memset) {
  float* out = unwritten<float>(32);
  clear_rows_right<<<1, 4>>>(out, 8 * sizeof(float));
  expect_each(out, 32, [](int) { return 0; });
}

// ---- malloc, free, new, delete

__global__ void squares(int* out, int n) {
  int* squares = static_cast<int*>(malloc(n * sizeof(int)));
  for (int i = 0; i <= n; i++) squares[i] = i * i;  // BUG memory: malloc
  out[threadIdx.x] = squares[threadIdx.x];
  free(squares);
}
CASE(wrong_end_of_a_block) { squares<<<1, 4>>>(unwritten<int>(4), 7); }

__global__ void squares_right(int* out, int n) {
  int* squares = static_cast<int*>(malloc(n * sizeof(int)));
  for (int i = 0; i < n; i++) squares[i] = i * i;
  out[threadIdx.x] = squares[threadIdx.x];
  free(squares);
}
CASE(right_block) {
  int* out = unwritten<int>(4);
  squares_right<<<1, 4>>>(out, 7);
  expect_each(out, 4, [](int i) { return i * i; });
}

__global__ void read_new(int* out) {
  int* numbers = new int[4];
  numbers[0] = 1;
  out[threadIdx.x] = numbers[threadIdx.x];  // BUG initialisation: malloc
  delete[] numbers;
}
CASE(wrong_new_is_not_zero) { read_new<<<1, 4>>>(unwritten<int>(4)); }

__global__ void write_new(int* out) {
  int* numbers = new int[4];
  for (int i = 0; i < 4; i++) numbers[i] = i;
  out[threadIdx.x] = numbers[threadIdx.x];
  delete[] numbers;
}
CASE(right_new) {
  int* out = unwritten<int>(4);
  write_new<<<1, 4>>>(out);
  expect_each(out, 4, [](int i) { return i; });
}

struct Node {
  Node* next;
  int value;
  __device__ explicit Node(int v) : next(nullptr), value(v) {}
  __device__ ~Node() { value = -1; }
};

__global__ void keep_deleted(int* out) {
  Node* node = new Node(3);
  delete node;
  out[threadIdx.x] = node->value;  // BUG memory: malloc
}
CASE(wrong_use_of_what_was_deleted) { keep_deleted<<<1, 2>>>(unwritten<int>(2)); }

__global__ void free_twice(int* out) {
  int* block = static_cast<int*>(malloc(64));
  free(block);
  if (threadIdx.x == 1) free(block);  // BUG memory: malloc
  out[threadIdx.x] = 1;
}
CASE(wrong_second_free) { free_twice<<<1, 2>>>(unwritten<int>(2)); }

__global__ void free_once(int* out) {
  int* block = static_cast<int*>(malloc(64));
  int* none = nullptr;
  free(none);
  delete none;
  out[threadIdx.x] = block != none;
  free(block);
}
CASE(right_free) {
  int* out = unwritten<int>(2);
  free_once<<<1, 2>>>(out);
  expect_each(out, 2, [](int) { return 1; });
}

__device__ Node* list;
__global__ void build(int n) {
  for (int i = 0; i < n; i++) {
    Node* node = new Node(i);
    node->next = list;
    list = node;
  }
}
__global__ void take_apart(int* sum) {
  while (list) {
    *sum += list->value;
    Node* next = list->next;
    delete list;
    list = next;
  }
  Node* many = new Node[2]{Node(10), Node(20)};
  *sum += many[1].value;
  delete[] many;
}
CASE(right_list_over_two_kernels) {
  int* sum = zeros<int>(1);
  build<<<1, 1>>>(5);
  take_apart<<<1, 1>>>(sum);
  expect_one(sum, 30);
}

// ---- variables at file scope

__constant__ float weights[4] = {1, 2, 3, 4};
__device__ volatile int lock;
__device__ int count = 3, *where_to;
template <typename T>
__device__ T zero_of = 0;

__global__ void weigh(float* out, int n) {
  out[threadIdx.x] = weights[threadIdx.x % n];  // BUG memory: weights
}
CASE(wrong_length_of_a_constant) { weigh<<<1, 8>>>(unwritten<float>(8), 5); }

__global__ void weigh_right(float* out, int n) { out[threadIdx.x] = weights[threadIdx.x % n]; }
CASE(right_constant) {
  float* out = unwritten<float>(8);
  weigh_right<<<1, 8>>>(out, 4);
  expect_each(out, 8, [](int i) { return i % 4 + 1; });
}

__global__ void use_variables(int* out) {
  if (threadIdx.x == 0) {
    where_to = out;
    lock = 1;
  }
  __syncthreads();
  where_to[threadIdx.x] = count + lock + int(weights[threadIdx.x]) + zero_of<int>;
}
CASE(right_variables) {
  int* out = unwritten<int>(4);
  use_variables<<<1, 4>>>(out);
  expect_each(out, 4, [](int i) { return 5 + i; });
}

int main(int words, char** word) { return run_cases(words, word); }
