// Driver API: kernels that are loaded from PTX or binaries (cuModuleLoad, cuLaunchKernel)
// Support: refused: the emulator cannot load compiled kernels (cuModuleLoadData)
#include <cuda.h>

#include <cstdio>

static const char* const kEmpty =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry nothing() { ret; }\n";

int main() {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
      cuCtxSetCurrent(context))
    return fprintf(stderr, "there is no device\n"), 1;
  if (cuModuleLoadData(&module, kEmpty) || cuModuleGetFunction(&function, module, "nothing"))
    return fprintf(stderr, "the kernel does not load\n"), 1;
  if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) || cuCtxSynchronize())
    return fprintf(stderr, "the kernel does not run\n"), 1;
  return cuModuleUnload(module) != CUDA_SUCCESS;
}
