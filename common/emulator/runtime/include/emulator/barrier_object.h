// cuda::barrier, and copies that arrive in a phase of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <utility>

#include "emulator/atomic_object.h"
#include "emulator/copy_shape.h"

EMULATOR_BEGIN
namespace cuda {

struct empty_completion {
  void operator()() const {}
};

template <thread_scope scope, typename Completion = empty_completion>
class barrier {
  static_assert(::std::is_same_v<Completion, empty_completion>,
                "the emulator does not support a completion function of a cuda::barrier");

 public:
  class arrival_token {
   private:
    friend class barrier;
    explicit arrival_token(::std::uint32_t phase) : phase_(phase) {}
    ::std::uint32_t phase_;
  };

  barrier() = default;
  explicit barrier(::std::ptrdiff_t expected, EMULATOR_HERE) {
    emulator::init_barrier(&memory_, ::std::uint32_t(expected), where);
  }
  ~barrier() { emulator::drop_barrier(&memory_); }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  friend void init(barrier* self, ::std::ptrdiff_t expected, EMULATOR_HERE) {
    emulator::init_barrier(&self->memory_, ::std::uint32_t(expected), where);
  }
  static constexpr ::std::ptrdiff_t max() { return (1 << 20) - 1; }

  [[nodiscard]] arrival_token arrive(::std::ptrdiff_t arrivals = 1, EMULATOR_HERE) {
    return arrival_token(emulator::arrive_at_barrier(&memory_, ::std::uint32_t(arrivals), false, where));
  }
  void arrive_and_drop(EMULATOR_HERE) { emulator::arrive_at_barrier(&memory_, 1, true, where); }
  void wait(arrival_token&& token, EMULATOR_HERE) const {
    emulator::wait_for_phase_of(&memory_, token.phase_, where);
  }
  void arrive_and_wait(EMULATOR_HERE) { wait(arrive(1, where), where); }
  template <typename Number, typename Period>
  bool try_wait_for(arrival_token&& token, const ::std::chrono::duration<Number, Period>&,
                    EMULATOR_HERE) const {
    return emulator::is_phase_complete(&memory_, token.phase_, where);
  }
  void wait_parity(bool parity, EMULATOR_HERE) const {
    emulator::wait_for_phase_of(&memory_, emulator::phase_with_parity(&memory_, parity, where), where);
  }
  template <typename Number, typename Period>
  bool try_wait_parity_for(bool parity, const ::std::chrono::duration<Number, Period>&, EMULATOR_HERE) const {
    return emulator::is_phase_complete(&memory_, emulator::phase_with_parity(&memory_, parity, where), where);
  }

  emulator::AsyncBarrier* emulator_memory() { return &memory_; }

 private:
  mutable emulator::AsyncBarrier memory_;
};

template <thread_scope scope>
void memcpy_async(void* to, const void* from, ::std::size_t bytes, barrier<scope>& arrives_at) {
  emulator::begin_copy(to, from, bytes, 0, arrives_at.emulator_memory());
}
template <typename Group, thread_scope scope>
void memcpy_async(const Group& group, void* to, const void* from, ::std::size_t bytes,
                  barrier<scope>& arrives_at) {
  emulator::begin_group_copy(group, to, from, bytes, arrives_at.emulator_memory());
}

namespace device {

template <typename Barrier>
void* barrier_native_handle(Barrier&) {
  static_assert(!sizeof(Barrier), "the emulator does not support cuda::device::barrier_native_handle");
  return nullptr;
}

}  // namespace device

namespace std {

namespace chrono = ::std::chrono;

template <typename Completion = empty_completion>
using barrier = cuda::barrier<thread_scope_system, Completion>;

}  // namespace std
}  // namespace cuda
EMULATOR_END
