// Libraries: CUB, functions of arrays: reductions, scans, sorts, selections, histograms
// Support: approximate: each function runs in one thread, and not all functions are there
#include <cub/cub.cuh>
#include <cuda/std/functional>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

constexpr int count = 1000;

static int wrong = 0;

static void expect(const char* what, bool holds) {
  if (!holds) wrong += fprintf(stderr, "%s is wrong\n", what) > 0;
}

// Calls a function of CUB twice: for the size of its temporary memory, and to run it.
template <typename Function>
void call(const char* what, Function function) {
  void* temporary = nullptr;
  size_t bytes = 0;
  expect(what, function(temporary, bytes) == cudaSuccess);
  cudaMalloc(&temporary, bytes);
  expect(what, function(temporary, bytes) == cudaSuccess);
  cudaFree(temporary);
}

template <typename T>
std::vector<T> download(const T* device, int length) {
  std::vector<T> host(length);
  cudaMemcpy(host.data(), device, length * sizeof(T), cudaMemcpyDeviceToHost);
  return host;
}

struct IsOdd {
  __host__ __device__ bool operator()(int x) const { return x % 2 != 0; }
};

int main() {
  std::vector<int> in;
  for (int i = 0; i < count; i++) in.push_back(i * 7919 % 503);
  int *d_in, *d_out, *d_values, *d_number;
  cudaMalloc(&d_in, count * sizeof(int));
  cudaMalloc(&d_out, count * sizeof(int));
  cudaMalloc(&d_values, count * sizeof(int));
  cudaMalloc(&d_number, sizeof(int));
  cudaMemcpy(d_in, in.data(), count * sizeof(int), cudaMemcpyHostToDevice);

  call("Sum",
       [&](void* t, size_t& bytes) { return cub::DeviceReduce::Sum(t, bytes, d_in, d_number, count); });
  expect("Sum", download(d_number, 1)[0] == std::accumulate(in.begin(), in.end(), 0));
  call("Max",
       [&](void* t, size_t& bytes) { return cub::DeviceReduce::Max(t, bytes, d_in, d_number, count); });
  expect("Max", download(d_number, 1)[0] == *std::max_element(in.begin(), in.end()));
  call("Reduce", [&](void* t, size_t& bytes) {
    return cub::DeviceReduce::Reduce(t, bytes, d_in, d_number, count, cuda::std::bit_xor<>(), 5);
  });
  expect("Reduce", download(d_number, 1)[0] == std::accumulate(in.begin(), in.end(), 5, std::bit_xor<>()));

  call("ExclusiveSum",
       [&](void* t, size_t& bytes) { return cub::DeviceScan::ExclusiveSum(t, bytes, d_in, d_out, count); });
  std::vector<int> expected(count);
  std::exclusive_scan(in.begin(), in.end(), expected.begin(), 0);
  expect("ExclusiveSum", download(d_out, count) == expected);
  call("InclusiveSum",
       [&](void* t, size_t& bytes) { return cub::DeviceScan::InclusiveSum(t, bytes, d_in, d_out, count); });
  std::inclusive_scan(in.begin(), in.end(), expected.begin());
  expect("InclusiveSum", download(d_out, count) == expected);

  call("SortKeysDescending", [&](void* t, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeysDescending(t, bytes, d_in, d_out, count);
  });
  expected = in;
  std::sort(expected.begin(), expected.end(), std::greater<>());
  expect("SortKeysDescending", download(d_out, count) == expected);
  call("SortPairs", [&](void* t, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(t, bytes, d_in, d_out, d_in, d_values, count);
  });
  std::reverse(expected.begin(), expected.end());
  expect("SortPairs", download(d_out, count) == expected && download(d_values, count) == expected);

  cub::DoubleBuffer<int> buffers(d_out, d_values);
  call("a double buffer",
       [&](void* t, size_t& bytes) { return cub::DeviceRadixSort::SortKeys(t, bytes, buffers, count); });
  expect("a double buffer", download(buffers.Current(), count) == expected);

  // The sorted elements as runs, and the sums of runs.
  int *d_lengths, *d_ends;
  cudaMalloc(&d_lengths, count * sizeof(int));
  cudaMalloc(&d_ends, count * sizeof(int));
  call("Encode", [&](void* t, size_t& bytes) {
    return cub::DeviceRunLengthEncode::Encode(t, bytes, d_in, d_out, d_lengths, d_number, count);
  });
  const int runs = download(d_number, 1)[0];
  const std::vector<int> lengths = download(d_lengths, runs);
  expect("Encode",
         std::accumulate(lengths.begin(), lengths.end(), 0) == count && download(d_out, 1)[0] == in[0]);
  call("InclusiveSum", [&](void* t, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(t, bytes, d_lengths, d_ends, runs);
  });
  call("segments", [&](void* t, size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(t, bytes, d_in, d_out, runs - 1, d_ends, d_ends + 1);
  });
  expect("segments", download(d_out, 1)[0] ==
                         std::accumulate(in.begin() + lengths[0], in.begin() + lengths[0] + lengths[1], 0));
  cudaFree(d_lengths);
  cudaFree(d_ends);

  call("If", [&](void* t, size_t& bytes) {
    return cub::DeviceSelect::If(t, bytes, d_in, d_out, d_number, count, IsOdd());
  });
  expected.clear();
  std::copy_if(in.begin(), in.end(), std::back_inserter(expected), IsOdd());
  const int selected = download(d_number, 1)[0];
  expect("If", selected == int(expected.size()) && download(d_out, selected) == expected);

  constexpr int bins = 8;
  call("HistogramEven", [&](void* t, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(t, bytes, d_in, d_out, bins + 1, 0, 504, count);
  });
  std::vector<int> histogram(bins);
  for (int x : in) histogram[x / 63]++;
  expect("HistogramEven", download(d_out, bins) == histogram);
  for (int* memory : {d_in, d_out, d_values, d_number}) cudaFree(memory);
  return wrong != 0;
}
