// Inline PTX: shuffles, votes, matches and reductions of a warp, barriers, special registers
// Support: yes
#include <cstdint>
#include <cstdio>

enum {
  kDown,
  kUp,
  kSwap,
  kFirst,
  kInside,
  kBallot,
  kAny,
  kUniform,
  kMatch,
  kMatchAll,
  kSum,
  kLeast,
  kLane,
  kWarp,
  kBefore,
  kCount,
  kElected,
  kThread,
  kFields
};

__global__ void lanes(uint32_t* out) {
  uint32_t* mine = out + threadIdx.x * kFields;
  const uint32_t lane = threadIdx.x % 32, value = 100 + lane;
  asm volatile("shfl.sync.down.b32 %0, %1, 4, 0x1f, 0xffffffff;" : "=r"(mine[kDown]) : "r"(value));
  asm volatile("shfl.sync.up.b32 %0, %1, 1, 0, 0xffffffff;" : "=r"(mine[kUp]) : "r"(value));
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(mine[kSwap]) : "r"(value), "r"(8));
  // Segments of eight lanes: 0x18 names the bits of the segment, and 0x1f the last lane.
  asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x181f, -1;" : "=r"(mine[kFirst]) : "r"(value));
  asm volatile(
      "{\n\t"
      ".reg .pred inside;\n\t"
      ".reg .b32 other;\n\t"
      "shfl.sync.down.b32 other|inside, %1, 3, 0x1f, -1;\n\t"
      "selp.u32 %0, 1, 0, inside;\n\t}"
      : "=r"(mine[kInside])
      : "r"(value));
  asm volatile(
      "{\n\t.reg .pred p, q;\n\t"
      "setp.gt.u32 p, %3, 20;\n\t"
      "vote.sync.ballot.b32 %0, p, -1;\n\t"
      "vote.sync.any.pred q, p, -1;\n\t"
      "selp.b32 %1, 1, 0, q;\n\t"
      "vote.sync.uni.pred q, p, -1;\n\t"
      "selp.b32 %2, 1, 0, q;\n\t}"
      : "=r"(mine[kBallot]), "=r"(mine[kAny]), "=r"(mine[kUniform])
      : "r"(lane));
  asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(mine[kMatch]) : "r"(lane / 4));
  asm volatile("{.reg .pred same; match.all.sync.b32 %0|same, %1, -1;}" : "=r"(mine[kMatchAll]) : "r"(7));
  asm volatile("redux.sync.add.u32 %0, %1, -1;" : "=r"(mine[kSum]) : "r"(lane));
  asm volatile("redux.sync.min.s32 %0, %1, -1;" : "=r"(mine[kLeast]) : "r"(int(lane) - 5));
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(mine[kLane]));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(mine[kWarp]));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(mine[kBefore]));
  asm volatile("{.reg .pred odd; setp.ne.u32 odd, %1, 0; bar.red.popc.u32 %0, 0, odd;}"
               : "=r"(mine[kCount])
               : "r"(threadIdx.x % 2));
  asm volatile("{.reg .pred p; .reg .b32 leader; elect.sync leader|p, -1; selp.u32 %0, 1, 0, p;}"
               : "=r"(mine[kElected]));
  asm volatile("bar.warp.sync 0xffffffff;");
  asm volatile("{.reg .b32 t, n; mov.u32 t, %%tid.x; mov.u32 n, %%ntid.x; add.u32 %0, t, n;}"
               : "=r"(mine[kThread]));
}

int main() {
  constexpr int kThreads = 64;
  uint32_t* out;
  cudaMallocManaged(&out, kThreads * kFields * sizeof(uint32_t));
  lanes<<<1, kThreads>>>(out);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  uint32_t elected[2] = {};
  for (uint32_t i = 0; i < kThreads; i++) {
    const uint32_t lane = i % 32, *got = out + i * kFields;
    const uint32_t expected[kFields] = {lane < 28 ? 104 + lane : 100 + lane,
                                        lane > 0 ? 99 + lane : 100,
                                        100 + (lane ^ 8),
                                        100 + lane / 8 * 8,
                                        lane < 29,
                                        0xffe00000,
                                        1,
                                        0,
                                        0xfu << lane / 4 * 4,
                                        0xffffffff,
                                        496,
                                        uint32_t(-5),
                                        lane,
                                        i / 32,
                                        (1u << lane) - 1,
                                        kThreads / 2,
                                        got[kElected],
                                        i + kThreads};
    elected[i / 32] += got[kElected];
    for (int field = 0; field < kFields; field++)
      if (got[field] != expected[field] && !wrong++)
        std::fprintf(stderr, "field %d of thread %u: got %u, expected %u\n", field, i, got[field],
                     expected[field]);
  }
  if (elected[0] != 1 || elected[1] != 1)
    return std::fprintf(stderr, "one lane of each warp should be elected\n"), 1;
  cudaFree(out);
  return wrong != 0;
}
