// Kernels as values. The rewriter writes, where a kernel is passed to a function, cast to `void*` or stored:
//
//   cudaLaunchCooperativeKernel((void*)kernel<T>, ...)
//     cudaLaunchCooperativeKernel((void*)::emulator::kernel(kernel<T>, "kernel<T>", "x, const y"), ...)
//
// This records the names, and how to call the kernel when only its address is known.
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/launch.h"

EMULATOR_BEGIN
namespace emulator {

// Copies the arguments that `pointers` point to, and describes the launch; where and how it runs is left
// open.
using MakeLaunch = LaunchInfo (*)(const void* function, void** pointers);

struct KernelInfo {
  const char* name;
  const char* parameters;  // their names, as for `launch`
  MakeLaunch make_launch;  // null: nothing but the address is known
};
void record_kernel(const void* function, const KernelInfo& info);
KernelInfo info_of_kernel(const void* function);

template <typename... Parameters, typename... Arguments>
LaunchInfo make_launch(void (*kernel)(Parameters...), Arguments&&... arguments) {
  using Own = Closure<void (*)(Parameters...), std::decay_t<Parameters>...>;
  auto* closure =
      new Own{kernel, std::tuple<std::decay_t<Parameters>...>(std::forward<Arguments>(arguments)...)};
  auto described = std::apply([](const auto&... each) { return std::vector<Argument>{argument(each)...}; },
                              closure->arguments);
  const KernelInfo info = info_of_kernel(reinterpret_cast<const void*>(kernel));
  name_arguments(described, info.parameters);
  return {info.name, {}, std::move(described), &Own::thread, closure, sizeof(Own), &Own::destroy};
}

template <typename... Parameters, std::size_t... numbers>
LaunchInfo make_launch_from(void (*kernel)(Parameters...), void** pointers, std::index_sequence<numbers...>) {
  return make_launch(kernel, *static_cast<std::decay_t<Parameters>*>(pointers[numbers])...);
}

template <typename... Parameters>
LaunchInfo make_launch_of(const void* function, void** pointers) {
  const auto kernel = reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(function));
  return make_launch_from(kernel, pointers, std::index_sequence_for<Parameters...>{});
}

template <typename... Parameters>
auto kernel(void (*function)(Parameters...), const char* name, const char* parameters) {
  record_kernel(reinterpret_cast<const void*>(function), {name, parameters, &make_launch_of<Parameters...>});
  return function;
}
template <typename Other>  // not a kernel, but a variable of the same name
decltype(auto) kernel(Other&& other, const char*, const char*) {
  return std::forward<Other>(other);
}

}  // namespace emulator
EMULATOR_END
