// Copies between host and device, for all functions of CUDA's API that copy.
#pragma once

#include <memory>

#include "../streams/streams.h"
#include "copy_checks.h"

EMULATOR_BEGIN
namespace emulator {

constexpr int kNoArgument = -1;

// The two sides of a copy that is allowed, and memory that was read already.
struct PreparedCopy {
  Side to, from;
  std::shared_ptr<std::byte[]> kept;
};
// Both check the arguments of the current call.
cudaError_t prepare_copy(const Rows& to_region, const Rows& from_region, cudaMemcpyKind kind, int to_argument,
                         int from_argument, PreparedCopy& copy);
// Sets each element, of 1, 2 or 4 bytes, to a value.
cudaError_t prepare_set(const Rows& region, unsigned int value, std::size_t element, int argument, Work& work,
                        Side& to);
Work work_of(const PreparedCopy& copy);

// For the current call, whose argument number `from_argument` is the source. `stream` is null for copies that
// the host waits for. If no argument is the source or the destination itself, `from_argument` is kNoArgument.
cudaError_t copy_rows(const Rows& to_region, const Rows& from_region, cudaMemcpyKind kind,
                      const cudaStream_t* stream, int from_argument);
// The two boxes of cudaMemcpy3D.
cudaError_t boxes_of(const cudaMemcpy3DParms* copy, Rows& to, Rows& from);
// Sets each byte of the rows to a value.
cudaError_t set_rows(const Rows& region, int value, const cudaStream_t* stream);

}  // namespace emulator
EMULATOR_END
