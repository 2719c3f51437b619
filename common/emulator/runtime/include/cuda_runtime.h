// Stands for CUDA's header of this name: what kernels and their launchers use, for the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulator/array_api.h"
#include "emulator/atomics.h"
#include "emulator/graph_api.h"
#include "emulator/groups.h"
#include "emulator/heap.h"
#include "emulator/kernel_api.h"
#include "emulator/launch.h"
#include "emulator/launch_api.h"
#include "emulator/loads.h"
#include "emulator/maths.h"
#include "emulator/memory_api.h"
#include "emulator/qualifiers.h"
#include "emulator/runtime_api.h"
#include "emulator/shared_address.h"
#include "emulator/synchronise.h"
#include "emulator/textures.h"
#include "emulator/types.h"

// Programs ask for these to know which of CUDA's headers are included.
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __DRIVER_TYPES_H__
#define __VECTOR_TYPES_H__
