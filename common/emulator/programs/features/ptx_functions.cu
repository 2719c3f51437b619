// libcu++: cuda::ptx, with mbarriers, bulk copies to and from shared memory, fences and clusters
// Support: yes
#include <cuda/ptx>

#include <cstdint>
#include <cstdio>

namespace ptx = cuda::ptx;
constexpr int kStages = 2, kTile = 64, kTiles = 7;

// A pipeline: one thread copies the next tile while all threads use this one.
__global__ void add_one(int* out, const int* in) {
  __shared__ alignas(128) int tiles[kStages][kTile];
  __shared__ alignas(8) uint64_t full[kStages];
  const auto copy = [&](int step) {
    const int stage = step % kStages;
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[stage],
                                   sizeof(tiles[stage]));
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tiles[stage], in + step * kTile,
                       sizeof(tiles[stage]), &full[stage]);
  };
  if (ptx::get_sreg_tid_x() == 0) {
    for (uint64_t& each : full) ptx::mbarrier_init(&each, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (int step = 0; step < kStages; step++) copy(step);
  for (int step = 0; step < kTiles; step++) {
    const int stage = step % kStages;
    while (
        !ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &full[stage], step / kStages % 2)) {
    }
    tiles[stage][threadIdx.x] += 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + step * kTile, tiles[stage],
                         sizeof(tiles[stage]));
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
      if (step + kStages < kTiles) copy(step + kStages);
    }
  }
}

// The last block of a cluster fills the shared memory of the first.
__global__ void __cluster_dims__(2, 1, 1) send(int* out) {
  __shared__ alignas(16) int box[kTile];
  __shared__ alignas(16) int own[kTile];
  __shared__ alignas(8) uint64_t arrived;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&arrived, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  own[threadIdx.x] = 3 * threadIdx.x;
  ptx::fence_proxy_async(ptx::space_shared);
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  if (threadIdx.x == 0 && ptx::get_sreg_cluster_ctarank() == 0)
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &arrived,
                                   sizeof(box));
  if (threadIdx.x == 0 && ptx::get_sreg_cluster_ctarank() == 1)
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared,
                       static_cast<int*>(__cluster_map_shared_rank(box, 0)), own, sizeof(own),
                       static_cast<uint64_t*>(__cluster_map_shared_rank(&arrived, 0)));
  if (ptx::get_sreg_cluster_ctarank() == 0) {
    while (!ptx::mbarrier_try_wait_parity(&arrived, 0)) {
    }
    out[threadIdx.x] = box[threadIdx.x];
  }
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
}

int main() {
  int *out, *in, *sent;
  cudaMallocManaged(&out, kTiles * kTile * sizeof(int));
  cudaMallocManaged(&in, kTiles * kTile * sizeof(int));
  cudaMallocManaged(&sent, kTile * sizeof(int));
  for (int i = 0; i < kTiles * kTile; i++) in[i] = i;
  add_one<<<1, kTile>>>(out, in);
  send<<<2, kTile>>>(sent);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < kTiles * kTile; i++)
    if (out[i] != i + 1 && !wrong++) std::fprintf(stderr, "tile: got %d, expected %d\n", out[i], i + 1);
  for (int i = 0; i < kTile; i++)
    if (sent[i] != 3 * i && !wrong++) std::fprintf(stderr, "sent: got %d, expected %d\n", sent[i], 3 * i);
  for (int* memory : {out, in, sent}) cudaFree(memory);
  return wrong != 0;
}
