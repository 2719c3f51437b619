// Launches that a GPU rejects: the reason with numbers, and whether the host noticed.
//
// A refused launch only sets the error that cudaGetLastError returns. If the host reads this error, the
// reason is shown as a warning, because the host can handle it. If the host launches again or ends without
// reading it, the reason is an error.
#pragma once

#include <string>

#include "emulator/launch.h"
#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

// Whether a GPU would refuse a launch of these sizes. If so, the launch is refused.
bool is_refused(const char* kernel, const Configuration& configuration, const cudaDeviceProp& device,
                Position where);

// Known only when the kernel runs: static and dynamic shared memory together exceed the limit.
void refuse_shared(const char* kernel, std::size_t static_size, std::size_t dynamic_size, std::size_t allowed,
                   Position where);

void host_checked_error();  // by a call that returned an error
void raise_unchecked();     // at the start of a launch, which holds the lock of launches
void add_unchecked();       // at the end of a plain program: unchecked errors become findings

}  // namespace emulator
EMULATOR_END
