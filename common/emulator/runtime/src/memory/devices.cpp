#include "devices.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "../report/call.h"
#include "../state/settings.h"

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

}  // namespace

int device_count() {
  static const char* setting = setting_of("EMULATOR_DEVICES");
  return setting ? std::clamp(std::atoi(setting), 1, kMostDevices) : 1;
}

int current_device() { return current; }

void set_current_device(int device) { current = device; }

int tensor_device() {
  const char* setting = setting_of("EMULATOR_TENSOR_DEVICE");
  return setting ? std::clamp(std::atoi(setting), 0, device_count() - 1) : 0;
}

bool may_access(int device, int peer) { return device == peer || devices().peers.count({device, peer}); }

bool allow_access(int device, int peer) { return devices().peers.insert({device, peer}).second; }

bool forbid_access(int device, int peer) { return devices().peers.erase({device, peer}); }

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
