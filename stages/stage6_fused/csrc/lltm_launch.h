// What kernel launches need.
#pragma once

#include <cstdint>

constexpr int kWarp = 32;

__host__ __device__ inline int64_t divide_up(int64_t number, int64_t by) { return (number + by - 1) / by; }
