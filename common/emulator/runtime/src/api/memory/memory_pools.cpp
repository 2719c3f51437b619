#include "memory_pools.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "../../memory/allocation.h"
#include "../../memory/devices.h"
#include "../../report/call.h"

struct CUmemPoolHandle_st {
  int device;
  std::size_t most = 0;       // bytes; 0 for no limit
  std::size_t threshold = 0;  // reserved bytes that stay reserved
  std::size_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  int reuse[3] = {1, 1, 1};  // has no effect: no address is used twice
};

namespace emulator {
namespace {

struct Pools {
  std::map<int, CUmemPoolHandle_st> usual;  // by device
  std::map<int, cudaMemPool_t> current;
  std::vector<cudaMemPool_t> created;
  std::map<const void*, std::pair<cudaMemPool_t, std::size_t>> origins;  // of memory, and its bytes
};
Pools& pools() {
  static auto& all = *new Pools;  // outlives every static object
  return all;
}

cudaMemPool_t usual_pool(int device) {
  return &pools().usual.try_emplace(device, CUmemPoolHandle_st{device}).first->second;
}

bool is_usual(cudaMemPool_t pool) {
  for (auto& [device, one] : pools().usual)
    if (&one == pool) return true;
  return false;
}

void trim(CUmemPoolHandle_st& pool, std::size_t kept) {
  pool.reserved = std::max(pool.used, std::min(pool.reserved, kept));
}

std::size_t* counter_of(CUmemPoolHandle_st& pool, cudaMemPoolAttr attribute) {
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      return &pool.threshold;
    case cudaMemPoolAttrReservedMemCurrent:
      return &pool.reserved;
    case cudaMemPoolAttrReservedMemHigh:
      return &pool.reserved_high;
    case cudaMemPoolAttrUsedMemCurrent:
      return &pool.used;
    case cudaMemPoolAttrUsedMemHigh:
      return &pool.used_high;
    default:
      return nullptr;
  }
}

int* switch_of(CUmemPoolHandle_st& pool, cudaMemPoolAttr attribute) {
  const bool is_reuse = attribute >= cudaMemPoolReuseFollowEventDependencies &&
                        attribute <= cudaMemPoolReuseAllowInternalDependencies;
  return is_reuse ? &pool.reuse[attribute - cudaMemPoolReuseFollowEventDependencies] : nullptr;
}

// A program can set the threshold, and reset the two maxima to zero.
cudaError_t set_counter(CUmemPoolHandle_st& pool, cudaMemPoolAttr attribute, std::size_t value) {
  if (attribute == cudaMemPoolAttrReleaseThreshold) return pool.threshold = value, cudaSuccess;
  if (value != 0) return fail(cudaErrorInvalidValue);
  if (attribute == cudaMemPoolAttrReservedMemHigh) return pool.reserved_high = pool.reserved, cudaSuccess;
  if (attribute == cudaMemPoolAttrUsedMemHigh) return pool.used_high = pool.used, cudaSuccess;
  return fail(cudaErrorInvalidValue);
}

}  // namespace

bool is_pool(cudaMemPool_t pool) {
  const auto& created = pools().created;
  return is_usual(pool) || std::count(created.begin(), created.end(), pool) > 0;
}

int device_of(cudaMemPool_t pool) { return pool->device; }

cudaMemPool_t current_pool(int device) {
  return pools().current.try_emplace(device, usual_pool(device)).first->second;
}

bool has_room(cudaMemPool_t pool, std::size_t bytes) {
  return !pool->most || bytes <= pool->most - std::min(pool->most, pool->used);
}

void take_from_pool(cudaMemPool_t pool, const void* memory, std::size_t bytes) {
  pools().origins[memory] = {pool, bytes};
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved = std::max(pool->reserved, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
}

void return_to_pool(const void* memory) {
  const auto found = pools().origins.find(memory);
  if (found == pools().origins.end()) return;
  const auto [pool, bytes] = found->second;
  pools().origins.erase(found);
  if (!is_pool(pool)) return;
  pool->used -= bytes;
  trim(*pool, pool->threshold);
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  const Call call("cudaMemPoolCreate", Position{});
  if (sticky_error()) return sticky_error();
  const bool is_known = pool && properties && properties->allocType == cudaMemAllocationTypePinned &&
                        properties->location.type == cudaMemLocationTypeDevice;
  if (!is_known) return fail(cudaErrorInvalidValue);
  if (check_device(properties->location.id)) return cudaErrorInvalidDevice;
  if (properties->handleTypes != cudaMemHandleTypeNone) return fail(cudaErrorNotSupported);
  pools().created.push_back(new CUmemPoolHandle_st{properties->location.id, properties->maxSize});
  return *pool = pools().created.back(), cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  const Call call("cudaMemPoolDestroy", Position{});
  if (sticky_error()) return sticky_error();
  if (!is_pool(pool) || is_usual(pool)) return fail(cudaErrorInvalidValue);
  if (current_pool(pool->device) == pool) pools().current[pool->device] = usual_pool(pool->device);
  std::erase(pools().created, pool);
  return cudaSuccess;  // the object stays, because memory from it may still be in use
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes) {
  if (!is_pool(pool)) return fail(cudaErrorInvalidValue);
  return trim(*pool, bytes), cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (!is_pool(pool) || !value) return fail(cudaErrorInvalidValue);
  if (int* known = switch_of(*pool, attribute)) return *known = *static_cast<int*>(value), cudaSuccess;
  if (!counter_of(*pool, attribute)) return fail(cudaErrorInvalidValue);
  return set_counter(*pool, attribute, *static_cast<std::uint64_t*>(value));
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (!is_pool(pool) || !value) return fail(cudaErrorInvalidValue);
  if (const int* known = switch_of(*pool, attribute)) return *static_cast<int*>(value) = *known, cudaSuccess;
  const std::size_t* counter = counter_of(*pool, attribute);
  if (!counter) return fail(cudaErrorInvalidValue);
  return *static_cast<std::uint64_t*>(value) = *counter, cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* wanted, std::size_t count) {
  if (!is_pool(pool) || (count && !wanted)) return fail(cudaErrorInvalidValue);
  for (std::size_t i = 0; i < count; i++) {
    const cudaMemLocation& location = wanted[i].location;
    if (location.type != cudaMemLocationTypeDevice || check_device(location.id))
      return fail(cudaErrorInvalidDevice);
    if (location.id != pool->device) return fail(cudaErrorNotSupported);
    if (wanted[i].flags != cudaMemAccessFlagsProtReadWrite) return fail(cudaErrorInvalidDevice);
  }
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  if (!is_pool(pool) || !flags || !location) return fail(cudaErrorInvalidValue);
  if (location->type != cudaMemLocationTypeDevice || check_device(location->id))
    return fail(cudaErrorInvalidDevice);
  const bool is_own = location->id == pool->device;
  return *flags = is_own ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone, cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (check_device(device)) return cudaErrorInvalidDevice;
  return *pool = usual_pool(device), cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  if (check_device(device)) return cudaErrorInvalidDevice;
  return *pool = current_pool(device), cudaSuccess;
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  if (check_device(device)) return cudaErrorInvalidDevice;
  if (!is_pool(pool) || pool->device != device) return fail(cudaErrorInvalidValue);
  return pools().current[device] = pool, cudaSuccess;
}
