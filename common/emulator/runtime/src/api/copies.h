// Copies between host and device, for all functions of CUDA's API that copy.
#pragma once

#include "copy_checks.h"

EMULATOR_BEGIN
namespace emulator {

constexpr int kNoArgument = -1;

// For the current call, whose argument number `from_argument` is the source. `stream` is null for copies that
// the host waits for. If no argument is the source or the destination itself, `from_argument` is kNoArgument.
cudaError_t copy_rows(const Rows& to_region, const Rows& from_region, cudaMemcpyKind kind,
                      const cudaStream_t* stream, int from_argument);
// Sets each byte of the rows to a value.
cudaError_t set_rows(const Rows& region, int value, const cudaStream_t* stream);

}  // namespace emulator
EMULATOR_END
