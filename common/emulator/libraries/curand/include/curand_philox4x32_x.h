// Stands for cuRAND's header of this name: the generator Philox, which curand_kernel.h declares with the
// rest.
#pragma once

#include "curand_kernel.h"
