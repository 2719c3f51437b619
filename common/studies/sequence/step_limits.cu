// What bounds a step of a sequence, measured on a GPU of sm_90: barriers, exchanges between blocks, and
// products of weights from registers and from shared memory. Prints a line of JSON for each: the name, its
// parameters, and nanoseconds for one repetition.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "../../../stages/stage7_sequence/csrc/persistent/chain.cuh"
#include "../../../stages/stage7_sequence/csrc/persistent/product.cuh"

namespace cg = cooperative_groups;

constexpr int kRepetitions = 2000;

// A barrier of the cluster. With stores, each thread writes a number to global memory before each barrier.
__global__ void cluster_barrier(float* out, bool with_stores) {
  for (int i = 0; i < kRepetitions; ++i) {
    if (with_stores) out[(i % 64 * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = i;
    cg::this_cluster().sync();
  }
}

// A barrier of a chain of blocks by a counter in global memory.
__global__ void grid_barrier(Partition partition, unsigned* arrivals) {
  const Chain chain(partition, 0);
  GridBarrier barrier(chain, arrivals);
  for (int i = 0; i < kRepetitions; ++i) barrier.wait();
}

// Each block sends so many bytes to each block of the cluster, by asynchronous stores, and waits for what it
// gets.
__global__ void async_exchange(int bytes) {
  extern __shared__ uint4 memory[];
  const cg::cluster_group cluster = cg::this_cluster();
  const int blocks = cluster.num_blocks(), rank = cluster.block_rank(), vectors = bytes / kVector;
  const Deliveries deliveries(reinterpret_cast<char*>(memory), bytes * blocks);
  deliveries.start();
  for (int64_t number = 1; number <= kRepetitions; ++number) {
    uint4* const buffer = memory + 1 + number % 2 * blocks * vectors + rank * vectors;
    for (int i = threadIdx.x; i < vectors * blocks; i += blockDim.x)
      deliveries.send(number, deliveries.memory_of(i / vectors), buffer + i % vectors, uint4{});
    deliveries.wait(number);
  }
  deliveries.end();
}

// The same by ordinary stores and a barrier of the cluster.
__global__ void store_exchange(int bytes) {
  extern __shared__ uint4 memory[];
  const cg::cluster_group cluster = cg::this_cluster();
  const int blocks = cluster.num_blocks(), rank = cluster.block_rank(), vectors = bytes / kVector;
  cluster.sync();
  for (int number = 0; number < kRepetitions; ++number) {
    uint4* const buffer = memory + number % 2 * blocks * vectors + rank * vectors;
    for (int i = threadIdx.x; i < vectors * blocks; i += blockDim.x)
      *(cluster.map_shared_rank(buffer, i / vectors) + i % vectors) = uint4{};
    cluster.sync();
  }
}

// The product of a tile of bfloat16 weights by each warp and 8 rows of the batch. Of each tile, the first 512
// columns are in registers, the others in shared memory.
__global__ void __launch_bounds__(kThreads, 1)
    product(float* out, const __nv_bfloat16* weights, int columns) {
  extern __shared__ uint4 memory[];
  using Unit = TensorCores<__nv_bfloat16>;
  const Tiling shape(kWarps * kTile, columns * sizeof(__nv_bfloat16), 1, Unit::kHeld);
  char* const rows = reinterpret_cast<char*>(memory) + shape.stored_bytes();
  for (int i = threadIdx.x; i < kGroup * shape.row_bytes / kVector; i += kThreads)
    reinterpret_cast<uint4*>(rows)[i] = uint4{};
  const Weights<Unit, 1> held(shape, reinterpret_cast<char*>(memory),
                              {weights, columns, columns, 0, kWarps * kTile, 1, false});
  __syncthreads();
  float total = 0;
  for (int i = 0; i < kRepetitions; ++i)
    held.multiply_rows(
        rows, [&](int, const float (&top)[2], const float (&bottom)[2]) { total += top[0] + bottom[1]; },
        [](int, const float (&)[2], const float (&)[2]) {});
  out[blockIdx.x * kThreads + threadIdx.x] = total;
}

double time_of(const std::function<void()>& launch) {
  cudaEvent_t start, stop;
  cudaEventCreate(&start), cudaEventCreate(&stop);
  std::vector<float> times(7);
  for (float& time : times) {
    cudaEventRecord(start);
    launch();
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    cudaEventElapsedTime(&time, start, stop);
  }
  cudaEventDestroy(start), cudaEventDestroy(stop);
  if (const cudaError_t error = cudaGetLastError()) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2] * 1e6 / kRepetitions;
}

template <typename... Parameters, typename... Arguments>
double time_of_cluster(int clusters, int blocks, int shared_bytes, void (*kernel)(Parameters...),
                       Arguments... arguments) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 << 10);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = clusters * blocks, config.blockDim = kThreads, config.dynamicSmemBytes = shared_bytes;
  config.attrs = &attribute, config.numAttrs = 1;
  return time_of([&] { cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...); });
}

int main() {
  float* out;
  unsigned* arrivals;
  __nv_bfloat16* weights;
  cudaMalloc(&out, 64 * 256 * kThreads * sizeof(float));
  cudaMalloc(&arrivals, 256 * kArrivalBytes);
  cudaMalloc(&weights, kWarps * kTile * 1024 * sizeof(__nv_bfloat16));
  cudaMemset(weights, 0, kWarps * kTile * 1024 * sizeof(__nv_bfloat16));

  for (int blocks : {2, 4, 8, 16}) {
    for (bool with_stores : {false, true})
      std::printf("{\"name\": \"barrier of a cluster%s\", \"blocks\": %d, \"ns\": %.0f}\n",
                  with_stores ? " after stores to global memory" : "", blocks,
                  time_of_cluster(1, blocks, 0, cluster_barrier, out, with_stores));
    for (int bytes : {128, 512, 1024}) {
      const int shared = 16 + 2 * bytes * blocks;
      std::printf(
          "{\"name\": \"exchange by asynchronous stores\", \"blocks\": %d, \"bytes\": %d, \"ns\": %.0f}\n",
          blocks, bytes, time_of_cluster(1, blocks, shared, async_exchange, bytes));
      std::printf(
          "{\"name\": \"exchange by stores and a barrier\", \"blocks\": %d, \"bytes\": %d, \"ns\": %.0f}\n",
          blocks, bytes, time_of_cluster(1, blocks, shared, store_exchange, bytes));
    }
  }
  for (int blocks : {2, 4, 8, 16, 32, 64, 128}) {
    const Partition partition{Exchange::kGrid, blocks, 8, 8, 1};
    const double ns = time_of([&] {
      cudaMemsetAsync(arrivals, 0, 256 * kArrivalBytes);
      grid_barrier<<<blocks, kThreads>>>(partition, arrivals);
    });
    std::printf("{\"name\": \"barrier by a counter in global memory\", \"blocks\": %d, \"ns\": %.0f}\n",
                blocks, ns);
  }
  cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, 192 << 10);
  for (int columns : {128, 256, 512, 768, 1024}) {
    const double ns = time_of([&] { product<<<1, kThreads, 160 << 10>>>(out, weights, columns); });
    std::printf("{\"name\": \"product\", \"columns\": %d, \"in shared memory\": %d, \"ns\": %.0f}\n", columns,
                columns > 512 ? columns - 512 : 0, ns);
  }
  cudaFree(out), cudaFree(arrivals), cudaFree(weights);
}
