// CUDA arrays: their memory, and the parts of it that copies use.
#pragma once

#include "../api/memory/copies.h"
#include "image.h"

EMULATOR_BEGIN
namespace emulator {

// For the current call: whether it is an array, freed or not. Reports one that is not, or that was freed.
cudaError_t check_array(const cudaArray* array);
// A box in an array, in bytes and rows. Reports one that does not fit.
cudaError_t rows_in_array(const cudaArray* array, cudaPos at, cudaExtent extent, Rows& rows);

}  // namespace emulator
EMULATOR_END
