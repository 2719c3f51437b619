// Runtime API: properties, attributes, limits and versions of the device
// Support: approximate: the device is like a Hopper GPU, but small, and the same on every machine
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

// As NVIDIA's helper_cuda.h does.
#define checkCudaErrors(call) check((call), #call, __FILE__, __LINE__)
static void check(cudaError_t result, const char* call, const char* file, int line) {
  if (!result) return;
  fprintf(stderr, "%s:%d: %s: %s (%d)\n", file, line, call, cudaGetErrorName(result),
          static_cast<int>(result));
  exit(1);
}

static int expect_equal(const char* what, long long got, long long expected) {
  if (got == expected) return 0;
  return fprintf(stderr, "%s: got %lld, expected %lld\n", what, got, expected), 1;
}

// CUDA cores of a multiprocessor, by the compute capability.
static int cores_of(int major, int minor) {
  const struct {
    int capability, cores;
  } known[] = {{0x50, 128}, {0x60, 64},  {0x70, 64},  {0x75, 64},
               {0x80, 64},  {0x86, 128}, {0x89, 128}, {0x90, 128}};
  int cores = 0;
  for (const auto& one : known)
    if (one.capability <= (major << 4) + minor) cores = one.cores;
  return cores;
}

// The device with the most floating-point operations per second, as gpuGetMaxGflopsDeviceId finds it.
static int fastest_device() {
  int count = 0, best = -1;
  double best_speed = 0;
  checkCudaErrors(cudaGetDeviceCount(&count));
  for (int device = 0; device < count; device++) {
    int mode, major, minor, processors, clock;
    checkCudaErrors(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device));
    checkCudaErrors(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    checkCudaErrors(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    checkCudaErrors(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    checkCudaErrors(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device));
    if (mode == cudaComputeModeProhibited) continue;
    const double speed = double(processors) * cores_of(major, minor) * clock;
    if (speed > best_speed) best_speed = speed, best = device;
  }
  return best;
}

static int compare_attributes(const cudaDeviceProp& properties, int device) {
  const struct {
    enum cudaDeviceAttr attribute;
    long long expected;
    const char* name;
  } pairs[] = {
      {cudaDevAttrMaxThreadsPerBlock, properties.maxThreadsPerBlock, "MaxThreadsPerBlock"},
      {cudaDevAttrMultiProcessorCount, properties.multiProcessorCount, "MultiProcessorCount"},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, (long long)properties.sharedMemPerBlockOptin, "SharedOptin"},
      {cudaDevAttrWarpSize, properties.warpSize, "WarpSize"},
      {cudaDevAttrL2CacheSize, properties.l2CacheSize, "L2CacheSize"},
      {cudaDevAttrGlobalMemoryBusWidth, properties.memoryBusWidth, "GlobalMemoryBusWidth"},
      {cudaDevAttrTotalConstantMemory, (long long)properties.totalConstMem, "TotalConstantMemory"},
      {cudaDevAttrPciBusId, properties.pciBusID, "PciBusId"},
  };
  int wrong = 0;
  for (const auto& pair : pairs) {
    int value;
    checkCudaErrors(cudaDeviceGetAttribute(&value, pair.attribute, device));
    wrong += expect_equal(pair.name, value, pair.expected);
  }
  return wrong;
}

int main() {
  const int device = fastest_device();
  struct cudaDeviceProp properties;
  checkCudaErrors(cudaSetDevice(device));
  checkCudaErrors(cudaGetDeviceProperties(&properties, device));
  int wrong = compare_attributes(properties, device);
  wrong += expect_equal("compute capability", properties.major, 9);
  wrong += expect_equal("warp size", properties.warpSize, 32);

  char text[32];
  int same;
  checkCudaErrors(cudaDeviceGetPCIBusId(text, sizeof(text), device));
  checkCudaErrors(cudaDeviceGetByPCIBusId(&same, text));
  wrong += expect_equal("device by PCI bus", same, device);

  size_t limit;
  checkCudaErrors(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
  checkCudaErrors(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  wrong += expect_equal("heap of malloc is large enough", limit >= 16 << 20, 1);
  int driver, runtime;
  checkCudaErrors(cudaDriverGetVersion(&driver));
  checkCudaErrors(cudaRuntimeGetVersion(&runtime));
  wrong += expect_equal("driver is new enough", driver >= runtime, 1);
  wrong += expect_equal("invalid device", cudaSetDevice(99), cudaErrorInvalidDevice);
  wrong += expect_equal("last error", cudaGetLastError(), cudaErrorInvalidDevice);
  return wrong != 0;
}
