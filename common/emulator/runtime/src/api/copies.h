// Copies between host and device, for all functions of CUDA's API that copy.
#pragma once

#include "copy_checks.h"

EMULATOR_BEGIN
namespace emulator {

// For the current call, whose argument number `from_argument` is the source. `stream` is null for copies that
// the host waits for.
cudaError_t copy_rows(const Rows& to_region, const Rows& from_region, cudaMemcpyKind kind,
                      const cudaStream_t* stream, int from_argument);

}  // namespace emulator
EMULATOR_END
