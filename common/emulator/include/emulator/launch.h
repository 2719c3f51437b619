// What the rewriter writes in place of CUDA's own syntax. The contract:
//
//   kernel<T><<<grid, block, shared, stream>>>(args...);
//     ::emulator::launch("kernel<T>", [&](auto... emulator_args) { kernel<T>(emulator_args...); },
//                        ::emulator::config(grid, block, shared, stream))(args...);
//   config takes two to four arguments. The lambda captures by reference, because a kernel may be named
//   through a local alias or a template parameter. The arguments are copied once; each CUDA thread gets its
//   own copy of those.
//
//   __shared__ T name[A][B];
//     T (&name)[A][B] = ::emulator::shared<T[A][B]>(KEY);
//   __shared__ T name;
//     T& name = ::emulator::shared<T>(KEY);
//   KEY is an integer literal, another one for each variable of a file (of its line and column). T may depend
//   on template parameters: each instance of a function has its own variables.
//
//   extern __shared__ T name[];
//     T* name = ::emulator::dynamic_shared<T>();
//
// nvcc includes cuda_runtime.h in front of each .cu; the rewritten copy must, too.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/runtime_api.h"
#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

struct Configuration {
  dim3 grid, block;
  std::size_t shared;  // bytes of dynamic shared memory
  cudaStream_t stream;
};

inline Configuration config(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr) {
  return {grid, block, shared, stream};
}

// Runs `body(closure)` once for each thread of the grid. A launch that a device would refuse sets the error
// that cudaGetLastError returns; a kernel that fails is raised as std::runtime_error.
void run(const char* kernel, const Configuration& configuration, Position where, void (*body)(void*),
         void* closure);

template <typename Kernel>
class Launch {
 public:
  Launch(const char* name, Kernel kernel, const Configuration& configuration, Position where)
      : name_(name), kernel_(kernel), configuration_(configuration), where_(where) {}

  template <typename... Arguments>
  void operator()(Arguments&&... arguments) {
    std::tuple<std::decay_t<Arguments>...> copied(std::forward<Arguments>(arguments)...);
    auto thread = [&] { std::apply(kernel_, std::as_const(copied)); };
    run(
        name_, configuration_, where_, [](void* closure) { (*static_cast<decltype(thread)*>(closure))(); },
        &thread);
  }

 private:
  const char* name_;
  Kernel kernel_;
  Configuration configuration_;
  Position where_;
};

template <typename Kernel>
Launch<Kernel> launch(const char* name, Kernel kernel, const Configuration& configuration,
                      Position where = Position::current()) {
  return {name, kernel, configuration, where};
}

void* shared_memory(long key, const char* function, std::size_t size, std::size_t alignment);
void* dynamic_shared_memory();

template <typename T>
T& shared(long key, Position where = Position::current()) {
  return *static_cast<T*>(shared_memory(key, where.function_name(), sizeof(T), alignof(T)));
}

template <typename T>
T* dynamic_shared() {
  return static_cast<T*>(dynamic_shared_memory());
}

}  // namespace emulator
EMULATOR_END
