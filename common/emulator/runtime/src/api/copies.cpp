// cudaMemcpy, cudaMemset and their variants.
#include "copies.h"

#include <cstring>
#include <memory>

#include "../races/initialisation.h"
#include "../report/report.h"
#include "call.h"
#include "streams.h"

namespace emulator {
namespace {

void move(const Side& to, const Side& from, const char* call, Position where) {
  for (const Side* side : {&to, &from})
    if (side->allocation && side->allocation->freed) {  // by another stream in the meantime
      const Call late(call, where);
      check_side(*side, side == &from);
      return;
    }
  if (to.on_host() && !from.on_host()) check_copied_initialised(from, call, where);
  for (std::size_t y = 0; y < to.region.count(); y++) {
    std::memmove(to.region.writable(y), from.region.row(y), to.region.width);
    if (!to.allocation) continue;
    Allocation& target = const_cast<Allocation&>(*to.allocation);
    if (from.allocation)
      copy_initialisation(target, to.region.row(y), *from.allocation, from.region.row(y), to.region.width);
    else
      mark_initialised(target, to.region.row(y), to.region.width);
  }
}

// Memory that has already been read, because CUDA reads ordinary host memory during the call.
struct Staged {
  std::shared_ptr<std::byte[]> bytes;
  Side side;
};
Staged stage(const Side& from) {
  const Rows& region = from.region;
  std::shared_ptr<std::byte[]> bytes(new std::byte[region.width * region.count()]);
  for (std::size_t y = 0; y < region.count(); y++)
    std::memcpy(&bytes[y * region.width], region.row(y), region.width);
  return {
      bytes,
      {{bytes.get(), region.width, region.width, region.height, region.width * region.height, region.depth},
       nullptr,
       from.name,
       from.role}};
}

MemoryUse use_of(const Side& side, bool writes) { return {side.region.begin, side.region.span(), writes}; }

}  // namespace

cudaError_t set_rows(const Rows& region, int value, const cudaStream_t* stream) {
  if (sticky_error()) return sticky_error();
  if (region.width == 0 || region.count() == 0) return cudaSuccess;
  if (region.pitch < region.width) return fail(cudaErrorInvalidPitchValue);
  const Side to = side_of(region, 0, "its destination");
  if (const cudaError_t error = check_side(to, false)) return error;
  const Call& call = *Call::under_way();
  if (!to.allocation && collect_until_exit)
    return refuse_copy("direction", to, " is given " + to.called() + ", which is ordinary host memory", "");
  Work work{std::string(call.name) + " of " + to.called(), call.where, nullptr, {use_of(to, true)}};
  work.run = [to, value, name = call.name, where = call.where] {
    if (to.allocation && to.allocation->freed) {
      const Call late(name, where);
      check_side(to, false);
      return;
    }
    for (std::size_t y = 0; y < to.region.count(); y++) {
      std::memset(to.region.writable(y), value, to.region.width);
      if (to.allocation)
        mark_initialised(const_cast<Allocation&>(*to.allocation), to.region.row(y), to.region.width);
    }
  };
  const cudaStream_t target = stream ? *stream : nullptr;
  if (const cudaError_t error = enqueue(target, std::move(work))) return error;
  return !stream && to.on_host() ? finish(target) : cudaSuccess;
}

cudaError_t copy_rows(const Rows& to_region, const Rows& from_region, cudaMemcpyKind kind,
                      const cudaStream_t* stream, int from_argument) {
  if (sticky_error()) return sticky_error();
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return fail(cudaErrorInvalidMemcpyDirection);
  if (to_region.width == 0 || to_region.count() == 0) return cudaSuccess;
  if (to_region.pitch < to_region.width || from_region.pitch < to_region.width)
    return fail(cudaErrorInvalidPitchValue);
  const Side to = side_of(to_region, 0, "its destination");
  Side from = side_of(from_region, from_argument, "its source");
  if (const cudaError_t error = check_side(to, false)) return error;
  if (const cudaError_t error = check_side(from, true)) return error;
  if (const cudaError_t error = check_direction(to, from, kind)) return error;

  const Call& call = *Call::under_way();
  Work work{std::string(call.name) + " to " + to.called(),
            call.where,
            nullptr,
            {use_of(to, true), use_of(from, false)}};
  const bool within_device = !to.on_host() && !from.on_host();
  const bool waits = stream ? to.is_pageable() : !within_device;
  std::shared_ptr<std::byte[]> kept;
  if (!waits && from.is_pageable()) {
    Staged staged = stage(from);
    kept = std::move(staged.bytes);
    from = std::move(staged.side);
  }
  work.run = [to, from, kept, name = call.name, where = call.where] { move(to, from, name, where); };
  const cudaStream_t target = stream ? *stream : nullptr;
  if (const cudaError_t error = enqueue(target, std::move(work))) return error;
  return waits ? finish(target) : cudaSuccess;
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Position where) {
  const Call call("cudaMemcpy", where);
  return copy_rows(one_row(to, bytes), one_row(from, bytes), kind, nullptr, 1);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream, Position where) {
  const Call call("cudaMemcpyAsync", where);
  return copy_rows(one_row(to, bytes), one_row(from, bytes), kind, &stream, 1);
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind, Position where) {
  const Call call("cudaMemcpy2D", where);
  return copy_rows({to, to_pitch, width, height}, {from, from_pitch, width, height}, kind, nullptr, 2);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream,
                              Position where) {
  const Call call("cudaMemcpy2DAsync", where);
  return copy_rows({to, to_pitch, width, height}, {from, from_pitch, width, height}, kind, &stream, 2);
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes, Position where) {
  const Call call("cudaMemset", where);
  return set_rows(one_row(memory, bytes), value, nullptr);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream, Position where) {
  const Call call("cudaMemsetAsync", where);
  return set_rows(one_row(memory, bytes), value, &stream);
}
cudaError_t cudaMemset2D(void* memory, std::size_t pitch, int value, std::size_t width, std::size_t height,
                         Position where) {
  const Call call("cudaMemset2D", where);
  return set_rows({memory, pitch, width, height}, value, nullptr);
}
cudaError_t cudaMemset2DAsync(void* memory, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream, Position where) {
  const Call call("cudaMemset2DAsync", where);
  return set_rows({memory, pitch, width, height}, value, &stream);
}
