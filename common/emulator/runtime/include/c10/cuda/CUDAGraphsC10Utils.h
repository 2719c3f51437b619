// Stands for torch's header of this name: whether a stream captures its work for a graph.
#pragma once

#include <optional>
#include <ostream>

#include "c10/cuda/CUDAException.h"
#include "c10/cuda/CUDAStream.h"

EMULATOR_BEGIN
namespace c10::cuda {

using CaptureId_t = unsigned long long;

enum class CaptureStatus : int {
  None = cudaStreamCaptureStatusNone,
  Active = cudaStreamCaptureStatusActive,
  Invalidated = cudaStreamCaptureStatusInvalidated
};

inline std::ostream& operator<<(std::ostream& out, CaptureStatus status) {
  switch (status) {
    case CaptureStatus::None:
      return out << "cudaStreamCaptureStatusNone";
    case CaptureStatus::Active:
      return out << "cudaStreamCaptureStatusActive";
    default:
      return out << "cudaStreamCaptureStatusInvalidated";
  }
}

inline CaptureStatus captureStatusMayInitCtx(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  C10_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
  return CaptureStatus(status);
}
inline CaptureStatus currentStreamCaptureStatusMayInitCtx() {
  return captureStatusMayInitCtx(getCurrentCUDAStream());
}
inline std::optional<CaptureId_t> captureIdMayInitCtx(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CaptureId_t id = 0;
  C10_CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, &id));
  return status == cudaStreamCaptureStatusActive ? std::optional(id) : std::nullopt;
}
inline std::optional<CaptureId_t> currentStreamCaptureIdMayInitCtx() {
  return captureIdMayInitCtx(getCurrentCUDAStream());
}
inline bool isStreamCapturingMayInitCtx(cudaStream_t stream) {
  return captureStatusMayInitCtx(stream) == CaptureStatus::Active;
}

}  // namespace c10::cuda
EMULATOR_END
