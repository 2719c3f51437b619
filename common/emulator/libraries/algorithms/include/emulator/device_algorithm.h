// Algorithms of libraries as kernels: every access that they or a program's functions make is checked.
#pragma once

#include <cstddef>
#include <string>

#include "cuda_runtime.h"

EMULATOR_BEGIN
namespace emulator {

template <typename Body, typename... Arguments>
__global__ void for_each_thread(std::size_t count, Body body, Arguments... arguments) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) body(i, arguments...);
}

template <typename Body, typename... Arguments>
__global__ void in_one_thread(Body body, Arguments... arguments) {
  body(arguments...);
}

// The function is an argument, too, so that the runtime knows the memory that its pointers point to.
//
// Calls body(i, arguments...) for each i below `count`, by one thread each. `names` are those of the
// arguments in reports, such as "first, result".
template <typename Body, typename... Arguments>
cudaError_t launch_each(const char* name, const char* names, std::size_t count, cudaStream_t stream,
                        Position where, Body body, Arguments... arguments) {
  constexpr std::size_t kThreads = 256;
  if (count == 0) return cudaSuccess;
  const auto blocks = unsigned((count + kThreads - 1) / kThreads);
  const std::string all_names = std::string("function, ") + names;
  launch(
      name, all_names.c_str(), [=](auto&&... given) { for_each_thread(count, given...); },
      config(blocks, unsigned(count < kThreads ? count : kThreads), 0, stream, where))(body, arguments...);
  return cudaPeekAtLastError();
}

// Calls body(arguments...) in one thread.
template <typename Body, typename... Arguments>
cudaError_t launch_once(const char* name, const char* names, cudaStream_t stream, Position where, Body body,
                        Arguments... arguments) {
  const std::string all_names = std::string("function, ") + names;
  launch(
      name, all_names.c_str(), [=](auto&&... given) { in_one_thread(given...); },
      config(1, 1, 0, stream, where))(body, arguments...);
  return cudaPeekAtLastError();
}

}  // namespace emulator
EMULATOR_END
