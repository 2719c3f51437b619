// cudaMemcpy, cudaMemset and their variants.
#include "copies.h"

#include <cstring>
#include <memory>

#include "../../races/initialisation.h"
#include "../../report/call.h"
#include "../../report/report.h"
#include "../streams/streams.h"

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

// Reads memory now, because CUDA reads ordinary host memory during the call.
std::shared_ptr<std::byte[]> stage(Side& from) {
  const Rows& region = from.region;
  std::shared_ptr<std::byte[]> bytes(new std::byte[region.width * region.count()]);
  for (std::size_t y = 0; y < region.count(); y++)
    std::memcpy(&bytes[y * region.width], region.row(y), region.width);
  const std::size_t slice = region.width * region.height;
  from.region = {bytes.get(), region.width, region.width, region.height, slice, region.depth};
  from.allocation = nullptr;
  return bytes;
}

void fill(const Side& to, unsigned int value, std::size_t element) {
  for (std::size_t y = 0; y < to.region.count(); y++) {
    for (std::size_t x = 0; x < to.region.width; x += element)
      std::memcpy(to.region.writable(y) + x, &value, element);
    if (to.allocation)
      mark_initialised(const_cast<Allocation&>(*to.allocation), to.region.row(y), to.region.width);
  }
}

}  // namespace

cudaError_t prepare_set(const Rows& region, unsigned int value, std::size_t element, int argument, Work& work,
                        Side& to) {
  if (region.pitch < region.width) return fail(cudaErrorInvalidPitchValue);
  to = side_of(region, argument, "its destination");
  if (const cudaError_t error = check_side(to, false)) return error;
  if (!to.allocation && collect_until_exit)
    return refuse_copy("direction", to, " is given " + to.called() + ", which is ordinary host memory", "");
  const Call& call = *Call::under_way();
  work = {std::string(call.name) + " of " + to.called(), call.where, nullptr, {to.region.use(true)}};
  work.type = cudaGraphNodeTypeMemset;
  work.run = [to, value, element, name = call.name, where = call.where] {
    if (!to.allocation || !to.allocation->freed) return fill(to, value, element);
    const Call late(name, where);
    check_side(to, false);
  };
  return cudaSuccess;
}

cudaError_t prepare_copy(const Rows& to_region, const Rows& from_region, cudaMemcpyKind kind, int to_argument,
                         int from_argument, PreparedCopy& copy) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return fail(cudaErrorInvalidMemcpyDirection);
  if (to_region.pitch < to_region.width || from_region.pitch < to_region.width)
    return fail(cudaErrorInvalidPitchValue);
  copy.to = side_of(to_region, to_argument, "its destination");
  copy.from = side_of(from_region, from_argument, "its source");
  if (const cudaError_t error = check_side(copy.to, false)) return error;
  if (const cudaError_t error = check_side(copy.from, true)) return error;
  return check_direction(copy.to, copy.from, kind);
}

Work work_of(const PreparedCopy& copy) {
  const Call& call = *Call::under_way();
  Work work{std::string(call.name) + " to " + copy.to.called(),
            call.where,
            nullptr,
            {copy.to.region.use(true), copy.from.region.use(false)}};
  work.type = cudaGraphNodeTypeMemcpy;
  work.run = [copy, name = call.name, where = call.where] { move(copy.to, copy.from, name, where); };
  return work;
}

cudaError_t set_rows(const Rows& region, int value, const cudaStream_t* stream) {
  if (sticky_error()) return sticky_error();
  if (region.width == 0 || region.count() == 0) return cudaSuccess;
  Work work;
  Side to;
  if (const cudaError_t error = prepare_set(region, static_cast<unsigned char>(value), 1, 0, work, to))
    return error;
  const cudaStream_t target = stream ? *stream : nullptr;
  if (const cudaError_t error = enqueue(target, std::move(work))) return error;
  return !stream && to.on_host() ? finish(target) : cudaSuccess;
}

cudaError_t copy_rows(const Rows& to_region, const Rows& from_region, cudaMemcpyKind kind,
                      const cudaStream_t* stream, int from_argument) {
  if (sticky_error()) return note_skipped_work(), sticky_error();
  if (to_region.width == 0 || to_region.count() == 0) return cudaSuccess;
  const int to_argument = from_argument == kNoArgument ? kNoArgument : 0;
  PreparedCopy copy;
  if (const cudaError_t error = prepare_copy(to_region, from_region, kind, to_argument, from_argument, copy))
    return error;
  Work work = work_of(copy);
  const cudaStream_t target = stream ? *stream : nullptr;
  if (stream && is_captured(target)) return enqueue(target, std::move(work));
  const bool within_device = !copy.to.on_host() && !copy.from.on_host();
  const bool waits = stream ? copy.to.is_pageable() : !within_device;
  if (!waits && copy.from.is_pageable()) {
    copy.kept = stage(copy.from);
    work.run = work_of(copy).run;
  }
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
