// CUDA's functions for devices and for access to the memory of others.
#include "../memory/devices.h"

#include "../report/call.h"

using namespace emulator;

namespace {

cudaError_t check_peers(int device, int peer) {
  if (check_device(device) || check_device(peer) || device == peer) return fail(cudaErrorInvalidDevice);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) { return *count = device_count(), cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current_device(), cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (sticky_error()) return sticky_error();
  if (check_device(device)) return cudaErrorInvalidDevice;
  return set_current_device(device), cudaSuccess;
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
  if (const cudaError_t error = check_peers(current_device(), peer)) return error;
  return allow_access(current_device(), peer) ? cudaSuccess : fail(cudaErrorPeerAccessAlreadyEnabled);
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (const cudaError_t error = check_peers(current_device(), peer)) return error;
  return forbid_access(current_device(), peer) ? cudaSuccess : fail(cudaErrorPeerAccessNotEnabled);
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
