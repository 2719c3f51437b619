// Launches that a GPU rejects: the reason with numbers, and whether the host noticed.
//
// A refused launch only sets the error that cudaGetLastError returns. If the host reads this error, the
// reason is shown as a warning, because the host can handle it. If the host launches again or ends without
// reading it, the reason is an error.
#pragma once

#include <optional>
#include <string>

#include "../state/launch_state.h"
#include "emulator/launch.h"
#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

std::optional<Refusal> refusal_of_launch(const Configuration& configuration, const cudaDeviceProp& device);
// The error with which a GPU refuses a launch of these sizes; cudaSuccess if it does not.
cudaError_t refuse_early(const char* kernel, const Configuration& configuration, const cudaDeviceProp& device,
                         Position where);

// Known only when the kernel runs: its static shared memory, and the clusters that it declares.
std::optional<Refusal> refusal_of_shared(const Configuration& configuration, std::size_t static_size,
                                         std::size_t allowed, const cudaDeviceProp& device);
std::optional<Refusal> refusal_of_clusters(const Configuration& configuration, const cudaDeviceProp& device);
// How many blocks run at once in clusters. There is always room for one cluster, however large its blocks
// are: a GPU that has clusters has enough multiprocessors for it.
unsigned most_blocks_in_clusters(dim3 block, std::size_t shared, const cudaDeviceProp& device);
// The launch asks for other clusters than the kernel declares.
Refusal refusal_of_two_clusters(dim3 asked, dim3 declared);
// The launch asks for more threads per block than the kernel's __launch_bounds__ allow.
Refusal refusal_of_threads(long long asked, long long allowed);
void refuse_late(const char* kernel, const Refusal& refusal, Position where);

constexpr unsigned kPortableCluster = 8, kLargestCluster = 16;  // blocks

void host_checked_error();  // by a call that returned an error
void raise_unchecked();     // at the start of a launch, which holds the lock of launches
void add_unchecked();       // at the end of a plain program: unchecked errors become findings

}  // namespace emulator
EMULATOR_END
