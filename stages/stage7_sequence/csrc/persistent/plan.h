// The interface of the persistent kernels, without torch: T steps of a cell in one launch.
//
// The rows of the batch are divided into chains, which never wait for one another. The blocks of a chain
// divide the units among them: each block keeps the weights of its units on chip for all steps, in registers
// and shared memory. After each step, the blocks exchange the new state (backward: partial sums of its
// gradient) and wait for one another:
//   Rung::kCluster   a chain is a cluster: the exchange uses distributed shared memory (sm_90 and newer)
//   Rung::kGrid      the exchange uses global memory, the barrier a counter, in a cooperative launch
//                    (sm_80 and newer)
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "../arrays.h"
#include "../cells.h"

// The type of the tensors, and how products are computed: kTf32 has tensors of float, and products on
// tensor cores.
enum class Scalar { kFloat, kTf32, kHalf, kBfloat16, kDouble };
enum class Rung { kGrid, kCluster };

struct Sizes {
  int64_t steps, batch, state;  // T, B, S: each at least 1
};

// How the blocks of a chain exchange their results: not at all, if there is only one.
enum class Exchange { kNone, kCluster, kGrid };

// How a chain's work is divided among its blocks. Kernels compute the layout of their shared memory from it.
struct Partition {
  Exchange exchange;
  int blocks;      // in a chain
  int rows;        // of the batch in a chain: a multiple of 8
  int units;       // in a block: padded, so that its rows are whole vectors of 16 bytes
  int held_tiles;  // how many tiles of weights each warp has in registers: 1, 2 or 4, the more the narrower
};

struct Plan {
  Rung rung;
  CellKind cell;
  Scalar scalar;
  bool backward;
  Sizes sizes;
  Partition partition;
  int chains;          // in all
  int chains_at_once;  // that the device can hold
  int shared_bytes;    // of a block
  size_t workspace_bytes;
  double step_ns;  // an estimate of the time of a step of all chains, in nanoseconds
};

// Decides how to divide the work on the current device. Without a plan, `reason` says why there is none.
// `blocks` of a chain: 0 for the fastest by estimate. A chain has fewer if they hold all units.
std::optional<Plan> make_plan(Rung rung, CellKind cell, Scalar scalar, Sizes sizes, bool backward,
                              std::string& reason, int blocks = 0);

// Launches on the current device. The plan must be for the same pass. workspace: plan.workspace_bytes of
// global memory; may be null if that is 0.
cudaError_t launch(const Plan& plan, const ForwardArrays<void>& arrays, void* workspace, cudaStream_t stream);
cudaError_t launch(const Plan& plan, const BackwardArrays<void>& arrays, void* workspace,
                   cudaStream_t stream);
