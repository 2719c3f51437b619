// Checks whether a kernel may access an address in global memory, and reports why not.
#include <cstdio>

#include "../memory/bindings.h"
#include "../memory/devices.h"
#include "../memory/shared_memory.h"
#include "../report/call.h"
#include "../report/report.h"
#include "../scheduler/failure.h"
#include "../scheduler/scheduler.h"
#include "../state/builtin_variables.h"
#include "../state/module_image.h"
#include "accesses.h"
#include "early_accesses.h"

namespace emulator {
namespace {

constexpr std::ptrdiff_t kNearVariable = 256, kNearHeapBlock = 16,
                         kNearManaged = 1 << 20;  // bytes that an overrun may go beyond

[[noreturn]] void refuse(const Access& access, const char* problem, const void* about, std::string what,
                         std::string detail) {
  const Cause cause{Check::memory, problem, access.pc, about};
  if (is_new(cause)) add(cause, {false, std::move(what), "", std::move(detail)});
  end_thread();
}

std::string verb(const Access& access) {
  if (is_atomic(access.kind)) return "updates";
  return access.is_write ? "writes" : "reads";
}

std::string address_text(const std::byte* address) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address)));
  return text;
}

std::string bytes_into(std::ptrdiff_t offset) {
  return std::to_string(offset) + (offset == 1 ? " byte into " : " bytes into ");
}

[[noreturn]] void refuse_null(const Access& access) {
  const std::string which = null_arguments();
  const char* why = has_failed_allocation()
                        ? " was null at the launch: an allocation has failed with cudaErrorMemoryAllocation"
                        : " was null at the launch: was it never allocated, or is it an optional argument "
                          "that was left out?";
  refuse(access, "null", nullptr, verb(access) + " through a null pointer",
         which.empty() ? "address " + address_text(access.address) : which + why);
}

[[noreturn]] void refuse_unknown(const Access& access) {
  std::string detail =
      "address " + address_text(access.address) + ", which is far from every argument of the kernel";
  if (const BoundArgument* only = only_argument_of(access.size))
    detail += "; if " + only->argument.name + " was meant, this is " +
              element_of(*only->allocation, access.address, access.size) + " of " +
              describe(*only->allocation);
  refuse(access, "unknown memory", nullptr,
         verb(access) + " memory outside every tensor, array and allocation", std::move(detail));
}

[[noreturn]] void refuse_host_memory(const Access& access, const BoundArgument& near) {
  refuse(access, "host memory", near.argument.pointer,
         verb(access) + " host memory through " + near.argument.name,
         "a kernel can access only memory from cudaMalloc and related functions");
}

[[noreturn]] void refuse_outside(const Access& access, const Allocation& allocation) {
  const bool in_front = access.address < allocation.begin;
  const bool within = !in_front && access.address < allocation.end();
  const char* problem = in_front ? "before the beginning" : within ? "outside" : "past the end";
  const std::string name = name_of(allocation);
  std::string what = verb(access) +
                     (within     ? " outside of "
                      : in_front ? " before the beginning of "
                                 : " past the end of ") +
                     name;
  std::string element = element_of(allocation, access.address, access.size);
  std::string detail = (element.empty() ? "" : element + " of ") + describe(allocation);
  if (within) detail += "; the address is in its storage but outside the tensor";
  refuse(access, problem, identity_of(allocation), std::move(what), std::move(detail));
}

// An address outside every allocation goes through these rules in order. If a rule recognises the address, it
// allows the access or does not return. Otherwise the next rule decides.
enum class Verdict { allowed, undecided };

Verdict judge_builtin_variable(const Access& access) {
  return is_builtin(access.address) ? Verdict::allowed : Verdict::undecided;
}

// No memory lies there, even if that of an argument begins nearby, as the heap of a program at a low address
// can.
Verdict judge_null(const Access& access) {
  if (is_null(access.address)) refuse_null(access);
  return Verdict::undecided;
}

// The compiler's constants, and variables that are unknown to the runtime, but not what is between or behind
// variables.
Verdict judge_own_data(const Access& access) {
  const bool is_own = is_own_data(access.address);
  const bool is_outside_variables =
      !is_own || (is_own_variable(access.address) && !is_in_variable(access.address));
  if (is_outside_variables)
    if (const Allocation* variable = find_neighbour(access.address, Space::variable, kNearVariable))
      refuse_outside(access, *variable);
  if (!is_own) return Verdict::undecided;
  if (const std::string name = host_variable_at(access.address); !name.empty())
    refuse(access, "host variable", nullptr,
           verb(access) + " host memory: " + name + ", which is not __device__",
           "a GPU cannot access variables of the host, and nvcc refuses to compile this");
  return Verdict::allowed;
}

Verdict judge_overrun_of_heap(const Access& access) {
  if (const Allocation* block = find_neighbour(access.address, Space::heap, kNearHeapBlock))
    refuse_outside(access, *block);
  return Verdict::undecided;
}

// A `__managed__` variable has guard pages on both sides.
Verdict judge_overrun_of_managed_variable(const Access& access) {
  const Allocation* variable = find_neighbour(access.address, Space::managed, kNearManaged);
  if (variable && variable->is_static) refuse_outside(access, *variable);
  return Verdict::undecided;
}

Verdict judge_overrun_of_argument(const Access& access) {
  const BoundArgument* near = nearest_argument(access.address, access.pc);
  if (near && near->allocation) refuse_outside(access, *near->allocation);
  return Verdict::undecided;
}

// The host of a stage may have obtained a pointer in a way that the runtime does not see.
Verdict judge_unseen_pointer(const Access& access) {
  const bool may_be_unseen =
      nearest_argument(access.address, access.pc) || running.launch->structure_pointers.has_unknown;
  return !collect_until_exit && may_be_unseen ? Verdict::allowed : Verdict::undecided;
}

Verdict judge_host_memory(const Access& access) {
  if (const BoundArgument* near = nearest_argument(access.address, access.pc))
    refuse_host_memory(access, *near);
  return Verdict::undecided;
}

void check_unallocated(const Access& access) {
  static constexpr Verdict (*kRules[])(const Access&) = {
      judge_null,
      judge_builtin_variable,
      judge_own_data,
      judge_overrun_of_heap,
      judge_overrun_of_managed_variable,
      judge_overrun_of_argument,
      judge_unseen_pointer,
      judge_host_memory,
  };
  for (const auto rule : kRules)
    if (rule(access) == Verdict::allowed) return;
  refuse_unknown(access);
}

void check_not_freed(const Access& access, const Allocation& allocation) {
  if (!allocation.freed) return;
  const Position where = allocation.freed_where;
  refuse(access, "after free", identity_of(allocation),
         verb(access) + " " + name_of(allocation) + " after it was freed" +
             (where.line() ? " in " + line_at(where) : ""),
         describe(allocation));
}

bool is_of_one_device(const Allocation& allocation) {
  const Space space = allocation.space;
  return space == Space::device || space == Space::array || space == Space::tensor;
}

void check_device_access(const Access& access, const Allocation& allocation) {
  const int device = running.launch->device;
  if (!is_of_one_device(allocation) || may_access(device, allocation.device)) return;
  const std::string here = std::to_string(device), there = std::to_string(allocation.device);
  set_error(cudaErrorIllegalAddress);
  refuse(access, "other device", identity_of(allocation),
         verb(access) + " " + name_of(allocation) + ", which is memory of device " + there +
             ", but the kernel runs on device " + here,
         "device " + here + " needs cudaDeviceEnablePeerAccess(" + there + ", 0) for that; " +
             describe(allocation));
}

void check_writable(const Access& access, const Allocation& allocation) {
  if (!access.is_write) return;
  if (allocation.read_only)
    refuse(access, "read-only", &allocation, "writes " + name_of(allocation) + ", which is read-only",
           describe(allocation));
  if (!is_given_to_read(allocation)) return;
  const Cause cause{Check::memory, "read-only", access.pc, &allocation};
  if (is_new(cause))
    add(cause, {false, "writes " + name_of(allocation) + ", which was passed to the kernel as const data", "",
                describe(allocation)});
}

}  // namespace

void check_alignment(const Access& access, const SharedVariable* variable) {
  const std::size_t mask = access.size - 1;  // sizes are powers of two: a division would take longer
  if ((reinterpret_cast<std::uintptr_t>(access.address) & mask) == 0) return;
  std::string detail = "a GPU stops with an error: such an address must be a multiple of " +
                       std::to_string(access.size) + " bytes";
  std::string of;
  if (const Allocation* allocation = access.allocation) {
    of = " of " + name_of(*allocation);
    detail = bytes_into(access.address - allocation->begin) + describe(*allocation) + "; " + detail;
  }
  if (variable) {
    of = " of " + name_of(*variable);
    detail = bytes_into(access.address - access.arena - std::ptrdiff_t(variable->offset)) +
             name_of(*variable) + ", a __shared__ variable; " + detail;
  }
  set_error(cudaErrorMisalignedAddress);
  refuse(access, "misaligned", access.allocation,
         verb(access) + " " + std::to_string(access.size) + " bytes" + of + " at a misaligned address",
         std::move(detail));
}

void check_memory(Access& access, bool is_copy) {
  access.allocation = find_allocation(access.address, access.pc);
  if (access.allocation && access.allocation->is_static)
    report_early_accesses(*access.allocation, access.is_write);
  if (!is_on(Check::memory)) return;
  if (!access.allocation) return check_unallocated(access);
  const Allocation& allocation = *access.allocation;
  check_not_freed(access, allocation);
  check_device_access(access, allocation);
  if (!is_copy) check_alignment(access);
  if (!is_given(allocation, access.address, access.size)) refuse_outside(access, allocation);
  check_writable(access, allocation);
}

bool may_access_all(const Allocation& allocation, bool is_write) {
  return !allocation.is_static && !(is_write && is_given_to_read(allocation));
}

bool is_scalar_in_variable(const void* address, std::size_t size) {
  const Allocation* allocation = find_allocation(address);
  return allocation && allocation->space == Space::variable && holds_scalars(*allocation, size);
}

}  // namespace emulator
