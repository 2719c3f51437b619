// What the kernels get: the arrays, and how the work on them is divided.
#pragma once

#include "plan.h"

// `exchange` is for chains that exchange in global memory:
//   forward   [2][chains at once][rows][row_bytes]: states
//   backward  [chains at once][blocks][2][received_size]: parts of sums
template <typename Arrays>
struct Work {
  Arrays arrays;
  Sizes sizes;
  Partition partition;
  int first_chain;
  unsigned* arrivals;  // [chains at once]: counters, kArrivalBytes apart, if the exchange is in global memory
  void* exchange;
};

using ForwardWork = Work<ForwardArrays<void>>;
using BackwardWork = Work<BackwardArrays<void>>;

constexpr int kArrivalBytes = 128;  // apart, so that chains do not count in the same sector
