// Stands for cuRAND's header of this name: normal numbers, which curand_kernel.h declares with the rest.
#pragma once

#include "curand_kernel.h"
