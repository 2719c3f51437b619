// Headers: NVTX and cuda_profiler_api.h
// Support: approximate: ranges and marks have no effect
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

__global__ void square(float* x) { x[threadIdx.x] *= x[threadIdx.x]; }

// A range with a colour, as long as the object lives.
class Range {
 public:
  explicit Range(const char* name) {
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = 0xff00ff00;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    nvtxRangePushEx(&attributes);
  }
  ~Range() { nvtxRangePop(); }
};

int main() {
  float *x, results[4] = {1, 2, 3, 4};
  cudaMalloc(&x, sizeof(results));
  cudaMemcpy(x, results, sizeof(results), cudaMemcpyHostToDevice);
  cudaProfilerStart();
  {
    const Range range("square");
    nvtxMark("launch");
    square<<<1, 4>>>(x);
  }
  const nvtxRangeId_t copy = nvtxRangeStartA("copy");
  cudaMemcpy(results, x, sizeof(results), cudaMemcpyDeviceToHost);
  nvtxRangeEnd(copy);
  cudaProfilerStop();
  cudaFree(x);
  for (int i = 0; i < 4; i++)
    if (results[i] != (i + 1) * (i + 1))
      return fprintf(stderr, "element %d: got %g, expected %d\n", i, results[i], (i + 1) * (i + 1)), 1;
  return 0;
}
