// Stands for torch's header of this name. The emulator's tensors are on the CPU, and the CPU's index -1
// stands for the device that EMULATOR_TENSOR_DEVICE names.
#pragma once

#include <optional>

#include "c10/cuda/CUDAFunctions.h"
#include "c10/cuda/CUDAGraphsC10Utils.h"
#include "c10/cuda/CUDAStream.h"

EMULATOR_BEGIN
namespace c10::cuda {

class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex index) : original_(c10::cuda::current_device()) {
    set_index(index);
    ++emulator::device_guards();
  }
  explicit CUDAGuard(Device device) : CUDAGuard(device.index()) {}
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() {
    --emulator::device_guards();
    static_cast<void>(cudaSetDevice(original_));
  }

  void set_device(Device device) { set_index(device.index()); }
  void reset_device(Device device) { set_index(device.index()); }
  void set_index(DeviceIndex index) { c10::cuda::set_device(index < 0 ? emulator::tensor_device() : index); }
  Device original_device() const { return Device(DeviceType::CPU); }
  Device current_device() const { return Device(DeviceType::CPU); }

 private:
  DeviceIndex original_;
};

class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) set_device(*device);
  }
  explicit OptionalCUDAGuard(std::optional<DeviceIndex> index) {
    if (index) set_index(*index);
  }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;

  void set_device(Device device) { set_index(device.index()); }
  void reset_device(Device device) { set_index(device.index()); }
  void set_index(DeviceIndex index) { guard_ ? guard_->set_index(index) : void(guard_.emplace(index)); }
  void reset() { guard_.reset(); }
  std::optional<Device> original_device() const { return current_device(); }
  std::optional<Device> current_device() const {
    return guard_ ? std::optional(guard_->current_device()) : std::nullopt;
  }

 private:
  std::optional<CUDAGuard> guard_;
};

// Makes the stream's device current. Which stream is current changes nothing here.
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream) : current_(stream), guard_(stream.device_index()) {}
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;

  void reset_stream(CUDAStream stream) {
    guard_.set_index(stream.device_index());
    current_ = stream;
  }
  CUDAStream original_stream() const { return original_; }
  CUDAStream current_stream() const { return current_; }

 private:
  CUDAStream original_, current_;
  CUDAGuard guard_;
};

}  // namespace c10::cuda
EMULATOR_END
