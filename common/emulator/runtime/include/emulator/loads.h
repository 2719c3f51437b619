// Loads and stores with a cache hint. Those that bypass the
// first cache may be asked again for another block's answer.
#pragma once

#include "emulator/synchronise.h"

EMULATOR_BEGIN
// clang-format off
template <typename T> T __ldg(const T* address) { return *address; }
template <typename T> T __ldca(const T* address) { return *address; }
template <typename T> T __ldcs(const T* address) { return *address; }
template <typename T> T __ldlu(const T* address) { return *address; }
template <typename T> T __ldcg(const T* address) { emulator::count_poll(); return *static_cast<const volatile T*>(address); }
template <typename T> T __ldcv(const T* address) { emulator::count_poll(); return *static_cast<const volatile T*>(address); }
template <typename T> void __stwb(T* address, T value) { *address = value; }
template <typename T> void __stcg(T* address, T value) { *address = value; }
template <typename T> void __stcs(T* address, T value) { *address = value; }
template <typename T> void __stwt(T* address, T value) { *address = value; }
// clang-format on
EMULATOR_END
