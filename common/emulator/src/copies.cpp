// cudaMemcpy, cudaMemset and their kin: what is wrong with one before it happens, and when it happens.
#include <cstring>
#include <memory>

#include "access.h"
#include "allocations.h"
#include "api.h"
#include "launch_state.h"
#include "pages.h"
#include "streams.h"

namespace emulator {
namespace {

// Rows of bytes; one row for plain copies.
struct Rows {
  const void* begin;
  std::size_t pitch, width, height;

  const std::byte* row(std::size_t y) const { return static_cast<const std::byte*>(begin) + y * pitch; }
  std::byte* writable(std::size_t y) const { return const_cast<std::byte*>(row(y)); }
  std::size_t span() const { return pitch * (height - 1) + width; }
};

// One side of a copy.
struct Side {
  Rows region;
  const Allocation* allocation;  // null: plain memory of the host
  std::string name;              // as the program calls it; may be empty
  const char* role;              // "its destination"

  Space space() const { return allocation->space; }
  bool on_device() const { return allocation != nullptr; }
  bool on_host() const {
    return !allocation || (space() != Space::device && space() != Space::variable && space() != Space::heap);
  }
  bool is_pageable() const { return !allocation || space() == Space::tensor || is_registered(*allocation); }
  std::string called() const { return name.empty() ? role : name; }
};

Side side_of(const Rows& region, int argument, const char* role) {
  const Call& call = *Call::under_way();
  const Allocation* allocation = find_allocation(region.begin);
  std::string name = argument_text(call.name, call.where, argument);
  if (name.empty() && allocation) name = allocation->name;
  return {region, allocation, std::move(name), role};
}

const char* home(const Side& side) {
  if (!side.allocation) return "plain memory of the host";
  return side.space() == Space::pinned ? "pinned memory of the host" : "memory of the device";
}

cudaError_t refuse_copy(const char* problem, const Side& side, std::string what, std::string detail) {
  complain(Check::memory, problem, side.region.begin, std::string(Call::under_way()->name) + what,
           detail.empty() && side.allocation ? describe(*side.allocation) : std::move(detail));
  return fail(cudaErrorInvalidValue);
}

// Whether the memory of one side may be touched so.
cudaError_t check_side(const Side& side, bool is_read) {
  const char* does = is_read ? " reads " : " writes ";
  if (!side.region.begin) return refuse_copy("null", side, does + side.called() + ", a null pointer", "");
  if (!side.allocation) return cudaSuccess;
  if (side.allocation->freed)
    return refuse_copy(
        "after free", side,
        does + side.called() + " after it was freed in " + line_at(side.allocation->freed_where), "");
  const auto left = std::size_t(side.allocation->end() - side.region.row(0));
  if (side.region.span() > left)
    return refuse_copy("too long", side,
                       does + std::to_string(side.region.span()) + " bytes " + (is_read ? "from " : "to ") +
                           side.called() + ", which has " + std::to_string(left),
                       "");
  return cudaSuccess;
}

cudaError_t check_direction(const Side& to, const Side& from, cudaMemcpyKind kind) {
  static constexpr const char* names[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                          "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice"};
  if (kind == cudaMemcpyDefault || !collect_until_exit)
    return cudaSuccess;  // a stage's tensors are the host's
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  for (const Side* side : {&to, &from}) {
    const bool wants_device = side == &to ? to_device : from_device;
    if (wants_device ? side->on_device() : side->on_host()) continue;
    std::string detail = side->allocation ? describe(*side->allocation) : "";
    if (!side->allocation && is_symbol(side->region.begin))
      detail = "for a __device__ or __constant__ variable: cudaMemcpyToSymbol and cudaMemcpyFromSymbol";
    return refuse_copy("direction", *side,
                       std::string(" is told ") + names[kind] + ", but " + side->role +
                           (side->name.empty() ? "" : " " + side->name) + " is " + home(*side),
                       detail);
  }
  return cudaSuccess;
}

// A copy to the host of what nobody wrote is a read of it.
void check_written(const Side& from, const char* call, Position where) {
  if (!is_on(Check::initialisation)) return;
  std::size_t bytes = 0, first = 0;
  for (std::size_t y = 0; y < from.region.height; y++) {
    const Unwritten row = unwritten_in(*from.allocation, from.region.row(y), from.region.width);
    if (row.bytes && !bytes) first = y * from.region.pitch + row.first;
    bytes += row.bytes;
  }
  const Cause cause{Check::initialisation, "copy", nullptr, from.allocation, where.line(), where.column()};
  if (!bytes || !is_new(cause)) return;
  const std::size_t all = from.region.width * from.region.height;
  const std::string part = bytes == all ? "nobody ever wrote it"
                                        : "nobody ever wrote " + std::to_string(bytes) + " of the " +
                                              std::to_string(all) + " bytes, the first of them at byte " +
                                              std::to_string(first);
  add(cause, {bytes != all, std::string(call) + " brings " + from.called() + " to the host, but " + part,
              line_at(where), describe(*from.allocation)});
}

void move(const Side& to, const Side& from, const char* call, Position where) {
  for (const Side* side : {&to, &from})
    if (side->allocation && side->allocation->freed) {  // in another stream, in the meantime
      const Call late(call, where);
      check_side(*side, side == &from);
      return;
    }
  if (to.on_host() && !from.on_host()) check_written(from, call, where);
  for (std::size_t y = 0; y < to.region.height; y++) {
    std::memmove(to.region.writable(y), from.region.row(y), to.region.width);
    if (!to.allocation) continue;
    Allocation& target = const_cast<Allocation&>(*to.allocation);
    if (from.allocation)
      copy_marks(target, to.region.row(y), *from.allocation, from.region.row(y), to.region.width);
    else
      mark_written(target, to.region.row(y), to.region.width);
  }
}

// Memory that has been read already, because CUDA reads plain memory of the host at the call.
struct Staged {
  std::shared_ptr<std::byte[]> bytes;
  Side side;
};
Staged stage(const Side& from) {
  const Rows& region = from.region;
  std::shared_ptr<std::byte[]> bytes(new std::byte[region.width * region.height]);
  for (std::size_t y = 0; y < region.height; y++)
    std::memcpy(&bytes[y * region.width], region.row(y), region.width);
  return {bytes, {{bytes.get(), region.width, region.width, region.height}, nullptr, from.name, from.role}};
}

Touched use_of(const Side& side, bool writes) { return {side.region.begin, side.region.span(), writes}; }

// `stream` is null for copies that the host waits for.
cudaError_t copy(const Rows& to_region, const Rows& from_region, cudaMemcpyKind kind,
                 const cudaStream_t* stream, int from_argument) {
  if (broken()) return broken();
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return fail(cudaErrorInvalidMemcpyDirection);
  if (to_region.width == 0 || to_region.height == 0) return cudaSuccess;
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

cudaError_t set(const Rows& region, int value, const cudaStream_t* stream) {
  if (broken()) return broken();
  if (region.width == 0 || region.height == 0) return cudaSuccess;
  if (region.pitch < region.width) return fail(cudaErrorInvalidPitchValue);
  const Side to = side_of(region, 0, "its destination");
  if (const cudaError_t error = check_side(to, false)) return error;
  const Call& call = *Call::under_way();
  if (!to.allocation && collect_until_exit)
    return refuse_copy("direction", to, " is given " + to.called() + ", which is plain memory of the host",
                       "");
  Work work{std::string(call.name) + " of " + to.called(), call.where, nullptr, {use_of(to, true)}};
  work.run = [to, value, name = call.name, where = call.where] {
    if (to.allocation && to.allocation->freed) {
      const Call late(name, where);
      check_side(to, false);
      return;
    }
    for (std::size_t y = 0; y < to.region.height; y++) {
      std::memset(to.region.writable(y), value, to.region.width);
      if (to.allocation)
        mark_written(const_cast<Allocation&>(*to.allocation), to.region.row(y), to.region.width);
    }
  };
  const cudaStream_t target = stream ? *stream : nullptr;
  if (const cudaError_t error = enqueue(target, std::move(work))) return error;
  return !stream && to.on_host() ? finish(target) : cudaSuccess;
}

Rows one_row(const void* begin, std::size_t bytes) { return {begin, bytes, bytes, 1}; }

// Whether it is a variable of the device. One that a macro declared is known from here on.
bool is_variable(const void* symbol, std::size_t size, int argument) {
  if (find_allocation(symbol)) return true;
  if (!is_symbol(symbol)) return false;
  const Call& call = *Call::under_way();
  new_variable(symbol, size, argument_text(call.name, call.where, argument).c_str(), false, call.where);
  return true;
}

cudaError_t no_symbol(int argument) {
  const Call& call = *Call::under_way();
  complain(Check::memory, "symbol", nullptr,
           std::string(call.name) + " is given " + argument_text(call.name, call.where, argument) +
               ", which is no __device__ or __constant__ variable",
           "it takes the variable itself: not its address, not its name in quotes, not a pointer");
  return fail(cudaErrorInvalidSymbol);
}

}  // namespace

bool is_symbol(const void* address) {
  find_own_code();
  return is_own_variable(address);
}

bool new_variable(const volatile void* symbol, std::size_t size, const char* name, bool is_constant,
                  Position where) {
  const auto* variable = const_cast<const void*>(symbol);
  Allocation& made = new_allocation(variable, size, Space::variable, name, where);
  made.read_only = is_constant;
  mark_written(made, variable, size);
  return true;
}

cudaError_t copy_to_symbol(const void* symbol, std::size_t size, const void* from, std::size_t bytes,
                           std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream,
                           Position where) {
  const Call call(stream ? "cudaMemcpyToSymbolAsync" : "cudaMemcpyToSymbol", where);
  if (broken()) return broken();
  if (!is_variable(symbol, size, 0)) return no_symbol(0);
  const void* begin = static_cast<const std::byte*>(symbol) + offset;
  return copy(one_row(begin, bytes), one_row(from, bytes), kind, stream, 1);
}

cudaError_t copy_from_symbol(void* to, const void* symbol, std::size_t size, std::size_t bytes,
                             std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream,
                             Position where) {
  const Call call(stream ? "cudaMemcpyFromSymbolAsync" : "cudaMemcpyFromSymbol", where);
  if (broken()) return broken();
  if (!is_variable(symbol, size, 1)) return no_symbol(1);
  const void* begin = static_cast<const std::byte*>(symbol) + offset;
  return copy(one_row(to, bytes), one_row(begin, bytes), kind, stream, 1);
}

cudaError_t address_of_symbol(void** address, const void* symbol, std::size_t size, Position where) {
  const Call call("cudaGetSymbolAddress", where);
  if (broken()) return broken();
  if (!is_variable(symbol, size, 1)) return no_symbol(1);
  return *address = const_cast<void*>(symbol), cudaSuccess;
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Position where) {
  const Call call("cudaMemcpy", where);
  return copy(one_row(to, bytes), one_row(from, bytes), kind, nullptr, 1);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream, Position where) {
  const Call call("cudaMemcpyAsync", where);
  return copy(one_row(to, bytes), one_row(from, bytes), kind, &stream, 1);
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind, Position where) {
  const Call call("cudaMemcpy2D", where);
  return copy({to, to_pitch, width, height}, {from, from_pitch, width, height}, kind, nullptr, 2);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream,
                              Position where) {
  const Call call("cudaMemcpy2DAsync", where);
  return copy({to, to_pitch, width, height}, {from, from_pitch, width, height}, kind, &stream, 2);
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes, Position where) {
  const Call call("cudaMemset", where);
  return set(one_row(memory, bytes), value, nullptr);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream, Position where) {
  const Call call("cudaMemsetAsync", where);
  return set(one_row(memory, bytes), value, &stream);
}
cudaError_t cudaMemset2D(void* memory, std::size_t pitch, int value, std::size_t width, std::size_t height,
                         Position where) {
  const Call call("cudaMemset2D", where);
  return set({memory, pitch, width, height}, value, nullptr);
}
cudaError_t cudaMemset2DAsync(void* memory, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream, Position where) {
  const Call call("cudaMemset2DAsync", where);
  return set({memory, pitch, width, height}, value, &stream);
}
