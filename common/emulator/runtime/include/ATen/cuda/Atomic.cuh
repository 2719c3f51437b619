// Stands for torch's header of this name.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

EMULATOR_BEGIN
template <typename T>
T gpuAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}
inline long gpuAtomicAdd(long* address, long value) {  // int64_t, which CUDA's own atomicAdd lacks
  return long(
      atomicAdd(reinterpret_cast<unsigned long long*>(address), static_cast<unsigned long long>(value)));
}
template <typename T>
void gpuAtomicAddNoReturn(T* address, T value) {
  gpuAtomicAdd(address, value);
}
EMULATOR_END
