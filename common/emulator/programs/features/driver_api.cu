// Driver API: devices, contexts, memory, streams and events (not cuModuleLoad)
// Support: yes
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                             \
  do {                                                          \
    if (const CUresult result = (call)) stop(result, __LINE__); \
  } while (0)

static void stop(CUresult result, int line) {
  const char *name = "?", *text = "?";
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  fprintf(stderr, "line %d: %s: %s\n", line, name, text);
  exit(1);
}

__global__ void add(unsigned* x) { x[threadIdx.x] += threadIdx.x; }

static int expect_equal(const char* what, long long got, long long expected) {
  if (got == expected) return 0;
  return fprintf(stderr, "%s: got %lld, expected %lld\n", what, got, expected), 1;
}

int main() {
  CUdevice device;
  CUcontext context, current;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuCtxGetCurrent(&current));
  int wrong = expect_equal("current context", current == context, 1);

  int major, warp;
  size_t bytes;
  char name[64] = "";
  CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  CHECK(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  CHECK(cuDeviceTotalMem(&bytes, device));
  CHECK(cuDeviceGetName(name, sizeof(name), device));
  wrong += expect_equal("compute capability", major, 9) + expect_equal("warp size", warp, 32);
  wrong += expect_equal("has a name and memory", name[0] && bytes, 1);

  constexpr int count = 64;
  unsigned results[count];
  CUdeviceptr x;
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&x, sizeof(results)));
  CHECK(cuMemsetD32(x, 1000, count));
  CHECK(cuCtxSynchronize());
  add<<<1, count, 0, stream>>>(reinterpret_cast<unsigned*>(x));
  CHECK(cuMemcpyDtoHAsync(results, x, sizeof(results), stream));
  CHECK(cuStreamSynchronize(stream));
  for (int i = 0; i < count; i++) wrong += expect_equal("result", results[i], 1000 + i);
  CHECK(cuMemFree(x));
  CHECK(cuStreamDestroy(stream));

  const char* text;
  CHECK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  wrong += expect_equal("name of an error", strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY"), 0);
  wrong += expect_equal("no such device", cuDeviceGet(&device, 1000), CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDevicePrimaryCtxRelease(0));
  return wrong != 0;
}
