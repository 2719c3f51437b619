// Stands for CUDA's header of this name: the driver API, as far as it loads no kernels.
#pragma once

#include "cuda_runtime.h"
#include "emulator/driver_api.h"
