// The built-in variables, writable. Headers declare them const, which is what the code of one thread sees.
#include "emulator/qualifiers.h"

#define threadIdx declared_const_threadIdx
#define blockIdx declared_const_blockIdx
#define blockDim declared_const_blockDim
#define gridDim declared_const_gridDim
#include "emulator/types.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

#include "builtin_variables.h"

EMULATOR_BEGIN
EMULATOR_OF_CORE uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
extern const int warpSize = 32;
EMULATOR_END

namespace emulator {

void set_thread(uint3 thread, uint3 block) {
  threadIdx = thread;
  blockIdx = block;
}

bool is_builtin(const void* address) {
  const auto in = [&](const auto& variable) { return address >= &variable && address < &variable + 1; };
  return in(threadIdx) || in(blockIdx) || in(blockDim) || in(gridDim) || in(warpSize);
}

void set_launch(dim3 grid, dim3 block) {
  gridDim = grid;
  blockDim = block;
}

}  // namespace emulator
