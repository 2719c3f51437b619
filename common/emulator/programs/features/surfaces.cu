// Textures: surfaces, which kernels read and write, in one to three dimensions and in layers
// Support: yes
#include <cuda_runtime.h>

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

// x counts bytes.
__global__ void fill_volume(cudaSurfaceObject_t volume) {
  const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  surf3Dwrite(100 * z + 10 * y + x, volume, x * int(sizeof(int)), y, z);
}
__global__ void read_volume(cudaSurfaceObject_t volume, int* result) {
  const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  result[(z * height + y) * width + x] = surf3Dread<int>(volume, x * int(sizeof(int)), y, z);
}
__global__ void add_to_image(cudaSurfaceObject_t from, cudaSurfaceObject_t to, float value) {
  const int x = threadIdx.x * sizeof(float2), y = threadIdx.y;
  float2 element;
  surf2Dread(&element, from, x, y);
  surf2Dwrite(make_float2(element.x + value, element.y - value), to, x, y);
}
// Outside, a read returns the nearest element or zero, and a write does nothing.
__global__ void read_outside(cudaSurfaceObject_t image, float2* result) {
  result[0] = surf2Dread<float2>(image, -8, 7, cudaBoundaryModeClamp);
  result[1] = surf2Dread<float2>(image, -8, 7, cudaBoundaryModeZero);
  surf2Dwrite(make_float2(1, 1), image, width * int(sizeof(float2)), 0, cudaBoundaryModeZero);
}
__global__ void fill_row(cudaSurfaceObject_t row) {
  surf1Dwrite((unsigned char)(3 * threadIdx.x), row, int(threadIdx.x));
}
__global__ void read_row(cudaSurfaceObject_t row, int* result) {
  result[threadIdx.x] = surf1Dread<unsigned char>(row, int(threadIdx.x));
}
__global__ void fill_layers(cudaSurfaceObject_t layers) {
  surf2DLayeredwrite(short(threadIdx.x + 10 * blockIdx.x), layers, int(threadIdx.x * sizeof(short)), 0,
                     int(blockIdx.x));
}
__global__ void read_layers(cudaTextureObject_t layers, int* result) {
  const float x = threadIdx.x + 0.5f;
  result[blockIdx.x * width + threadIdx.x] = tex2DLayered<short>(layers, x, 0.5f, int(blockIdx.x));
}

static cudaSurfaceObject_t surface_of(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  check(cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}

static int* result;

static std::vector<int> results(int count) {
  std::vector<int> values(count);
  check(cudaMemcpy(values.data(), result, count * sizeof(int), cudaMemcpyDeviceToHost));
  return values;
}

static void volume() {
  const auto format = cudaCreateChannelDesc<int>();
  cudaArray_t array;
  check(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, depth), cudaArraySurfaceLoadStore));
  cudaSurfaceObject_t surface = surface_of(array);
  fill_volume<<<1, dim3(width, height, depth)>>>(surface);
  read_volume<<<1, dim3(width, height, depth)>>>(surface, result);
  const auto values = results(width * height * depth);
  for (int z = 0, i = 0; z < depth; z++)
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) expect("volume", values[i++], 100 * z + 10 * y + x);
  check(cudaDestroySurfaceObject(surface));
  check(cudaFreeArray(array));
}

static void images() {
  const auto format = cudaCreateChannelDesc<float2>();
  std::vector<float2> image;
  for (int i = 0; i < width * height; i++) image.push_back(make_float2(float(i), float(-i)));
  constexpr size_t row = width * sizeof(float2);
  cudaArray_t from, to, copy;
  check(cudaMallocArray(&from, &format, width, height, cudaArraySurfaceLoadStore));
  check(cudaMallocArray(&to, &format, width, height, cudaArraySurfaceLoadStore));
  check(cudaMallocArray(&copy, &format, width, height));
  check(cudaMemcpy2DToArray(from, 0, 0, image.data(), row, row, height, cudaMemcpyHostToDevice));
  cudaSurfaceObject_t surface_from = surface_of(from), surface_to = surface_of(to);
  add_to_image<<<1, dim3(width, height)>>>(surface_from, surface_to, 0.5f);
  check(cudaMemcpy2DArrayToArray(copy, 0, 0, to, 0, 0, row, height));
  std::vector<float2> back(image.size());
  check(cudaMemcpy2DFromArray(back.data(), row, copy, 0, 0, row, height, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < image.size(); i++) {
    expect("image, x", back[i].x, image[i].x + 0.5f);
    expect("image, y", back[i].y, image[i].y - 0.5f);
  }
  float2 *outside, got[2];
  check(cudaMalloc(&outside, sizeof(got)));
  read_outside<<<1, 1>>>(surface_from, outside);
  check(cudaMemcpy(got, outside, sizeof(got), cudaMemcpyDeviceToHost));
  expect("clamped", got[0].x, width * (height - 1));
  expect("zero", got[1].x, 0);
  check(cudaDestroySurfaceObject(surface_from));
  check(cudaDestroySurfaceObject(surface_to));
  for (cudaArray_t array : {from, to, copy}) check(cudaFreeArray(array));
  check(cudaFree(outside));
}

static void row_and_layers() {
  const auto bytes = cudaCreateChannelDesc<unsigned char>();
  cudaArray_t row, layers;
  check(cudaMallocArray(&row, &bytes, width, 0, cudaArraySurfaceLoadStore));
  cudaSurfaceObject_t surface = surface_of(row);
  fill_row<<<1, width>>>(surface);
  read_row<<<1, width>>>(surface, result);
  for (int x = 0; x < width; x++) expect("row", results(width)[x], 3 * x);
  check(cudaDestroySurfaceObject(surface));
  check(cudaFreeArray(row));

  const auto shorts = cudaCreateChannelDesc<short>();
  check(cudaMalloc3DArray(&layers, &shorts, make_cudaExtent(width, 1, depth),
                          cudaArrayLayered | cudaArraySurfaceLoadStore));
  surface = surface_of(layers);
  fill_layers<<<depth, width>>>(surface);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = layers;
  cudaTextureDesc description = {};
  cudaTextureObject_t texture;
  check(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  read_layers<<<depth, width>>>(texture, result);  // another launch: it sees what the surface has stored
  const auto values = results(depth * width);
  for (int i = 0; i < depth * width; i++) expect("layers", values[i], i % width + 10 * (i / width));
  check(cudaDestroyTextureObject(texture));
  check(cudaDestroySurfaceObject(surface));
  check(cudaFreeArray(layers));
}

int main() {
  check(cudaMalloc(&result, width * height * depth * sizeof(int)));
  volume();
  images();
  row_and_layers();
  check(cudaFree(result));
  return wrong != 0;
}
