// Launches that a device refuses: why, with numbers, and whether the host noticed.
//
// A refused launch sets the error that cudaGetLastError returns, and nothing else happens. When the host asks
// for the error, the reason is shown as a warning: what to do is the host's affair then. When it launches
// again or ends without having asked, the reason is an error.
#pragma once

#include <string>

#include "emulator/launch.h"
#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

// Whether a device would refuse a launch of these sizes; the launch is refused then.
bool is_refused(const char* kernel, const Configuration& configuration, const cudaDeviceProp& device,
                Position where);

// What only a kernel that runs can tell: static and dynamic shared memory together are too much.
void refuse_shared(const char* kernel, std::size_t static_size, std::size_t dynamic_size, std::size_t allowed,
                   Position where);

void host_checked_error();  // by a call that returned an error
void raise_unchecked();     // at the start of a launch, which holds the lock of launches
void add_unchecked();       // at the end of a plain program: they become findings

}  // namespace emulator
EMULATOR_END
