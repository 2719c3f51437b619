// Several emulated devices: as many as EMULATOR_DEVICES says when the process starts, all alike.
#pragma once

#include "allocation.h"
#include "emulator/runtime_api.h"

EMULATOR_BEGIN
namespace emulator {

int device_count();
cudaError_t check_device(int device);  // cudaErrorInvalidDevice if there is no such device
int current_device();                  // of this OS thread, by cudaSetDevice
void set_current_device(int device);
bool may_access(int device, int peer);     // by cudaDeviceEnablePeerAccess
bool allow_access(int device, int peer);   // false: it was allowed before
bool forbid_access(int device, int peer);  // false: it was not allowed
int working_device();                      // that runs the work which is under way
void begin_work_on(int device);            // from now on

}  // namespace emulator
EMULATOR_END
