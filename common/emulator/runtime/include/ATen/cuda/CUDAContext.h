// Stands for torch's header of this name.
#pragma once

#include "ATen/cuda/CUDAContextLight.h"
#include "ATen/cuda/Exceptions.h"
#include "c10/cuda/CUDAStream.h"
