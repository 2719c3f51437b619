// Shared code of the programs in this folder. A program runs the cases whose names are its arguments; without
// arguments it lists its cases. A case includes the kernels between the previous case and itself:
//
//   wrong_...   contains a mistake, on the lines marked `// BUG check: array`; a race may have two such lines
//   warned_...  does what GPUs allow but authors rarely intend; its lines are marked `// WARNING check`
//   right_...   looks like one of those but is correct: nothing may be reported
//
// The same programs run on the emulator, on a GPU, and on a GPU under compute-sanitizer.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Case {
  Case(const char* name_, void (*run_)()) : name(name_), run(run_), next(first()) { first() = this; }
  static Case*& first() {
    static Case* head = nullptr;
    return head;
  }
  const char* name;
  void (*run)();
  Case* next;
};

#define CASE(name)                                \
  static void name();                             \
  static const Case declared_##name(#name, name); \
  static void name()

inline void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA error: %s (%s)\n", cudaGetErrorString(error), cudaGetErrorName(error));
  std::exit(1);
}

inline void expect(bool is_so) {
  if (is_so) return;
  std::fprintf(stderr, "wrong result\n");
  std::exit(1);
}

// ---- arrays on the device, freed at the end of the case

inline void* arrays[16];
inline int array_count = 0;

template <typename T>
T* unwritten(int count) {
  T* array;
  check(cudaMalloc(&array, count * sizeof(T)));
  return static_cast<T*>(arrays[array_count++] = array);
}

template <typename T, typename Value>
T* filled(int count, Value value) {
  T *array = unwritten<T>(count), *host = new T[count];
  for (int i = 0; i < count; i++) host[i] = T(value(i));
  check(cudaMemcpy(array, host, count * sizeof(T), cudaMemcpyHostToDevice));
  delete[] host;
  return array;
}

template <typename T>
T* numbers(int count) {  // 0, 1, 2, ...
  return filled<T>(count, [](int i) { return i; });
}

template <typename T>
T* zeros(int count) {
  return filled<T>(count, [](int) { return 0; });
}

template <typename T, typename Value>
void expect_each(const T* array, int count, Value value) {
  T* host = new T[count];
  check(cudaMemcpy(host, array, count * sizeof(T), cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; i++) expect(host[i] == T(value(i)));
  delete[] host;
}

template <typename T>
void expect_one(const T* array, double value) {
  expect_each(array, 1, [=](int) { return value; });
}

inline int run_cases(int words, char** word) {
  if (words < 2)
    for (const Case* one = Case::first(); one; one = one->next) std::printf("%s\n", one->name);
  for (int k = 1; k < words; k++) {
    const Case* found = Case::first();
    while (found && std::strcmp(found->name, word[k])) found = found->next;
    if (!found) return std::fprintf(stderr, "there is no case %s\n", word[k]), 2;
    found->run();
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    while (array_count) check(cudaFree(arrays[--array_count]));
  }
  return 0;
}
