// Prefetches and advice for managed memory: where it is makes no difference here, so only the arguments are
// checked.
#include <cstring>

#include "../../memory/allocation.h"
#include "../../memory/devices.h"
#include "../../report/call.h"
#include "../streams/streams.h"
#include "emulator/memory_api.h"

namespace emulator {
namespace {

bool is_managed(const void* memory, std::size_t bytes) {
  const Allocation* allocation = find_allocation(memory);
  return allocation && !allocation->freed && allocation->space == Space::managed &&
         bytes <= std::size_t(allocation->end() - static_cast<const std::byte*>(memory));
}

cudaMemLocation location_of(int device) {
  const cudaMemLocationType type =
      device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  return {type, device == cudaCpuDeviceId ? 0 : device};
}

cudaError_t check_location(const cudaMemLocation& location) {
  const bool is_host = location.type == cudaMemLocationTypeHost ||
                       location.type == cudaMemLocationTypeHostNuma ||
                       location.type == cudaMemLocationTypeHostNumaCurrent;
  if (is_host) return cudaSuccess;
  if (location.type != cudaMemLocationTypeDevice) return fail(cudaErrorInvalidValue);
  return check_device(location.id);
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, cudaMemLocation location,
                                 unsigned int, cudaStream_t stream, Position where) {
  const Call call("cudaMemPrefetchAsync", where);
  if (sticky_error()) return sticky_error();
  if (!is_stream(stream)) return no_such("a stream");
  if (!is_managed(memory, bytes)) return fail(cudaErrorInvalidValue);
  return check_location(location);
}
cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, int device, cudaStream_t stream,
                                 Position where) {
  return cudaMemPrefetchAsync(memory, bytes, location_of(device), 0, stream, where);
}
cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location, Position where) {
  const Call call("cudaMemAdvise", where);
  if (sticky_error()) return sticky_error();
  if (!is_managed(memory, bytes)) return fail(cudaErrorInvalidValue);
  if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy)
    return fail(cudaErrorInvalidValue);
  const bool has_location =
      advice == cudaMemAdviseSetPreferredLocation || advice >= cudaMemAdviseSetAccessedBy;
  return has_location ? check_location(location) : cudaSuccess;
}
cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, cudaMemoryAdvise advice, int device,
                          Position where) {
  return cudaMemAdvise(memory, bytes, advice, location_of(device), where);
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* memory, std::size_t bytes, unsigned int,
                                     Position where) {
  const Call call("cudaStreamAttachMemAsync", where);
  if (sticky_error()) return sticky_error();
  if (!is_stream(stream)) return no_such("a stream");
  return is_managed(memory, bytes) ? cudaSuccess : fail(cudaErrorInvalidValue);
}
