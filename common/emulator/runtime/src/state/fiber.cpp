#include "fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <new>
#include <vector>

namespace emulator {
namespace {

// As much as a GPU gives a thread; only pages that are used take memory. Below the stack is a guard, memory
// that cannot be accessed.
constexpr std::size_t kStack = 512 << 10, kGuard = 64 << 10;
constexpr std::size_t kMostMappedGuards = 16384;
constexpr int kGuardAdvice = 102;  // MADV_GUARD_INSTALL, which older headers do not define

struct Pool {
  std::vector<Fiber*> all, free;
};
Pool& pool() {
  static EMULATOR_OF_CORE Pool* pool = nullptr;  // outlives every static object
  if (!pool) pool = new Pool;
  return *pool;
}

EMULATOR_OF_CORE JumpBuffer scheduler;
EMULATOR_OF_CORE Fiber* current_fiber = nullptr;
void (*fiber_work)() = nullptr;

// Before Linux 6.13, a guard divides a mapping, and a process may have only 65,530 mappings. So the stacks of
// later fibers have no guard there.
void make_guard(void* memory, std::size_t number_of_fiber) {
  if (madvise(memory, kGuard, kGuardAdvice) != 0 && number_of_fiber < kMostMappedGuards)
    mprotect(memory, kGuard, PROT_NONE);
}

// In a function of its own, because GCC demands it of a function that calls __builtin_setjmp.
[[noreturn, gnu::noinline]] void jump_to(JumpBuffer& buffer) { __builtin_longjmp(buffer, 1); }

}  // namespace

Fiber::Fiber() {
  void* memory = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const std::size_t number = pool().all.size();
  make_guard(memory, number);
  bottom_ = static_cast<char*>(memory) + kGuard;
  // Stacks that begin at the same offset in a page would evict each other from the cache.
  top_ = bottom_ + kStack - number % 61 * 64;
}

Fiber& Fiber::take() {
  Pool& fibers = pool();
  if (fibers.free.empty()) {
    fibers.all.reserve(fibers.all.size() + 1);
    fibers.all.push_back(new Fiber);
    fibers.free.reserve(fibers.all.capacity());
    fibers.free.push_back(fibers.all.back());
  }
  Fiber* fiber = fibers.free.back();
  fibers.free.pop_back();
  fiber->taken_ = true;
  return *fiber;
}

void Fiber::set_work(void (*work)()) { fiber_work = work; }
Fiber* Fiber::running() { return current_fiber; }
std::size_t Fiber::count() { return pool().all.size(); }

void Fiber::enter() { fiber_work(); }

void Fiber::resume() {
  current_fiber = this;
  if (__builtin_setjmp(scheduler) == 0) {
    if (started_) jump_to(context_);
    started_ = true;
    ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = bottom_;
    start.uc_stack.ss_size = std::size_t(top_ - bottom_);
    start.uc_link = nullptr;
    makecontext(&start, enter, 0);
    setcontext(&start);
  }
  current_fiber = nullptr;
}

void Fiber::suspend() {
  if (__builtin_setjmp(current_fiber->context_) == 0) jump_to(scheduler);
}

void Fiber::switch_to(Fiber& next) {
  if (__builtin_setjmp(current_fiber->context_) != 0) return;
  current_fiber = &next;
  jump_to(next.context_);
}

void Fiber::leave() { jump_to(scheduler); }

void Fiber::drop() {
  current_fiber->started_ = false;
  current_fiber->give_back();
  leave();
}

void Fiber::give_back() {
  taken_ = false;
  pool().free.push_back(this);
}

void Fiber::abandon_all() {
  for (Fiber* fiber : pool().all)
    if (fiber->taken_) {
      fiber->started_ = false;
      fiber->give_back();
    }
}

bool Fiber::guards(const void* address) const { return address >= bottom_ - kGuard && address < bottom_; }

}  // namespace emulator
