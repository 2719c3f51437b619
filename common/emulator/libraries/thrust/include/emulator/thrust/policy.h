// Where Thrust's algorithms run: as kernels, on the host, or in the thread of a kernel that calls them.
#pragma once

#include <cstddef>
#include <new>

#include "emulator/device_algorithm.h"
#include "emulator/thrust/iterators.h"

namespace thrust {

struct HostPolicy {};
struct DevicePolicy {
  cudaStream_t stream = nullptr;
  bool waits = true;

  DevicePolicy on(cudaStream_t other) const { return {other, waits}; }
  template <typename Allocator>
  DevicePolicy operator()(Allocator&&) const {
    return *this;
  }
};
inline constexpr HostPolicy host, seq;
inline constexpr DevicePolicy device;
namespace cuda {
inline constexpr DevicePolicy par, par_nosync{nullptr, false};
}

template <typename T>
concept APolicy = std::is_same_v<T, DevicePolicy> || std::is_same_v<T, HostPolicy>;

template <typename... Iterators>
constexpr auto policy_of(const Iterators&...) {
  if constexpr ((is_on_device<Iterators> || ...))
    return device;
  else
    return host;
}

// Calls body(i, iterators...) for each i below `count`, by one thread each.
template <APolicy Policy, typename Body, typename... Iterators>
void for_each_index(const Policy& policy, const char* name, const char* names, std::ptrdiff_t count,
                    emulator::Position where, Body body, Iterators... iterators) {
  if constexpr (std::is_same_v<Policy, DevicePolicy>)
    if (!emulator::runs_in_kernel()) {
      if (count <= 0) return;
      check(emulator::launch_each(name, names, std::size_t(count), policy.stream, where, body,
                                  raw(iterators)...),
            name);
      if (policy.waits) check(cudaStreamSynchronize(policy.stream), name);
      return;
    }
  for (std::ptrdiff_t i = 0; i < count; i++) body(std::size_t(i), raw(iterators)...);
}

// Calls body(iterators...) in one thread.
template <APolicy Policy, typename Body, typename... Iterators>
void run(const Policy& policy, const char* name, const char* names, emulator::Position where, Body body,
         Iterators... iterators) {
  if constexpr (std::is_same_v<Policy, DevicePolicy>)
    if (!emulator::runs_in_kernel()) {
      check(emulator::launch_once(name, names, policy.stream, where, body, raw(iterators)...), name);
      if (policy.waits) check(cudaStreamSynchronize(policy.stream), name);
      return;
    }
  body(raw(iterators)...);
}

// Memory of the device for one algorithm.
template <typename T>
class Temporary {
 public:
  Temporary(std::size_t count, emulator::Position where) {
    void* memory = nullptr;
    if (emulator::runs_in_kernel())
      memory = ::malloc(count * sizeof(T) + 1);
    else
      check(cudaMalloc(&memory, count * sizeof(T) + 1, where), "thrust");
    memory_ = static_cast<T*>(memory);
  }
  ~Temporary() {
    if (emulator::runs_in_kernel())
      ::free(memory_);
    else
      cudaFree(memory_);
  }
  Temporary(const Temporary&) = delete;
  T* get() const { return memory_; }

 private:
  T* memory_;
};

// The same, for a body that returns a result.
template <typename Result, APolicy Policy, typename Body, typename... Iterators>
Result compute(const Policy& policy, const char* name, const char* names, emulator::Position where, Body body,
               Iterators... iterators) {
  if constexpr (std::is_same_v<Policy, DevicePolicy>)
    if (!emulator::runs_in_kernel()) {
      const Temporary<Result> on_device(1, where);
      Result* const result = on_device.get();
      run(
          DevicePolicy{policy.stream, true}, name, names, where,
          [=](auto... each) mutable { new (result) Result(body(each...)); }, iterators...);
      alignas(Result) unsigned char bytes[sizeof(Result)];
      check(cudaMemcpy(bytes, on_device.get(), sizeof(Result), cudaMemcpyDeviceToHost), name);
      return *reinterpret_cast<Result*>(bytes);
    }
  return body(raw(iterators)...);
}

}  // namespace thrust
