// Clusters: __cluster_dims__ and cudaLaunchKernelEx, barriers of a cluster, distributed shared memory
// Support: yes
#include <cooperative_groups.h>

#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

// A histogram whose bins are spread over the shared memory of the cluster's blocks.
__global__ void __cluster_dims__(4, 1, 1)
    histogram(int* bins, const int* values, int count, int bins_of_block) {
  extern __shared__ int own_bins[];
  const cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < bins_of_block; i += blockDim.x) own_bins[i] = 0;
  cluster.sync();  // all blocks have started, and their bins are zero
  for (int i = cg::this_grid().thread_rank(); i < count; i += cg::this_grid().num_threads()) {
    int* bins_of_peer = cluster.map_shared_rank(own_bins, values[i] / bins_of_block);
    atomicAdd(bins_of_peer + values[i] % bins_of_block, 1);
  }
  cluster.sync();  // no block writes to another's bins any more
  for (int i = threadIdx.x; i < bins_of_block; i += blockDim.x)
    atomicAdd(&bins[cluster.block_rank() * bins_of_block + i], own_bins[i]);
}

// Each block has a vector of partial sums. Each block of the cluster adds up its own part of all of them.
template <int kBlocks, int kPart>
__global__ void reduce_scatter(float* sums, const float* in) {
  __shared__ float partial[kBlocks * kPart];
  const auto cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < kBlocks * kPart; i += blockDim.x)
    partial[i] = in[blockIdx.x * kBlocks * kPart + i];
  cluster.sync();
  const int own = cluster.block_rank() * kPart + threadIdx.x;
  float sum = 0;
  for (int rank = 0; rank < kBlocks; rank++) sum += cluster.map_shared_rank(partial, rank)[own];
  // In two halves: a block may end only after all have read its partial sums.
  auto token = cluster.barrier_arrive();
  sums[blockIdx.x * kPart + threadIdx.x] = sum;
  cluster.barrier_wait(std::move(token));
}

int failed(const char* what, int at, double got, double expected) {
  return std::fprintf(stderr, "%s %d is %g, expected %g\n", what, at, got, expected), 1;
}

int check_histogram() {
  constexpr int kCount = 1000, kBinsOfBlock = 16, kBins = 4 * kBinsOfBlock;
  std::vector<int> values(kCount), expected(kBins), got(kBins);
  for (int i = 0; i < kCount; i++) expected[values[i] = i * i % kBins]++;
  int *d_bins, *d_values;
  cudaMalloc(&d_bins, kBins * sizeof(int));
  cudaMalloc(&d_values, kCount * sizeof(int));
  cudaMemset(d_bins, 0, kBins * sizeof(int));
  cudaMemcpy(d_values, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice);
  histogram<<<8, 64, kBinsOfBlock * sizeof(int)>>>(d_bins, d_values, kCount, kBinsOfBlock);
  cudaMemcpy(got.data(), d_bins, kBins * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(d_bins), cudaFree(d_values);
  for (int i = 0; i < kBins; i++)
    if (got[i] != expected[i]) return failed("bin", i, got[i], expected[i]);
  return 0;
}

template <int kBlocks>
int check_reduce_scatter(cudaLaunchConfig_t config) {
  constexpr int kPart = 32, kSize = kBlocks * kPart;
  const auto kernel = reduce_scatter<kBlocks, kPart>;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = kBlocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.gridDim = 2 * kBlocks, config.blockDim = kPart;
  config.attrs = &attribute, config.numAttrs = 1;
  if (kBlocks > 8) cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  int clusters = 0;
  cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
  if (clusters < 1) return failed("clusters of", kBlocks, clusters, 1);

  std::vector<float> in(2 * kBlocks * kSize), got(2 * kSize);
  for (size_t i = 0; i < in.size(); i++) in[i] = float(i % 17);
  float *d_sums, *d_in;
  cudaMalloc(&d_sums, got.size() * sizeof(float));
  cudaMalloc(&d_in, in.size() * sizeof(float));
  cudaMemcpy(d_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, d_sums, (const float*)d_in);
  if (error) return std::fprintf(stderr, "the launch: %s\n", cudaGetErrorString(error)), 1;
  cudaMemcpy(got.data(), d_sums, got.size() * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_sums), cudaFree(d_in);
  for (int i = 0; i < 2 * kSize; i++) {
    float expected = 0;
    for (int rank = 0; rank < kBlocks; rank++)
      expected += in[(i / kSize * kBlocks + rank) * kSize + i % kSize];
    if (got[i] != expected) return failed("sum", i, got[i], expected);
  }
  return 0;
}

int main() {
  if (check_histogram() || check_reduce_scatter<2>({}) || check_reduce_scatter<8>({}) ||
      check_reduce_scatter<16>({}))
    return 1;
}
