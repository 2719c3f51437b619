// The rung "loop": for each step a product of cuBLAS and a kernel for the pointwise part.
#pragma once

#include "../operators/operators.h"

// Launch all steps on the current stream. The arguments are prepared.
void run_loop(const ForwardArguments& given, const ForwardResults& made);
void run_loop(const BackwardArguments& given, const BackwardResults& made);
