// Stands for torch's header of this name.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

EMULATOR_BEGIN
template <typename T>
T gpuAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}
inline c10::Half gpuAtomicAdd(c10::Half* address, c10::Half value) {
  return atomicAdd(reinterpret_cast<__half*>(address), __half(value));
}
inline c10::BFloat16 gpuAtomicAdd(c10::BFloat16* address, c10::BFloat16 value) {
  return atomicAdd(reinterpret_cast<__nv_bfloat16*>(address), __nv_bfloat16(value));
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
