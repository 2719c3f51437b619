// What the rewriter writes in place of CUDA's own syntax. The contract:
//
//   kernel<T><<<grid, block, shared, stream>>>(args...);
//     ::emulator::launch("kernel<T>", "x, y", [=](auto&&... emulator_args) { kernel<T>(emulator_args...); },
//                        ::emulator::config(grid, block, shared, stream))(args...);
//   An argument for a parameter that is a reference becomes ::emulator::reference(arg). config takes two to
//   four arguments, and stands where `<<<` stood: the launch is at its place. Then come the names of the
//   kernel's parameters, or what the arguments say. A literal 0 or NULL for a pointer becomes nullptr. The
//   arguments and what the lambda captures are copied once, and live until the work is done; each CUDA thread
//   gets its own copy of the arguments.
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
// nvcc includes cuda_runtime.h at the top of each .cu; the rewritten copy must do so, too.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/arguments.h"
#include "emulator/runtime_api.h"
#include "emulator/state.h"

// Streams for launches by kernels.
#define cudaStreamTailLaunch ((cudaStream_t)0x3)
#define cudaStreamFireAndForget ((cudaStream_t)0x4)

EMULATOR_BEGIN
namespace emulator {

struct Configuration {
  dim3 grid, block;
  std::size_t shared;  // bytes of dynamic shared memory
  cudaStream_t stream;
  Position where;                        // the line of `<<<`; the column is that of the rewritten text
  dim3 cluster{0, 0, 0};                 // blocks; all zero: as the kernel declares it
  bool is_cooperative = false;           // all blocks run at the same time
  bool allows_any_cluster_size = false;  // more than eight blocks, which not every device has
  std::size_t allowed_shared = 0;        // dynamic, of this kernel
};

inline Configuration config(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr,
                            Position where = Position::current()) {
  return {grid, block, shared, stream, where};
}

// A launch, as work that may wait in a stream.
struct LaunchInfo {
  const char* kernel;  // "forward_kernel<float>"
  Configuration configuration;
  std::vector<Argument> arguments;
  void (*body)(void*);  // one thread, given the closure
  void* closure;        // the kernel, what it captured, and its arguments
  std::size_t closure_size;
  void (*destroy)(void*);  // of the closure, when the work is done
};

// Runs the body once for each thread of the grid. A kernel that fails is raised as std::runtime_error.
void run(const LaunchInfo& info);

void refuse_in_kernels();  // calls that a kernel cannot use to launch another

// While a kernel launches another with <<< >>>, its accesses are those of the runtime.
class LaunchCall {
 public:
  LaunchCall();
  ~LaunchCall();
  LaunchCall(const LaunchCall&) = delete;

 private:
  const bool is_in_kernel_;
};

// Gives a launch to its stream, and the closure away. One that a
// device would refuse sets the error that cudaGetLastError returns.
cudaError_t submit(LaunchInfo info);

// A literal 0 or NULL in a launch of a kernel that the rewriter has not seen: a number or a null pointer.
struct Zero {
  constexpr operator int() const { return 0; }
  template <typename T>
  constexpr operator T*() const {
    return nullptr;
  }
};

// An argument that the kernel's parameter refers to: the kernel accesses the host's variable itself.
template <typename T>
struct Reference {
  T* target;
};
template <typename T>
Reference<T> reference(T&& value) {
  return {&value};
}
template <typename T>
Reference<T> reference(T& value) {
  return {&value};
}

template <typename T>
const T& passed(const T& value) {
  return value;
}
template <typename T>
T& passed(const Reference<T>& reference) {
  return *reference.target;
}

template <typename T>
Argument argument(const Reference<T>& reference) {
  return argument<T*>(reference.target);
}

template <typename Kernel, typename... Arguments>
struct Closure {
  Kernel kernel;
  std::tuple<Arguments...> arguments;

  static void thread(void* closure) {
    const auto& self = *static_cast<const Closure*>(closure);
    std::apply([&](const auto&... each) { self.kernel(passed(each)...); }, self.arguments);
  }
  static void destroy(void* closure) { delete static_cast<Closure*>(closure); }
};

template <typename Kernel, typename... Arguments>
LaunchInfo prepare_launch(const char* name, const char* names, Kernel kernel,
                          const Configuration& configuration, std::tuple<Arguments...> arguments) {
  using Own = Closure<Kernel, Arguments...>;
  // What the rewriter makes of a launch captures nothing if it names a kernel.
  constexpr bool is_variable = !std::is_empty_v<Kernel> && !std::is_function_v<std::remove_pointer_t<Kernel>>;
  auto* closure = new Own{std::move(kernel), std::move(arguments)};
  auto described = std::apply([](const auto&... each) { return std::vector<Argument>{argument(each)...}; },
                              closure->arguments);
  name_arguments(described, names);
  LaunchInfo info{name,    configuration, std::move(described), &Own::thread,
                  closure, sizeof(Own),   &Own::destroy};
  info.configuration.allowed_shared = allowed_dynamic_shared(name, is_variable);
  return info;
}

template <typename Kernel>
class Launch {
 public:
  Launch(const char* name, const char* names, Kernel kernel, const Configuration& configuration)
      : name_(name), names_(names), kernel_(std::move(kernel)), configuration_(configuration) {}

  template <typename... Arguments>
  __attribute__((noinline)) void operator()(Arguments&&... arguments) {
    const LaunchCall call;
    submit(prepare_launch(name_, names_, std::move(kernel_), configuration_,
                          std::tuple<std::decay_t<Arguments>...>(std::forward<Arguments>(arguments)...)));
  }

 private:
  const char *name_, *names_;
  Kernel kernel_;
  Configuration configuration_;
};

template <typename Kernel>
Launch<Kernel> launch(const char* name, const char* names, Kernel kernel,
                      const Configuration& configuration) {
  return {name, names, std::move(kernel), configuration};
}

void* shared_memory(long key, Position where, const char* name, std::size_t size, std::size_t alignment,
                    const ArrayShape& shape);
void* dynamic_shared_memory(const char* name, const ArrayShape& shape);

template <typename T>
T& shared(long key, const char* name = "", Position where = Position::current()) {
  return *static_cast<T*>(shared_memory(key, where, name, sizeof(T), alignof(T), ArrayShapeOf<T>::value));
}

template <typename T>
T* dynamic_shared(const char* name = "") {
  return static_cast<T*>(dynamic_shared_memory(name, ArrayShapeOf<T[1]>::value));
}

}  // namespace emulator
EMULATOR_END
