// What CUB's functions for the whole device share. The first call asks for the size of temporary memory, as
// on a GPU.
#pragma once

#include "emulator/cub_operators.h"
#include "emulator/device_algorithm.h"

EMULATOR_BEGIN
namespace emulator::cub {

constexpr std::size_t kTemporary = 1024;  // bytes that programs allocate even if none are needed

// Whether a call only asks for the size of temporary memory, or does not have enough; `result` is then the
// call's.
inline bool is_answered(void* temporary, std::size_t& bytes, std::size_t needed, cudaError_t& result) {
  result = temporary && bytes < needed ? cudaErrorInvalidValue : cudaSuccess;
  if (!temporary) bytes = needed;
  return !temporary || result;
}

// Runs body(arguments...) in one thread, unless the call only asks for the size.
template <typename Body, typename... Arguments>
cudaError_t run(const char* name, const char* names, void* temporary, std::size_t& bytes, cudaStream_t stream,
                Position where, Body body, Arguments... arguments) {
  cudaError_t result;
  if (is_answered(temporary, bytes, kTemporary, result)) return result;
  return launch_once(name, names, stream, where, body, arguments...);
}

template <typename Iterator>
using ValueOf = std::decay_t<decltype(*std::declval<Iterator>())>;

}  // namespace emulator::cub
EMULATOR_END
