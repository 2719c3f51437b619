// Textures: texture objects of arrays, linear and pitched memory, in one to three dimensions
// Support: approximate: NVIDIA does not say how the 8-bit weights of linear filtering are rounded
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

constexpr int width = 4, height = 3, depth = 2;

static int wrong = 0;

static void expect(const char* what, double got, double expected) {
  if (got == expected) return;
  fprintf(stderr, "%s: got %g, expected %g\n", what, got, expected);
  wrong++;
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s\n", cudaGetErrorString(error));
  wrong++;
}

struct Sampling {
  cudaTextureAddressMode address = cudaAddressModeClamp;
  cudaTextureFilterMode filter = cudaFilterModePoint;
  cudaTextureReadMode read = cudaReadModeElementType;
  bool is_normalised = false;
  float border = 0;
};

static cudaTextureObject_t texture_of(const cudaResourceDesc& resource, const Sampling& sampling) {
  cudaTextureDesc description = {};
  for (auto& mode : description.addressMode) mode = sampling.address;
  description.filterMode = sampling.filter;
  description.readMode = sampling.read;
  description.normalizedCoords = sampling.is_normalised;
  description.borderColor[0] = sampling.border;
  cudaTextureObject_t texture = 0;
  check(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

static cudaTextureObject_t texture_of(cudaArray_t array, const Sampling& sampling) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return texture_of(resource, sampling);
}

// One thread for each coordinate; a layer is read from the texture of layers.
__global__ void read_1d(cudaTextureObject_t texture, const float* x, float* result) {
  result[threadIdx.x] = tex1D<float>(texture, x[threadIdx.x]);
}
__global__ void read_2d(cudaTextureObject_t texture, const float2* at, float* result) {
  result[threadIdx.x] = tex2D<float>(texture, at[threadIdx.x].x, at[threadIdx.x].y);
}
__global__ void read_3d(cudaTextureObject_t texture, float x, float y, float z, float* result) {
  *result = tex3D<float>(texture, x, y, z);
}
__global__ void read_layer(cudaTextureObject_t texture, float x, float y, int layer, float* result) {
  tex2DLayered(result, texture, x, y, layer);
}
__global__ void read_row_of_layer(cudaTextureObject_t texture, float x, int layer, int2* result) {
  *result = tex1DLayered<int2>(texture, x, layer);
}
__global__ void read_elements(cudaTextureObject_t texture, uchar4* result) {
  result[threadIdx.x] = tex1Dfetch<uchar4>(texture, int(threadIdx.x));
}
__global__ void read_colour(cudaTextureObject_t texture, float4* result) {
  *result = tex2D<float4>(texture, 0.5f, 0.5f);
}

template <typename T>
static T* on_device(const std::vector<T>& values) {
  T* memory;
  check(cudaMalloc(&memory, values.size() * sizeof(T)));
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

static float* result;

static std::vector<float> results(size_t count) {
  std::vector<float> values(count);
  check(cudaMemcpy(values.data(), result, count * sizeof(float), cudaMemcpyDeviceToHost));
  return values;
}

// The texels are 0, 10, 20, 30.
static void one_dimension(cudaArray_t array) {
  struct {
    const char* name;
    Sampling sampling;
    std::vector<float> at, expected;
  } const cases[] = {
      {"point", {}, {0.f, 0.99f, 1.f, 3.5f, -1.f, 9.f}, {0, 0, 10, 30, 0, 30}},
      {"linear",
       {cudaAddressModeClamp, cudaFilterModeLinear},
       {0.5f, 1.f, 1.75f, 0.f, 9.f},
       {0, 5, 12.5f, 0, 30}},
      // Fractions have 8 bits: 0.001 is less than half of 1/256, and 0.999 rounds to 1.
      {"fraction",
       {cudaAddressModeClamp, cudaFilterModeLinear},
       {0.501f, 1.499f, 0.5f + 5.f / 256},
       {0, 10, 50.f / 256}},
      {"border",
       {cudaAddressModeBorder, cudaFilterModePoint, cudaReadModeElementType, false, 7},
       {-0.1f, 0.f, 4.f},
       {7, 0, 7}},
      {"half of the border",
       {cudaAddressModeBorder, cudaFilterModeLinear, cudaReadModeElementType, false, 6},
       {0.f, 4.f},
       {3, 18}},
      {"normalised",
       {cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeElementType, true},
       {0.f, 0.25f, 0.999f, 2.f},
       {0, 10, 30, 30}},
      {"wrap",
       {cudaAddressModeWrap, cudaFilterModePoint, cudaReadModeElementType, true},
       {1.25f, -0.25f, 2.f},
       {10, 30, 0}},
      {"wrapped neighbours",
       {cudaAddressModeWrap, cudaFilterModeLinear, cudaReadModeElementType, true},
       {0.f, 1.f},
       {15, 15}},
      {"mirror",
       {cudaAddressModeMirror, cudaFilterModePoint, cudaReadModeElementType, true},
       {1.f, 1.25f, -0.25f, 2.25f},
       {30, 20, 0, 10}},
  };
  for (const auto& one : cases) {
    cudaTextureObject_t texture = texture_of(array, one.sampling);
    float* at = on_device(one.at);
    read_1d<<<1, unsigned(one.at.size())>>>(texture, at, result);
    const auto values = results(one.at.size());
    for (size_t i = 0; i < values.size(); i++) expect(one.name, values[i], one.expected[i]);
    check(cudaDestroyTextureObject(texture));
    check(cudaFree(at));
  }
}

// Texel [y, x] is 100 y + 10 x, in an array and in pitched memory.
static void two_dimensions(const std::vector<float>& image) {
  const auto format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  check(cudaMallocArray(&array, &format, width, height));
  check(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * sizeof(float), width * sizeof(float), height,
                            cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  auto& pitched = resource.res.pitch2D;
  check(cudaMallocPitch(&pitched.devPtr, &pitched.pitchInBytes, width * sizeof(float), height));
  check(cudaMemcpy2D(pitched.devPtr, pitched.pitchInBytes, image.data(), width * sizeof(float),
                     width * sizeof(float), height, cudaMemcpyHostToDevice));
  pitched.desc = format;
  pitched.width = width;
  pitched.height = height;
  const std::vector<float2> at = {{0.5f, 0.5f}, {1.f, 0.5f}, {2.f, 2.f}, {3.9f, 2.9f}, {-5.f, 1.5f}};
  const float expected[] = {0, 5, 165, 230, 100};
  float2* points = on_device(at);
  for (cudaTextureObject_t texture : {texture_of(array, {cudaAddressModeClamp, cudaFilterModeLinear}),
                                      texture_of(resource, {cudaAddressModeClamp, cudaFilterModeLinear})}) {
    read_2d<<<1, unsigned(at.size())>>>(texture, points, result);
    const auto values = results(at.size());
    for (size_t i = 0; i < at.size(); i++) expect("two dimensions", values[i], expected[i]);
    check(cudaDestroyTextureObject(texture));
  }

  std::vector<float> back(image.size());
  check(cudaMemcpy2DFromArray(back.data(), width * sizeof(float), array, 0, 0, width * sizeof(float), height,
                              cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < back.size(); i++) expect("from the array", back[i], image[i]);
  cudaChannelFormatDesc found;
  cudaExtent extent;
  unsigned int flags;
  check(cudaArrayGetInfo(&found, &extent, &flags, array));
  expect("bits", found.x, 32);
  expect("width", double(extent.width), width);
  expect("depth", double(extent.depth), 0);
  check(cudaFree(points));
  check(cudaFree(pitched.devPtr));
  check(cudaFreeArray(array));
}

static void copy_volume(cudaArray_t array, std::vector<float>& volume) {
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(volume.data(), width * sizeof(float), width, height);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(width, height, depth);  // elements, because of the array
  copy.kind = cudaMemcpyHostToDevice;
  check(cudaMemcpy3D(&copy));
}

// Texel [z, y, x] is 1000 z + 100 y + 10 x.
static void three_dimensions(std::vector<float> volume) {
  const auto format = cudaCreateChannelDesc<float>();
  cudaArray_t array, layers;
  check(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, depth)));
  check(cudaMalloc3DArray(&layers, &format, make_cudaExtent(width, height, depth), cudaArrayLayered));
  copy_volume(array, volume);
  copy_volume(layers, volume);
  cudaTextureObject_t texture = texture_of(array, {cudaAddressModeClamp, cudaFilterModeLinear});
  cudaTextureObject_t layered = texture_of(layers, {cudaAddressModeClamp, cudaFilterModeLinear});
  read_3d<<<1, 1>>>(texture, 1.f, 1.f, 1.f, result);
  expect("three dimensions", results(1)[0], 5 + 50 + 500);
  read_layer<<<1, 1>>>(layered, 1.f, 1.f, 1, result);  // between texels, but not between layers
  expect("layer", results(1)[0], 5 + 50 + 1000);
  check(cudaDestroyTextureObject(texture));
  check(cudaDestroyTextureObject(layered));
  check(cudaFreeArray(array));
  check(cudaFreeArray(layers));
}

static void integers() {
  const auto format = cudaCreateChannelDesc<int2>();
  cudaArray_t rows;
  check(cudaMalloc3DArray(&rows, &format, make_cudaExtent(2, 0, 2), cudaArrayLayered));
  std::vector<int2> values = {{1, -1}, {2, -2}, {3, -3}, {4, -4}};
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(values.data(), 2 * sizeof(int2), 2, 1);
  copy.dstArray = rows;
  copy.extent = make_cudaExtent(2, 1, 2);
  copy.kind = cudaMemcpyHostToDevice;
  check(cudaMemcpy3D(&copy));
  cudaTextureObject_t texture = texture_of(rows, {});
  int2 *pair, got;
  check(cudaMalloc(&pair, sizeof(int2)));
  read_row_of_layer<<<1, 1>>>(texture, 1.5f, 1, pair);
  check(cudaMemcpy(&got, pair, sizeof(int2), cudaMemcpyDeviceToHost));
  expect("layer of a row, x", got.x, 4);
  expect("layer of a row, y", got.y, -4);
  check(cudaDestroyTextureObject(texture));
  check(cudaFreeArray(rows));
  check(cudaFree(pair));
}

// Elements of linear memory, and colours of 8 bits that are read as floats from 0 to 1.
static void colours() {
  const std::vector<uchar4> colours = {{0, 51, 255, 7}, {1, 2, 3, 4}};
  uchar4 *memory = on_device(colours), *copied = on_device(std::vector<uchar4>(2));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = cudaCreateChannelDesc<uchar4>();
  resource.res.linear.sizeInBytes = sizeof(uchar4) * 2;
  cudaTextureObject_t texture = texture_of(resource, {});
  read_elements<<<1, 2>>>(texture, copied);
  uchar4 back[2];
  check(cudaMemcpy(back, copied, sizeof(back), cudaMemcpyDeviceToHost));
  expect("element", back[1].w, 4);
  check(cudaDestroyTextureObject(texture));

  const auto format = cudaCreateChannelDesc<uchar4>();
  cudaArray_t array;
  check(cudaMallocArray(&array, &format, 2, 1));
  check(cudaMemcpyToArray(array, 0, 0, memory, 2 * sizeof(uchar4), cudaMemcpyDeviceToDevice));
  texture = texture_of(array, {cudaAddressModeClamp, cudaFilterModeLinear, cudaReadModeNormalizedFloat});
  float4 *colour, got;
  check(cudaMalloc(&colour, sizeof(float4)));
  read_colour<<<1, 1>>>(texture, colour);
  check(cudaMemcpy(&got, colour, sizeof(got), cudaMemcpyDeviceToHost));
  expect("red", got.x, 0);
  expect("green", got.y, 51.f / 255);
  expect("blue", got.z, 1);
  check(cudaDestroyTextureObject(texture));
  check(cudaFree(colour));
  check(cudaFree(memory));
  check(cudaFree(copied));
  check(cudaFreeArray(array));
}

int main() {
  check(cudaMalloc(&result, 16 * sizeof(float)));
  std::vector<float> volume;
  for (int z = 0; z < depth; z++)
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) volume.push_back(float(1000 * z + 100 * y + 10 * x));
  const auto format = cudaCreateChannelDesc<float>();
  cudaArray_t row;
  check(cudaMallocArray(&row, &format, width));
  check(cudaMemcpy2DToArray(row, 0, 0, volume.data(), width * sizeof(float), width * sizeof(float), 1,
                            cudaMemcpyHostToDevice));
  one_dimension(row);
  two_dimensions({volume.begin(), volume.begin() + width * height});
  three_dimensions(volume);
  integers();
  colours();
  check(cudaFreeArray(row));
  check(cudaFree(result));
  return wrong != 0;
}
