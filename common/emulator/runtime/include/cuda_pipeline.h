// Stands for CUDA's header of this name.
#pragma once

#include "cuda_pipeline_primitives.h"
