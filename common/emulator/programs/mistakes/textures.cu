// Textures and surfaces: objects, types, coordinates, and memory that is written in the same launch.
#include "case.h"

constexpr int kWidth = 8, kHeight = 4;

static cudaArray_t images[4];
static int image_count = 0;

template <typename T>
cudaArray_t unwritten_image(unsigned int flags = cudaArraySurfaceLoadStore) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  cudaArray_t image;
  check(cudaMallocArray(&image, &format, kWidth, kHeight, flags));
  return images[image_count++] = image;
}

template <typename T>
cudaArray_t written_image() {
  cudaArray_t image = unwritten_image<T>();
  T host[kHeight][kWidth];
  for (int i = 0; i < kWidth * kHeight; i++) host[0][i] = T(i);
  check(cudaMemcpy2DToArray(image, 0, 0, host, sizeof(host[0]), sizeof(host[0]), kHeight,
                            cudaMemcpyHostToDevice));
  return image;
}

cudaResourceDesc resource_of(cudaArray_t image) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = image;
  return resource;
}

void free_images() {
  while (image_count) check(cudaFreeArray(images[--image_count]));
}

struct Texture {
  cudaTextureObject_t tex;
  explicit Texture(cudaArray_t image) : Texture(resource_of(image)) {}
  explicit Texture(const cudaResourceDesc& resource) {
    const cudaTextureDesc sampling = {};
    check(cudaCreateTextureObject(&tex, &resource, &sampling, nullptr));
  }
};

struct Surface {
  cudaSurfaceObject_t surf;
  explicit Surface(cudaArray_t image) {
    const cudaResourceDesc resource = resource_of(image);
    check(cudaCreateSurfaceObject(&surf, &resource));
  }
};

// Waits for the kernel, which may have failed: then the objects are gone with the device.
void clean_up() {
  if (cudaDeviceSynchronize() == cudaSuccess) free_images();
}

__global__ void read_floats(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex2D<float>(tex, threadIdx.x, 0);
}
CASE(right_texture) {
  Texture texture(written_image<float>());
  float* out = unwritten<float>(kWidth);
  read_floats<<<1, kWidth>>>(texture.tex, out);
  expect_each(out, kWidth, [](int i) { return i; });
  check(cudaDestroyTextureObject(texture.tex));
  clean_up();
}

__global__ void read_destroyed(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex2D<float>(tex, threadIdx.x, 0);  // BUG memory: tex
}
CASE(wrong_texture_destroyed_too_early) {
  Texture texture(written_image<float>());
  read_destroyed<<<1, kWidth>>>(texture.tex, unwritten<float>(kWidth));
  check(cudaDestroyTextureObject(texture.tex));
  clean_up();
}

__global__ void read_nothing(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex2D<float>(tex, threadIdx.x, 0);  // BUG memory: tex2D
}
CASE(wrong_texture_never_created) {
  read_nothing<<<1, kWidth>>>(0, unwritten<float>(kWidth));
  clean_up();
}

__global__ void read_ints_as_floats(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex2D<float>(tex, threadIdx.x, 0);  // BUG memory: tex
}
CASE(wrong_type_of_texels) {
  Texture texture(written_image<int>());
  read_ints_as_floats<<<1, kWidth>>>(texture.tex, unwritten<float>(kWidth));
  clean_up();
}

__global__ void read_a_row(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex1D<float>(tex, threadIdx.x);  // BUG memory: tex
}
CASE(wrong_dimensions_of_a_texture) {
  Texture texture(written_image<float>());
  read_a_row<<<1, kWidth>>>(texture.tex, unwritten<float>(kWidth));
  clean_up();
}

__global__ void read_unwritten_texels(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex2D<float>(tex, threadIdx.x, 1);  // BUG initialisation: image
}
CASE(wrong_uninitialised_texels) {
  Texture texture(unwritten_image<float>());
  read_unwritten_texels<<<1, kWidth>>>(texture.tex, unwritten<float>(kWidth));
  clean_up();
}

__global__ void fill(cudaSurfaceObject_t surf) { surf2Dwrite(float(threadIdx.x), surf, threadIdx.x * 4, 1); }
__global__ void read_filled(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex2D<float>(tex, threadIdx.x, 1);
}
CASE(right_texture_of_an_earlier_launch) {
  cudaArray_t image = unwritten_image<float>();
  Texture texture(image);
  Surface surface(image);
  float* out = unwritten<float>(kWidth);
  fill<<<1, kWidth>>>(surface.surf);
  read_filled<<<1, kWidth>>>(texture.tex, out);
  expect_each(out, kWidth, [](int i) { return i; });
  clean_up();
}

__global__ void fill_and_read(cudaSurfaceObject_t surf, cudaTextureObject_t tex, float* out) {
  surf2Dwrite(float(threadIdx.x), surf, threadIdx.x * 4, 1);
  __syncthreads();
  out[threadIdx.x] = tex2D<float>(tex, threadIdx.x, 1);  // BUG races: image
}
CASE(wrong_texture_of_the_same_launch) {
  cudaArray_t image = unwritten_image<float>();
  Texture texture(image);
  Surface surface(image);
  fill_and_read<<<1, kWidth>>>(surface.surf, texture.tex, unwritten<float>(kWidth));
  clean_up();
}

__global__ void two_writers(cudaSurfaceObject_t surf) {
  surf2Dwrite(float(threadIdx.x), surf, 0, 0);  // BUG races: image
}
CASE(wrong_surface_with_two_writers) {
  two_writers<<<1, 2>>>(Surface(unwritten_image<float>()).surf);
  clean_up();
}

__global__ void write_past_the_row(cudaSurfaceObject_t surf, int last) {
  if (threadIdx.x <= last) surf2Dwrite(1.0f, surf, threadIdx.x * 4, 0);  // BUG memory: surf
}
CASE(wrong_surface_past_the_row) {
  write_past_the_row<<<1, 32>>>(Surface(written_image<float>()).surf, kWidth);
  clean_up();
}

__global__ void write_the_row(cudaSurfaceObject_t surf, int last) {
  if (threadIdx.x <= last) surf2Dwrite(1.0f, surf, threadIdx.x * 4, 0);
}
CASE(right_surface_to_the_end_of_the_row) {
  write_the_row<<<1, 32>>>(Surface(written_image<float>()).surf, kWidth - 1);
  clean_up();
}

__global__ void write_elements(cudaSurfaceObject_t surf) {
  surf2Dwrite(1.0f, surf, threadIdx.x, 0);  // BUG memory: surf
}
CASE(wrong_surface_in_elements) {
  write_elements<<<1, kWidth>>>(Surface(written_image<float>()).surf);
  clean_up();
}

__global__ void write_with_zero_mode(cudaSurfaceObject_t surf) {
  surf2Dwrite(1.0f, surf, threadIdx.x * 4, 0, cudaBoundaryModeZero);
}
CASE(right_surface_that_ignores_what_is_outside) {
  write_with_zero_mode<<<1, 32>>>(Surface(written_image<float>()).surf);
  clean_up();
}

__global__ void read_elements(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(tex, threadIdx.x);  // WARNING memory: tex
}
CASE(warned_elements_past_the_end) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = numbers<float>(kWidth);
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = kWidth * sizeof(float);
  float* out = unwritten<float>(kWidth + 1);
  read_elements<<<1, kWidth + 1>>>(Texture(resource).tex, out);
  expect_each(out, kWidth + 1, [](int i) { return i % kWidth; });
}

__global__ void read_all_elements(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(tex, threadIdx.x);
}
CASE(right_elements_of_linear_memory) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = numbers<float>(kWidth);
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = kWidth * sizeof(float);
  float* out = unwritten<float>(kWidth);
  read_all_elements<<<1, kWidth>>>(Texture(resource).tex, out);
  expect_each(out, kWidth, [](int i) { return i; });
}

CASE(wrong_copy_of_too_many_rows) {
  cudaArray_t image = unwritten_image<float>();
  float host[kHeight + 1][kWidth] = {};
  cudaMemcpy2DToArray(image, 0, 0, host, sizeof(host[0]), sizeof(host[0]), kHeight + 1,  // BUG memory: image
                      cudaMemcpyHostToDevice);
  cudaGetLastError();
  free_images();
}

CASE(wrong_surface_of_a_plain_array) {
  const cudaResourceDesc resource = resource_of(unwritten_image<float>(cudaArrayDefault));
  cudaSurfaceObject_t surf;
  cudaCreateSurfaceObject(&surf, &resource);  // BUG launch: image
  cudaGetLastError();
  free_images();
}

CASE(wrong_filter_of_integers) {
  const cudaResourceDesc resource = resource_of(written_image<int>());
  cudaTextureDesc sampling = {};
  sampling.filterMode = cudaFilterModeLinear;
  cudaTextureObject_t tex;
  cudaCreateTextureObject(&tex, &resource, &sampling, nullptr);  // BUG launch
  cudaGetLastError();
  free_images();
}

CASE(right_filter_of_normalised_bytes) {
  const cudaResourceDesc resource = resource_of(written_image<unsigned char>());
  cudaTextureDesc sampling = {};
  sampling.filterMode = cudaFilterModeLinear;
  sampling.readMode = cudaReadModeNormalizedFloat;
  cudaTextureObject_t tex;
  check(cudaCreateTextureObject(&tex, &resource, &sampling, nullptr));
  float* out = unwritten<float>(kWidth);
  read_floats<<<1, kWidth>>>(tex, out);
  check(cudaDeviceSynchronize());
  free_images();
}

cudaResourceDesc pitched_resource(float* memory, size_t pitch) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = memory;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  resource.res.pitch2D.width = 5;
  resource.res.pitch2D.height = 2;
  resource.res.pitch2D.pitchInBytes = pitch;
  return resource;
}

CASE(wrong_pitch_of_a_texture) {
  const cudaResourceDesc resource = pitched_resource(zeros<float>(10), 5 * sizeof(float));
  const cudaTextureDesc sampling = {};
  cudaTextureObject_t tex;
  cudaCreateTextureObject(&tex, &resource, &sampling, nullptr);  // BUG launch: pitch
  cudaGetLastError();
}

CASE(right_pitch_of_a_texture) {
  Texture texture(pitched_resource(zeros<float>(16), 8 * sizeof(float)));
  float* out = unwritten<float>(5);
  read_floats<<<1, 5>>>(texture.tex, out);
  expect_each(out, 5, [](int) { return 0; });
}

CASE(wrong_address_of_a_texture) {
  const cudaResourceDesc resource = pitched_resource(zeros<float>(32) + 1, 8 * sizeof(float));
  const cudaTextureDesc sampling = {};
  cudaTextureObject_t tex;
  cudaCreateTextureObject(&tex, &resource, &sampling, nullptr);  // BUG launch: address
  cudaGetLastError();
}

CASE(right_address_of_a_texture) {
  Texture texture(
      pitched_resource(zeros<float>(256) + 128, 8 * sizeof(float)));  // 512 bytes behind the begin
  float* out = unwritten<float>(5);
  read_floats<<<1, 5>>>(texture.tex, out);
  expect_each(out, 5, [](int) { return 0; });
}

CASE(wrong_cudaFree_of_an_array) {
  cudaArray_t image = unwritten_image<float>();
  cudaFree(image);  // BUG memory: image
  cudaGetLastError();
  free_images();
}

CASE(right_array_freed_as_an_array) {
  unwritten_image<float>();
  free_images();
}

CASE(wrong_array_freed_twice) {
  cudaArray_t image = unwritten_image<float>();
  free_images();
  cudaFreeArray(image);  // BUG memory: image
  cudaGetLastError();
}

CASE(right_copy_of_a_part) {
  cudaArray_t image = written_image<float>();
  float host[2] = {100, 200}, back[kWidth];
  check(cudaMemcpy2DToArray(image, 2 * sizeof(float), 1, host, sizeof(host), sizeof(host), 1,
                            cudaMemcpyHostToDevice));
  check(cudaMemcpy2DFromArray(back, sizeof(back), image, 0, 1, sizeof(back), 1, cudaMemcpyDeviceToHost));
  for (int x = 0; x < kWidth; x++) expect(back[x] == (x == 2 ? 100 : x == 3 ? 200 : kWidth + x));
  free_images();
}

__global__ void read_twice(cudaSurfaceObject_t surf, float* out) {
  out[threadIdx.x] =
      surf2Dread<float>(surf, threadIdx.x * 4, 0) + surf2Dread<float>(surf, threadIdx.x * 4, 0);
}
CASE(right_surface_that_is_only_read) {
  float* out = unwritten<float>(kWidth);
  read_twice<<<1, kWidth>>>(Surface(written_image<float>()).surf, out);
  expect_each(out, kWidth, [](int i) { return 2 * i; });
  free_images();
}

__global__ void copy_image(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  surf2Dwrite(surf2Dread<float>(from, threadIdx.x * 4, 0), to, threadIdx.x * 4, 0);
}
CASE(right_surface_to_surface) {
  copy_image<<<1, kWidth>>>(Surface(written_image<float>()).surf, Surface(unwritten_image<float>()).surf);
  check(cudaDeviceSynchronize());
  free_images();
}

__global__ void read_and_write(const float* in, cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = in[threadIdx.x] + tex1Dfetch<float>(tex, threadIdx.x);
}
CASE(right_texture_of_memory_that_is_also_an_argument) {
  float *in = numbers<float>(kWidth), *out = unwritten<float>(kWidth);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = in;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = kWidth * sizeof(float);
  read_and_write<<<1, kWidth>>>(in, Texture(resource).tex, out);
  expect_each(out, kWidth, [](int i) { return 2 * i; });
}

__global__ void read_first_component(cudaTextureObject_t tex, float* out) {
  out[threadIdx.x] = tex2D<float>(tex, threadIdx.x, 0);
}
CASE(right_first_of_several_components) {
  cudaArray_t image = unwritten_image<float2>();
  const float2 row[kWidth] = {{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}};
  check(cudaMemcpy2DToArray(image, 0, 0, row, sizeof(row), sizeof(row), 1, cudaMemcpyHostToDevice));
  float* out = unwritten<float>(kWidth);
  read_first_component<<<1, kWidth>>>(Texture(image).tex, out);
  expect_each(out, kWidth, [](int) { return 1; });
  free_images();
}

CASE(right_array_through_pinned_memory) {
  cudaArray_t image = unwritten_image<float>();
  float* host;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  check(cudaMallocHost(&host, kHeight * kWidth * sizeof(float)));
  for (int i = 0; i < kHeight * kWidth; i++) host[i] = float(i);
  constexpr size_t row = kWidth * sizeof(float);
  check(cudaMemcpy2DToArrayAsync(image, 0, 0, host, row, row, kHeight, cudaMemcpyHostToDevice, stream));
  check(cudaStreamSynchronize(stream));
  for (int i = 0; i < kHeight * kWidth; i++) host[i] = 0;
  check(cudaMemcpy2DFromArrayAsync(host, row, image, 0, 0, row, kHeight, cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  for (int i = 0; i < kHeight * kWidth; i++) expect(host[i] == float(i));
  check(cudaFreeHost(host));
  check(cudaStreamDestroy(stream));
  free_images();
}

CASE(right_arrays_of_several_types) {
  Texture bytes(written_image<unsigned char>()), shorts(written_image<short>());
  check(cudaDestroyTextureObject(bytes.tex));
  check(cudaDestroyTextureObject(shorts.tex));
  free_images();
}

int main(int words, char** word) { return run_cases(words, word); }
