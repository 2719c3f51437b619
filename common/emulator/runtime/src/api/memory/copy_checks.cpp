#include "copy_checks.h"

#include <algorithm>

#include "../../races/initialisation.h"
#include "../../report/call.h"
#include "../../report/report.h"
#include "../../state/module_image.h"

namespace emulator {
namespace {

const char* home(const Side& side) {
  if (!side.allocation) return "ordinary host memory";
  return side.space() == Space::pinned ? "pinned host memory" : "device memory";
}

}  // namespace

bool is_symbol(const void* address) {
  find_own_code();
  return is_own_variable(address);
}

Side side_of(const Rows& region, int argument, const char* role) {
  const Call& call = *Call::under_way();
  const Allocation* allocation = find_allocation(region.begin);
  std::string name = argument_text(call.name, call.where, argument);
  if (name.empty() && allocation) name = allocation->name;
  return {region, allocation, std::move(name), role};
}

cudaError_t refuse_copy(const char* problem, const Side& side, std::string what, std::string detail) {
  add_call_finding(Check::memory, problem, side.region.begin, std::string(Call::under_way()->name) + what,
                   detail.empty() && side.allocation ? describe(*side.allocation) : std::move(detail));
  return fail(cudaErrorInvalidValue);
}

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
      detail = "for a __device__ or __constant__ variable, use cudaMemcpyToSymbol or cudaMemcpyFromSymbol";
    return refuse_copy("direction", *side,
                       std::string(" has the direction ") + names[kind] + ", but " + side->role +
                           (side->name.empty() ? "" : " " + side->name) + " is " + home(*side),
                       detail);
  }
  return cudaSuccess;
}

// Adjacent bytes: up to this number may be padding between the members of a structure.
constexpr std::size_t kMostPadding = 15;

void check_copied_initialised(const Side& from, const char* call, Position where) {
  if (!is_on(Check::initialisation)) return;
  std::size_t bytes = 0, first = 0, longest = 0;
  for (std::size_t y = 0; y < from.region.count(); y++) {
    const UninitialisedBytes row = uninitialised_in(*from.allocation, from.region.row(y), from.region.width);
    if (row.bytes && !bytes) first = std::size_t(from.region.row(y) - from.region.row(0)) + row.first;
    bytes += row.bytes;
    longest = std::max(longest, row.longest);
  }
  const Cause cause{Check::initialisation, "copy", nullptr, from.allocation, where.line(), where.column()};
  if (!bytes || !is_new(cause)) return;
  const std::size_t all = from.region.width * from.region.count();
  const std::string part = bytes == all ? "all of it is uninitialised"
                                        : std::to_string(bytes) + " of the " + std::to_string(all) +
                                              " bytes are uninitialised, the first of them at byte " +
                                              std::to_string(first);
  add(cause, {bytes != all && longest <= kMostPadding,
              std::string(call) + " copies " + from.called() + " to the host, but " + part, line_at(where),
              describe(*from.allocation)});
}

}  // namespace emulator
