// Libraries: CUB, functions of a block or a warp: reductions, scans, sorts, loads and stores
// Support: approximate: values are combined in the order of the threads, and not all functions are there
#include <cub/cub.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

#include <cstdio>
#include <vector>

constexpr int threads = 96, items = 4, count = threads * items;

static int wrong = 0;

static void expect(const char* what, bool holds) {
  if (!holds) wrong += fprintf(stderr, "%s is wrong\n", what) > 0;
}

struct Results {
  int sum, largest, sum_of_valid, sum_of_items;
  int inclusive[threads], exclusive[threads], total[threads], item_scan[count];
  int warp_sum[threads / 8], warp_scan[threads], sorted[count], places[count];
};

__global__ void compute(const int* in, Results* results) {
  using Reduce = cub::BlockReduce<int, threads>;
  using Scan = cub::BlockScan<int, threads>;
  using Load = cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_TRANSPOSE>;
  using Store = cub::BlockStore<int, threads, items, cub::BLOCK_STORE_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<int, threads, items, int>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Sort::TempStorage sort;
  } storage;
  const int t = threadIdx.x;

  const int sum = Reduce(storage.reduce).Sum(in[t]);
  __syncthreads();
  const int largest = Reduce(storage.reduce).Reduce(in[t], cuda::maximum<>());
  __syncthreads();
  const int sum_of_valid = Reduce(storage.reduce).Sum(in[t], 10);
  __syncthreads();
  int own[items];
  Load(storage.load).Load(in, own);
  __syncthreads();
  const int sum_of_items = Reduce(storage.reduce).Sum(own);
  if (t == 0) {
    results->sum = sum;
    results->largest = largest;
    results->sum_of_valid = sum_of_valid;
    results->sum_of_items = sum_of_items;
  }
  __syncthreads();

  Scan(storage.scan).InclusiveSum(in[t], results->inclusive[t]);
  __syncthreads();
  int before, total;
  Scan(storage.scan).ExclusiveSum(in[t], before, total);
  results->exclusive[t] = before;
  results->total[t] = total;
  __syncthreads();
  int scanned[items];
  Scan(storage.scan).ExclusiveScan(own, scanned, -1000, cuda::maximum<>());
  __syncthreads();
  Store(storage.store).Store(results->item_scan, scanned);
  __syncthreads();

  int places[items];
  for (int i = 0; i < items; i++) places[i] = t * items + i;
  Sort(storage.sort).Sort(own, places);
  __syncthreads();
  Store(storage.store).Store(results->sorted, own);
  __syncthreads();
  Store(storage.store).Store(results->places, places);

  __shared__ typename cub::WarpReduce<int, 8>::TempStorage of_eight[threads / 8];
  const int eight = cub::WarpReduce<int, 8>(of_eight[t / 8]).Sum(in[t]);
  if (t % 8 == 0) results->warp_sum[t / 8] = eight;
  __shared__ typename cub::WarpScan<int>::TempStorage of_warp[threads / 32];
  int scan;
  cub::WarpScan<int>(of_warp[t / 32]).InclusiveSum(in[t], scan);
  results->warp_scan[t] = scan;
}

int main() {
  std::vector<int> in;
  for (int i = 0; i < count; i++) in.push_back(i * 37 % 101 - 50);
  int* d_in;
  Results *d_results, *got = new Results;
  cudaMalloc(&d_in, count * sizeof(int));
  cudaMalloc(&d_results, sizeof(Results));
  cudaMemcpy(d_in, in.data(), count * sizeof(int), cudaMemcpyHostToDevice);
  compute<<<1, threads>>>(d_in, d_results);
  cudaMemcpy(got, d_results, sizeof(Results), cudaMemcpyDeviceToHost);

  int sum = 0, largest = -1000, all = 0;
  for (int i = 0; i < count; i++) {
    all += in[i];
    expect("a scan of items", got->item_scan[i] == largest);
    largest = in[i] > largest ? in[i] : largest;
    if (i == threads - 1) expect("the largest", got->largest == largest);
  }
  expect("the sum of items", got->sum_of_items == all);
  for (int i = 0; i < threads; i++) {
    expect("an exclusive scan", got->exclusive[i] == sum);
    sum += in[i];
    expect("an inclusive scan", got->inclusive[i] == sum);
    if (i == 9) expect("the sum of the valid values", got->sum_of_valid == sum);
  }
  expect("the sum", got->sum == sum && got->total[5] == sum);
  for (int i = 0; i < threads; i++) {
    int eight = 0, warp = 0;
    for (int k = i / 8 * 8; k < i / 8 * 8 + 8; k++) eight += in[k];
    for (int k = i / 32 * 32; k <= i; k++) warp += in[k];
    expect("the sum of eight lanes", got->warp_sum[i / 8] == eight);
    expect("the scan of a warp", got->warp_scan[i] == warp);
  }
  for (int i = 0; i < count; i++) {
    expect("the order", i == 0 || got->sorted[i - 1] <= got->sorted[i]);
    expect("a value of a key", in[got->places[i]] == got->sorted[i]);
  }
  cudaFree(d_in);
  cudaFree(d_results);
  delete got;
  return wrong != 0;
}
