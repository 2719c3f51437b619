// Stands for torch's header of this name. Tensors of the
// emulator are on the CPU, so any device may be guarded.
#pragma once

#include <optional>

#include "c10/cuda/CUDAFunctions.h"
#include "c10/cuda/CUDAStream.h"

EMULATOR_BEGIN
namespace c10::cuda {

class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex) { ++emulator::device_guards(); }
  explicit CUDAGuard(Device device) : device_(device) { ++emulator::device_guards(); }
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() { --emulator::device_guards(); }

  void set_device(Device device) { device_ = device; }
  void reset_device(Device device) { device_ = device; }
  void set_index(DeviceIndex) {}
  Device original_device() const { return device_; }
  Device current_device() const { return device_; }

 private:
  Device device_{DeviceType::CPU};
};

class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) { guard(device); }
  explicit OptionalCUDAGuard(std::optional<DeviceIndex> index) {
    if (index) set_index(*index);
  }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;
  ~OptionalCUDAGuard() { reset(); }

  void set_device(Device device) { guard(device); }
  void reset_device(Device device) { guard(device); }
  void set_index(DeviceIndex) { guard(Device(DeviceType::CPU)); }
  void reset() { guard(std::nullopt); }
  std::optional<Device> original_device() const { return device_; }
  std::optional<Device> current_device() const { return device_; }

 private:
  void guard(std::optional<Device> device) {
    emulator::device_guards() += int(device.has_value()) - int(device_.has_value());
    device_ = device;
  }

  std::optional<Device> device_;
};

class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream) { ++emulator::device_guards(); }
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;
  ~CUDAStreamGuard() { --emulator::device_guards(); }

  void reset_stream(CUDAStream) {}
  CUDAStream original_stream() const { return {}; }
  CUDAStream current_stream() const { return {}; }
};

}  // namespace c10::cuda
EMULATOR_END
