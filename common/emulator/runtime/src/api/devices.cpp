#include "devices.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "../report/settings.h"
#include "call.h"

namespace emulator {
namespace {

constexpr int kMostDevices = 16;

thread_local int current = 0;
int working = 0;

struct Devices {
  std::set<std::pair<int, int>> peers;  // a device, and one whose memory it may access
  std::map<const Allocation*, std::map<int, std::vector<std::byte>>>
      variables;  // their values on other devices
};
Devices& devices() {
  static auto& all = *new Devices;  // outlives every static object
  return all;
}

// Before the first work: all devices start with the same values.
void remember_variables() {
  for (const Allocation* variable : all_allocations()) {
    if (variable->space != Space::variable) continue;
    auto& values = devices().variables[variable];
    for (int device = 0; device < device_count(); device++)
      values[device] = {variable->begin, variable->end()};
  }
}

// Each device has its own value of a variable: it is in the variable while work of that device runs.
void exchange_variables(int from, int to) {
  for (auto& [variable, values] : devices().variables) {
    values[from].assign(variable->begin, variable->end());
    std::memcpy(variable->begin, values[to].data(), variable->size);
  }
}

cudaError_t check_peers(int device, int peer) {
  if (check_device(device) || check_device(peer) || device == peer) return fail(cudaErrorInvalidDevice);
  return cudaSuccess;
}

}  // namespace

int device_count() {
  static const char* setting = setting_of("EMULATOR_DEVICES");
  return setting ? std::clamp(std::atoi(setting), 1, kMostDevices) : 1;
}

int current_device() { return current; }

int tensor_device() {
  const char* setting = setting_of("EMULATOR_TENSOR_DEVICE");
  return setting ? std::clamp(std::atoi(setting), 0, device_count() - 1) : 0;
}

bool may_access(int device, int peer) { return device == peer || devices().peers.count({device, peer}); }

int working_device() { return working; }

void begin_work_on(int device) {
  if (device_count() == 1) return;
  [[maybe_unused]] static const bool is_first = (remember_variables(), true);
  if (device == working) return;
  exchange_variables(working, device);
  working = device;
}

cudaError_t check_device(int device) {
  return device >= 0 && device < device_count() ? cudaSuccess : fail(cudaErrorInvalidDevice);
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaGetDeviceCount(int* count) { return *count = device_count(), cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (sticky_error()) return sticky_error();
  if (check_device(device)) return cudaErrorInvalidDevice;
  return current = device, cudaSuccess;
}
cudaError_t cudaSetValidDevices(int* wanted, int count) {
  if (!wanted || count <= 0) return fail(cudaErrorInvalidValue);
  for (int i = 0; i < count; i++)
    if (check_device(wanted[i])) return cudaErrorInvalidDevice;
  return cudaSuccess;
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return *device = 0, cudaSuccess; }

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (check_device(device) || check_device(peer)) return cudaErrorInvalidDevice;
  return *can = device != peer, cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  if (flags) return fail(cudaErrorInvalidValue);
  if (const cudaError_t error = check_peers(current, peer)) return error;
  return devices().peers.insert({current, peer}).second ? cudaSuccess
                                                        : fail(cudaErrorPeerAccessAlreadyEnabled);
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (const cudaError_t error = check_peers(current, peer)) return error;
  return devices().peers.erase({current, peer}) ? cudaSuccess : fail(cudaErrorPeerAccessNotEnabled);
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  if (const cudaError_t error = check_peers(device, peer)) return error;
  const bool is_supported =
      attribute == cudaDevP2PAttrAccessSupported || attribute == cudaDevP2PAttrNativeAtomicSupported;
  return *value = is_supported, cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) { return fail(cudaErrorNotSupported); }
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) { return fail(cudaErrorNotSupported); }
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) { return fail(cudaErrorNotSupported); }
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned int) {
  return fail(cudaErrorNotSupported);
}
cudaError_t cudaIpcCloseMemHandle(void*) { return fail(cudaErrorNotSupported); }
