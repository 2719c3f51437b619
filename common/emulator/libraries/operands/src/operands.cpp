#include "emulator/operands.h"

#include <cstdio>
#include <stdexcept>

#include "../../../runtime/src/memory/devices.h"
#include "../../../runtime/src/races/initialisation.h"
#include "../../../runtime/src/report/report.h"

namespace emulator {
namespace {

Cause cause_of(Check check, const char* problem, const void* about, Position where) {
  return {check, problem, nullptr, about, where.line(), where.column()};
}

void check_initialised(const char* call, Position where, const Operand& operand) {
  const Rows& region = operand.region;
  std::size_t bytes = 0, first = 0;
  for (std::size_t y = 0; y < region.count(); y++) {
    const UninitialisedBytes row = uninitialised_in(*operand.allocation, region.row(y), region.width);
    if (row.bytes && !bytes) first = std::size_t(region.row(y) - region.row(0)) + row.first;
    bytes += row.bytes;
  }
  const Cause cause = cause_of(Check::initialisation, "operand", operand.allocation, where);
  if (!bytes || !is_new(cause)) return;
  const std::size_t all = region.width * region.count();
  const std::string part = bytes == all ? "all of it is uninitialised"
                                        : std::to_string(bytes) + " of the " + std::to_string(all) +
                                              " bytes are uninitialised, the first of them at byte " +
                                              std::to_string(first);
  add(cause, {false, std::string(call) + " reads " + operand.name + ", but " + part, line_at(where),
              describe(*operand.allocation)});
}

// In an extension, each call raises its own findings, as a launch does.
void raise_findings(const char* call, Position where) {
  if (collect_until_exit || !has_findings()) return;
  const bool is_wrong = has_errors();
  const std::string text =
      std::string("the emulator found in ") + call + ", called in " + line_at(where) + ":\n" + take_report();
  if (is_wrong) throw std::runtime_error(text);
  std::fputs(text.c_str(), stderr);
}

// Checks what is known only when the work runs, computes, and marks the results as initialised.
void run_checked(const char* call, Position where, const std::vector<Operand>& operands,
                 const std::function<void()>& compute) {
  for (const Operand& operand : operands) {
    if (!operand.allocation) continue;
    if (operand.allocation->freed) {  // by another stream in the meantime
      const Cause cause = cause_of(Check::memory, "after free", operand.allocation, where);
      if (is_on(Check::memory) && is_new(cause))
        add(cause, {false,
                    std::string(call) + " accesses " + operand.name + " after it was freed in " +
                        line_at(operand.allocation->freed_where),
                    line_at(where), describe(*operand.allocation)});
      return;
    }
    if (operand.is_read && is_on(Check::initialisation)) check_initialised(call, where, operand);
  }
  compute();
  for (const Operand& operand : operands)
    if (operand.is_written && operand.allocation)
      for (std::size_t y = 0; y < operand.region.count(); y++)
        mark_initialised(*operand.allocation, operand.region.row(y), operand.region.width);
}

}  // namespace

LibraryCall::LibraryCall(const char* name, Position where) : call_(name, where) { read_settings(); }

void LibraryCall::refuse(const char* problem, const Operand& operand, const std::string& what,
                         std::string detail) {
  is_refused_ = true;
  const void* about = operand.allocation ? operand.allocation : operand.region.begin;
  const Cause cause = cause_of(Check::memory, problem, about, call_.where);
  if (!is_on(Check::memory) || !is_new(cause)) return;
  const std::string does = operand.is_written ? " writes " : " reads ";
  if (detail.empty() && operand.allocation) detail = describe(*operand.allocation);
  add(cause, {false, call_.name + does + what, line_at(call_.where), std::move(detail)});
}

void LibraryCall::add_operand(const char* parameter, int argument, const Rows& region, bool is_read,
                              bool is_written) {
  if (!region.width || !region.count()) return;
  Operand operand{region, find_allocation(region.begin), parameter, is_read, is_written};
  const std::string text = argument_text(call_.name, call_.where, argument);
  if (!text.empty() && text != parameter) operand.name += " (" + text + ")";
  const Allocation* allocation = operand.allocation;
  if (!region.begin) return refuse("null", operand, operand.name + ", a null pointer", "");
  if (!allocation) {
    if (!collect_until_exit) return operands_.push_back(operand);  // a tensor that the runtime does not know
    return refuse("ordinary host memory", operand, operand.name + ", which is ordinary host memory",
                  "a kernel cannot access it: allocate the operand with cudaMalloc or cudaMallocManaged");
  }
  if (allocation->freed)
    return refuse("after free", operand,
                  operand.name + " after it was freed in " + line_at(allocation->freed_where), "");
  if (allocation->space == Space::device && !may_access(current_device(), allocation->device))
    return refuse("other device", operand,
                  operand.name + ", which is memory of device " + std::to_string(allocation->device) +
                      ", but the call runs on device " + std::to_string(current_device()),
                  "");
  if (is_written && allocation->read_only)
    return refuse("read-only", operand, operand.name + ", which is read-only memory", "");
  const auto left = std::size_t(allocation->end() - region.row(0));
  if (region.span() > left)
    return refuse("past the end of", operand, "past the end of " + operand.name,
                  "the operand has " + std::to_string(region.span()) + " bytes, and there are " +
                      std::to_string(left) + "; " + describe(*allocation));
  operands_.push_back(std::move(operand));
}

cudaError_t LibraryCall::submit(cudaStream_t stream, std::function<void()> compute) {
  raise_findings(call_.name, call_.where);
  if (sticky_error()) return note_skipped_work(), sticky_error();
  if (is_refused_) return cudaErrorIllegalAddress;
  std::vector<MemoryUse> uses;
  for (const Operand& operand : operands_) uses.push_back(operand.region.use(operand.is_written));
  Work work{call_.name, call_.where, nullptr, std::move(uses)};
  work.type = cudaGraphNodeTypeKernel;
  work.run = [name = call_.name, where = call_.where, operands = operands_, compute = std::move(compute)] {
    run_checked(name, where, operands, compute);
  };
  const cudaError_t error = enqueue(stream, std::move(work));
  raise_findings(call_.name, call_.where);
  return error;
}

cudaError_t LibraryCall::submit_and_wait(cudaStream_t stream, std::function<void()> compute) {
  if (is_stream(stream) && is_captured(stream))
    return refuse_in_capture("result on the host", "its result goes to the host; let it go to the device");
  if (const cudaError_t error = submit(stream, std::move(compute))) return error;
  return finish(stream);
}

void LibraryCall::run(const std::function<void()>& compute) {
  if (!is_refused_) run_checked(call_.name, call_.where, operands_, compute);
}

}  // namespace emulator
