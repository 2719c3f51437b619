// What the kernels get: the arrays and how the work on them is divided.
#pragma once

#include "recurrence.h"

struct ForwardWork {
  Forward arrays;
  Sizes sizes;
  Division division;
  int first_chain;
  unsigned* arrivals;  // [chains at once]: counters, kArrivalBytes apart, if the exchange is in global memory
  void* exchange;      // [2][chains at once][rows][row_bytes]: states, if the exchange is in global memory
};

struct BackwardWork {
  Backward arrays;
  Sizes sizes;
  Division division;
  int first_chain;
  unsigned* arrivals;
  void* exchange;  // [chains at once][blocks][2][received_size]: parts of sums, if the exchange is in global
                   // memory
};

constexpr int kArrivalBytes = 128;  // apart, so that chains do not count in the same sector
