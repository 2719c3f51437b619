// Several emulated devices: as many as EMULATOR_DEVICES says when the process starts, all alike.
#pragma once

#include "../memory/allocation.h"
#include "emulator/runtime_api.h"

EMULATOR_BEGIN
namespace emulator {

int device_count();
cudaError_t check_device(int device);   // cudaErrorInvalidDevice if there is no such device
int current_device();                   // of this OS thread, by cudaSetDevice
bool may_access(int device, int peer);  // by cudaDeviceEnablePeerAccess
int working_device();                   // that runs the work which is under way
void begin_work_on(int device);         // from now on

}  // namespace emulator
EMULATOR_END
