#include "call.h"

#include <algorithm>
#include <mutex>

#include "../state/launch_state.h"

namespace emulator {
namespace {

thread_local cudaError_t last = cudaSuccess;
cudaError_t sticky = cudaSuccess;
bool allocation_failed = false;
const Call* outermost = nullptr;

std::recursive_mutex& one_call() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

std::vector<const char*>& all_notes() {
  static auto& all = *new std::vector<const char*>;
  return all;
}

void set_last_error(cudaError_t error) {
  if (is_called_by_kernel())
    running.thread->last_error = error;
  else
    last = error;
}

}  // namespace

void note(const char* remark) {
  auto& all = all_notes();
  if (std::find(all.begin(), all.end(), remark) == all.end()) all.push_back(remark);
}
void note_skipped_work() {
  note("after an error in a kernel, later launches and copies do nothing and return that error, as on a GPU");
}
const std::vector<const char*>& notes() { return all_notes(); }

cudaError_t fail(cudaError_t error) {
  allocation_failed |= error == cudaErrorMemoryAllocation;
  set_last_error(error);
  return error;
}

cudaError_t last_error() {
  return is_called_by_kernel() ? static_cast<cudaError_t>(running.thread->last_error) : last;
}

void clear_last_error() { set_last_error(cudaSuccess); }

bool has_failed_allocation() { return allocation_failed; }

cudaError_t sticky_error() { return sticky; }

void set_sticky_error(cudaError_t error) {
  if (error == cudaSuccess || sticky == cudaSuccess) sticky = error;
}

Call::Call(const char* name, Position where) : name(name), where(where) {
  one_call().lock();
  if (!outermost) outermost = this;
}

Call::~Call() {
  if (outermost == this) outermost = nullptr;
  one_call().unlock();
}

const Call* Call::under_way() { return outermost; }

void add_call_finding(Check check, const char* problem, const void* about, std::string what,
                      std::string detail, bool is_warning) {
  if (!is_on(check)) return;
  const Position where = outermost ? outermost->where : Position{};
  const Cause cause{check, problem, nullptr, about, where.line(), where.column()};
  if (is_new(cause))
    add(cause, {is_warning, std::move(what), where.line() ? line_at(where) : "", std::move(detail)});
}

cudaError_t no_such(const char* what) {
  add_call_finding(Check::streams, "no such thing", nullptr,
                   std::string(Call::under_way()->name) + " is given " + what + " that does not exist",
                   "it was never created, or is already destroyed", true);
  return fail(cudaErrorInvalidResourceHandle);
}

}  // namespace emulator
