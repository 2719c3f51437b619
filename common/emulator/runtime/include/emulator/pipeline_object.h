// cuda::pipeline. That of one thread has batches of copies. That of a group has two barriers for each stage:
// one for the producers, which fill it, and one for the consumers, which empty it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/barrier_object.h"

EMULATOR_BEGIN
namespace cuda {

enum class pipeline_role { producer, consumer };

template <thread_scope scope, ::std::uint8_t stages>
struct pipeline_shared_state {
  pipeline_shared_state() = default;
  pipeline_shared_state(const pipeline_shared_state&) = delete;
  emulator::AsyncBarrier full[stages], empty[stages];
};

template <thread_scope scope>
class pipeline {
 public:
  pipeline(emulator::AsyncBarrier* full, emulator::AsyncBarrier* empty, ::std::uint32_t stages)
      : full_(full), empty_(empty), stages_(stages) {}
  pipeline(pipeline&&) = default;
  pipeline(const pipeline&) = delete;

  // Waits until the consumers have released the stage.
  void producer_acquire(EMULATOR_HERE) {
    if (stages_ && filled_ >= stages_)
      emulator::wait_for_phase_of(&empty_[filled_ % stages_], filled_ / stages_ - 1, where);
  }
  void producer_commit(EMULATOR_HERE) {
    if (stages_)
      emulator::arrive_at_barrier(&full_[filled_ % stages_], 1, false, where);
    else
      emulator::commit_copies();
    filled_++;
  }
  // Waits until the oldest stage that has not been waited for is full.
  void consumer_wait(EMULATOR_HERE) {
    if (stages_)
      emulator::wait_for_phase_of(&full_[waited_ % stages_], waited_ / stages_, where);
    else
      emulator::wait_for_oldest_copies();
    waited_++;
  }
  void consumer_release(EMULATOR_HERE) {
    if (stages_) emulator::arrive_at_barrier(&empty_[released_ % stages_], 1, false, where);
    released_++;
  }

  emulator::AsyncBarrier* emulator_barrier() { return stages_ ? &full_[filled_ % stages_] : nullptr; }

 private:
  emulator::AsyncBarrier *full_, *empty_;
  ::std::uint32_t stages_;  // 0: the pipeline of one thread
  ::std::uint32_t filled_ = 0, waited_ = 0, released_ = 0;
};

inline pipeline<thread_scope_thread> make_pipeline() { return {nullptr, nullptr, 0}; }

namespace emulated {

template <typename Group, thread_scope scope, ::std::uint8_t stages>
pipeline<scope> make_pipeline(const Group& group, pipeline_shared_state<scope, stages>* state,
                              ::std::size_t producers, ::std::size_t consumers, emulator::Position where) {
  if (group.thread_rank() == 0)
    for (int stage = 0; stage < stages; stage++) {
      emulator::init_barrier(&state->full[stage], ::std::uint32_t(producers), where);
      emulator::init_barrier(&state->empty[stage], ::std::uint32_t(consumers), where);
    }
  group.sync(where);
  return {state->full, state->empty, stages};
}

}  // namespace emulated

// Every thread produces and consumes.
template <typename Group, thread_scope scope, ::std::uint8_t stages>
pipeline<scope> make_pipeline(const Group& group, pipeline_shared_state<scope, stages>* state,
                              EMULATOR_HERE) {
  return emulated::make_pipeline(group, state, group.size(), group.size(), where);
}
template <typename Group, thread_scope scope, ::std::uint8_t stages>
pipeline<scope> make_pipeline(const Group& group, pipeline_shared_state<scope, stages>* state,
                              ::std::size_t producers, EMULATOR_HERE) {
  return emulated::make_pipeline(group, state, producers, group.size() - producers, where);
}
template <typename Group, thread_scope scope, ::std::uint8_t stages>
pipeline<scope> make_pipeline(const Group& group, pipeline_shared_state<scope, stages>* state,
                              pipeline_role role, EMULATOR_HERE) {
  const int producers = __syncthreads_count(role == pipeline_role::producer, where);
  return emulated::make_pipeline(group, state, ::std::size_t(producers),
                                 group.size() - ::std::size_t(producers), where);
}

template <::std::uint8_t batches>
void pipeline_consumer_wait_prior(pipeline<thread_scope_thread>&) {
  emulator::wait_for_copies(batches);
}

template <thread_scope scope>
void memcpy_async(void* to, const void* from, ::std::size_t bytes, pipeline<scope>& pipeline) {
  emulator::begin_copy(to, from, bytes, 0, pipeline.emulator_barrier());
}
template <typename Group, thread_scope scope>
void memcpy_async(const Group& group, void* to, const void* from, ::std::size_t bytes,
                  pipeline<scope>& pipeline) {
  emulator::begin_group_copy(group, to, from, bytes, pipeline.emulator_barrier());
}

}  // namespace cuda
EMULATOR_END
