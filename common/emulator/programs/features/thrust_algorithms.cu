// Libraries: Thrust, with device_vector, iterators, transforms, reductions, scans and sorts
// Support: approximate: all but elementwise algorithms run in one thread, and not all are there
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

#include <cmath>
#include <cstdio>

static int wrong = 0;

static void expect(const char* what, bool holds) {
  if (!holds) wrong += fprintf(stderr, "%s is wrong\n", what) > 0;
}

static void expect_equal(const char* what, const thrust::device_vector<int>& got,
                         const thrust::host_vector<int>& expected) {
  const thrust::host_vector<int> host = got;
  expect(what, host == expected);
}

struct Saxpy {
  float a;
  __host__ __device__ float operator()(float x, float y) const { return a * x + y; }
};
struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
struct IsOdd {
  __host__ __device__ bool operator()(int x) const { return x % 2 != 0; }
};
struct AddPair {
  template <typename Tuple>
  __host__ __device__ void operator()(Tuple t) const {
    thrust::get<2>(t) = thrust::get<0>(t) + thrust::get<1>(t);
  }
};
// Estimates pi with random points of its own.
struct CountInside {
  __host__ __device__ int operator()(int thread) const {
    thrust::default_random_engine engine(12345);
    engine.discard(2 * 100 * thread);
    thrust::uniform_real_distribution<float> unit(0, 1);
    int inside = 0;
    for (int i = 0; i < 100; i++) {
      const float x = unit(engine), y = unit(engine);
      inside += x * x + y * y < 1;
    }
    return inside;
  }
};

__global__ void twice(int* x) { x[threadIdx.x] *= 2; }

static void check_vectors() {
  thrust::device_vector<int> v(4, 7);
  v[1] = 3;
  v.push_back(5);
  expect("an element", v[1] == 3 && v.back() == 5 && v.size() == 5);
  twice<<<1, 5>>>(thrust::raw_pointer_cast(v.data()));
  expect_equal("a vector that a kernel changed", v, {14, 6, 14, 14, 10});
  thrust::host_vector<int> host(2);
  thrust::copy(v.begin() + 1, v.begin() + 3, host.begin());
  expect("a copy to the host", host[0] == 6 && host[1] == 14);
  thrust::copy(host.begin(), host.end(), v.begin());
  thrust::device_vector<int> other = v;
  other.resize(3);
  expect_equal("a copy", other, {6, 14, 14});

  int* raw;
  cudaMalloc(&raw, 4 * sizeof(int));
  thrust::device_ptr<int> pointer(raw);
  thrust::fill(pointer, pointer + 4, 2);
  pointer[2] = 9;
  expect("memory of cudaMalloc", thrust::reduce(thrust::device, raw, raw + 4) == 15);
  cudaFree(raw);
}

static void check_algorithms() {
  thrust::device_vector<float> x(100, 2), y(100);
  thrust::sequence(y.begin(), y.end());
  thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), Saxpy{10});
  expect("transform", y[0] == 20 && y[99] == 119);
  expect("inner_product",
         thrust::inner_product(x.begin(), x.end(), y.begin(), 0.0f) == 2 * (20 * 100 + 4950));

  thrust::device_vector<int> v(6);
  thrust::sequence(v.begin(), v.end(), 1, 2);
  expect_equal("sequence", v, {1, 3, 5, 7, 9, 11});
  expect("transform_reduce",
         thrust::transform_reduce(v.begin(), v.end(), Square(), 0, thrust::plus<int>()) == 286);
  expect("a maximum", thrust::reduce(v.begin(), v.end(), 0, thrust::maximum<int>()) == 11);
  expect("max_element", thrust::max_element(v.begin(), v.end()) - v.begin() == 5);
  expect("count_if", thrust::count_if(v.begin(), v.end(), IsOdd()) == 6);
  thrust::exclusive_scan(v.begin(), v.end(), v.begin());
  expect_equal("exclusive_scan", v, {0, 1, 4, 9, 16, 25});
  thrust::inclusive_scan(v.begin(), v.end(), v.begin());
  expect_equal("inclusive_scan", v, {0, 1, 5, 14, 30, 55});
  v.erase(thrust::remove_if(v.begin(), v.end(), IsOdd()), v.end());
  expect_equal("remove_if", v, {0, 14, 30});
  using namespace thrust::placeholders;
  thrust::transform(v.begin(), v.end(), v.begin(), 2 * _1 + 1);
  expect_equal("placeholders", v, {1, 29, 61});

  const thrust::host_vector<int> keys = {3, 1, 2, 3, 1, 2, 3};
  thrust::device_vector<int> d_keys = keys, places(7), sums(7), groups(7);
  thrust::sequence(places.begin(), places.end());
  thrust::sort_by_key(d_keys.begin(), d_keys.end(), places.begin());
  expect_equal("sort_by_key", d_keys, {1, 1, 2, 2, 3, 3, 3});
  thrust::device_vector<int> back(7);
  thrust::gather(places.begin(), places.end(), d_keys.begin(), back.begin());
  const auto ends =
      thrust::reduce_by_key(d_keys.begin(), d_keys.end(), places.begin(), groups.begin(), sums.begin());
  expect("reduce_by_key", ends.first - groups.begin() == 3 && sums[0] == 1 + 4 && sums[2] == 0 + 3 + 6);
  thrust::inclusive_scan_by_key(d_keys.begin(), d_keys.end(), places.begin(), sums.begin());
  expect_equal("inclusive_scan_by_key", sums, {1, 5, 2, 7, 0, 3, 9});
  thrust::device_vector<int> firsts = d_keys, of_firsts = places;
  const auto kept = thrust::unique_by_key(firsts.begin(), firsts.end(), of_firsts.begin());
  expect("unique_by_key", kept.first - firsts.begin() == 3 && firsts[2] == 3 && of_firsts[2] == 0);
  thrust::device_vector<int> merged(10);
  thrust::merge(d_keys.begin(), d_keys.end(), firsts.begin(), firsts.begin() + 3, merged.begin());
  expect_equal("merge", merged, {1, 1, 1, 2, 2, 2, 3, 3, 3, 3});
  d_keys.erase(thrust::unique(d_keys.begin(), d_keys.end()), d_keys.end());
  expect_equal("unique", d_keys, {1, 2, 3});
  thrust::sort(d_keys.begin(), d_keys.end(), thrust::greater<int>());
  expect_equal("sort", d_keys, {3, 2, 1});
  const auto middle = thrust::partition(places.begin(), places.end(), IsOdd());
  expect("partition", middle - places.begin() == 3 && int(places[0]) % 2 == 1 && int(places[6]) % 2 == 0);
}

static void check_iterators() {
  const thrust::counting_iterator<int> from(1);
  expect("a sum of squares", thrust::reduce(thrust::make_transform_iterator(from, Square()),
                                            thrust::make_transform_iterator(from + 10, Square())) == 385);
  thrust::device_vector<int> a(5), b(5, 100), c(5);
  thrust::sequence(a.begin(), a.end());
  const auto first = thrust::make_zip_iterator(thrust::make_tuple(a.begin(), b.begin(), c.begin()));
  thrust::for_each(first, first + 5, AddPair());
  expect_equal("zip_iterator", c, {100, 101, 102, 103, 104});
  thrust::device_vector<int> order = {4, 0, 2};
  const auto permuted = thrust::make_permutation_iterator(c.begin(), order.begin());
  expect("permutation_iterator", thrust::reduce(permuted, permuted + 3) == 306);
  thrust::device_vector<int> selected(5);
  const auto end = thrust::copy_if(from, from + 5, selected.begin(), IsOdd());
  expect("copy_if", end - selected.begin() == 3 && selected[2] == 5);
  thrust::device_vector<int> bounds(3), sorted = {1, 3, 3, 8};
  thrust::device_vector<int> values = {3, 0, 9};
  thrust::lower_bound(sorted.begin(), sorted.end(), values.begin(), values.end(), bounds.begin());
  expect_equal("lower_bound", bounds, {1, 0, 4});
}

static void check_policies() {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  thrust::device_vector<int> v = {3, 1, 2};
  thrust::sort(thrust::cuda::par.on(stream), v.begin(), v.end());
  expect_equal("a sort in a stream", v, {1, 2, 3});
  cudaStreamDestroy(stream);
  int host[] = {5, 4, 6};
  thrust::sort(thrust::host, host, host + 3);
  expect("a sort on the host", host[0] == 4 && host[2] == 6);

  const int threads = 50;
  const int inside = thrust::transform_reduce(thrust::device, thrust::counting_iterator<int>(0),
                                              thrust::counting_iterator<int>(threads), CountInside(), 0,
                                              thrust::plus<int>());
  expect("pi", std::fabs(4.0 * inside / (100 * threads) - 3.1416) < 0.14);
}

int main() {
  check_vectors();
  check_algorithms();
  check_iterators();
  check_policies();
  return wrong != 0;
}
