// Copies and memsets: of more bytes than the memory has, or in the wrong direction.
#include "case.h"

CASE(wrong_copy_to_the_device_too_long) {
  float host[128] = {}, *d_x;
  check(cudaMalloc(&d_x, 100 * sizeof(float)));
  cudaMemcpy(d_x, host, sizeof(host), cudaMemcpyHostToDevice);  // BUG memory: d_x
  check(cudaFree(d_x));
}

CASE(wrong_copy_from_the_device_too_long) {
  double host[100];
  float* d_x;
  check(cudaMalloc(&d_x, 100 * sizeof(float)));
  check(cudaMemset(d_x, 0, 100 * sizeof(float)));
  cudaMemcpy(host, d_x, 100 * sizeof(double), cudaMemcpyDeviceToHost);  // BUG memory: d_x
  check(cudaFree(d_x));
}

CASE(wrong_copy_on_the_device_too_long) {
  int *d_from, *d_to;
  check(cudaMalloc(&d_from, 256));
  check(cudaMalloc(&d_to, 128));
  check(cudaMemset(d_from, 0, 256));
  cudaMemcpy(d_to, d_from, 256, cudaMemcpyDeviceToDevice);  // BUG memory: d_to
  check(cudaFree(d_from));
  check(cudaFree(d_to));
}

CASE(wrong_memset_too_long) {
  float* d_sums;
  check(cudaMalloc(&d_sums, 10));
  cudaMemset(d_sums, 0, 10 * sizeof(float));  // BUG memory: d_sums
  check(cudaFree(d_sums));
}

CASE(wrong_copy_past_the_end_from_the_middle) {
  float host[64] = {}, *d_x;
  check(cudaMalloc(&d_x, sizeof(host)));
  cudaMemcpy(d_x + 1, host, sizeof(host), cudaMemcpyHostToDevice);  // BUG memory: d_x
  check(cudaFree(d_x));
}

CASE(wrong_copy_in_a_stream_too_long) {
  float *host, *d_x;
  check(cudaMallocHost(&host, 512));
  check(cudaMalloc(&d_x, 256));
  std::memset(host, 0, 512);
  cudaMemcpyAsync(d_x, host, 512, cudaMemcpyHostToDevice, cudaStream_t{});  // BUG memory: d_x
  cudaDeviceSynchronize();
  check(cudaFreeHost(host));
  check(cudaFree(d_x));
}

CASE(wrong_direction) {
  float host[16] = {}, *d_x;
  check(cudaMalloc(&d_x, sizeof(host)));
  cudaMemcpy(d_x, host, sizeof(host), cudaMemcpyDeviceToHost);  // BUG memory: d_x
  check(cudaFree(d_x));
}

CASE(wrong_order_of_arguments) {
  float host[16] = {}, *d_x;
  check(cudaMalloc(&d_x, sizeof(host)));
  cudaMemcpy(host, d_x, sizeof(host), cudaMemcpyHostToDevice);  // BUG memory: host
  check(cudaFree(d_x));
}

__constant__ float table[8];
CASE(wrong_copy_to_a_constant_too_long) {
  const float host[16] = {};
  cudaMemcpyToSymbol(table, host, sizeof(host));  // BUG memory: table
}

CASE(right_copies) {
  float host[64], back[64], *d_x, *d_y;
  for (int i = 0; i < 64; i++) host[i] = float(i);
  check(cudaMalloc(&d_x, sizeof(host)));
  check(cudaMalloc(&d_y, sizeof(host)));
  check(cudaMemcpy(d_x, host, sizeof(host), cudaMemcpyHostToDevice));
  check(cudaMemcpy(d_y, d_x, sizeof(host), cudaMemcpyDeviceToDevice));
  check(cudaMemcpy(back, d_y, sizeof(back), cudaMemcpyDeviceToHost));
  expect(std::memcmp(host, back, sizeof(host)) == 0);
  check(cudaFree(d_x));
  check(cudaFree(d_y));
}

CASE(right_direction_left_to_cuda) {
  int host[4] = {1, 2, 3, 4}, back[4], *d_x;
  check(cudaMalloc(&d_x, sizeof(host)));
  check(cudaMemcpy(d_x, host, sizeof(host), cudaMemcpyDefault));
  check(cudaMemcpy(back, d_x, sizeof(host), cudaMemcpyDefault));
  expect(back[3] == 4);
  check(cudaFree(d_x));
}

CASE(right_parts_up_to_the_end) {
  char host[100] = {}, *d_text;
  check(cudaMalloc(&d_text, 100));
  check(cudaMemset(d_text, 'a', 100));
  check(cudaMemcpy(d_text + 60, host, 40, cudaMemcpyHostToDevice));
  check(cudaMemset(d_text + 99, 'z', 1));
  check(cudaMemcpy(host, d_text, 100, cudaMemcpyDeviceToHost));
  expect(host[59] == 'a' && host[60] == 0 && host[99] == 'z');
  check(cudaFree(d_text));
}

CASE(right_no_bytes) {
  float* d_x;
  check(cudaMalloc(&d_x, 16));
  check(cudaMemcpy(d_x + 4, d_x, 0, cudaMemcpyDeviceToDevice));
  check(cudaMemset(d_x + 4, 0, 0));
  check(cudaFree(d_x));
}

CASE(right_pinned_and_managed) {
  int *pinned, *managed;
  check(cudaMallocHost(&pinned, 64));
  check(cudaMallocManaged(&managed, 64));
  for (int i = 0; i < 16; i++) pinned[i] = i;
  check(cudaMemcpy(managed, pinned, 64, cudaMemcpyHostToDevice));
  check(cudaDeviceSynchronize());
  expect(managed[15] == 15);
  check(cudaFreeHost(pinned));
  check(cudaFree(managed));
}

CASE(right_copy_within_a_constant) {
  const float host[4] = {1, 2, 3, 4};
  float back[8];
  check(cudaMemcpyToSymbol(table, host, sizeof(host), 4 * sizeof(float)));
  check(cudaMemcpyFromSymbol(back, table, sizeof(back)));
  expect(back[0] == 0 && back[7] == 4);
}

CASE(right_as_many_bytes_as_elements_need) {
  double host[100], *d_x;
  for (double& x : host) x = 0.5;
  check(cudaMalloc(&d_x, 100 * sizeof(double)));
  check(cudaMemcpy(d_x, host, 100 * sizeof(double), cudaMemcpyHostToDevice));
  check(cudaMemset(d_x + 50, 0, 50 * sizeof(double)));
  check(cudaMemcpy(host, d_x, sizeof(host), cudaMemcpyDeviceToHost));
  expect(host[49] == 0.5 && host[50] == 0);
  check(cudaFree(d_x));
}

// Any address inside the array is valid, even one that is not the beginning of an element.
CASE(right_from_the_middle) {
  int host[16] = {}, *d_x;
  check(cudaMalloc(&d_x, sizeof(host)));
  check(cudaMemset(d_x, 0, sizeof(host)));
  check(cudaMemcpy(d_x + 8, host, 8 * sizeof(int), cudaMemcpyHostToDevice));
  check(
      cudaMemcpy(reinterpret_cast<char*>(host) + 1, reinterpret_cast<char*>(d_x) + 61, 3, cudaMemcpyDefault));
  check(cudaFree(d_x));
}

CASE(right_copy_in_a_stream) {
  float *host, *d_x;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  check(cudaMallocHost(&host, 256));
  check(cudaMalloc(&d_x, 256));
  for (int i = 0; i < 64; i++) host[i] = float(i);
  check(cudaMemcpyAsync(d_x, host, 256, cudaMemcpyHostToDevice, stream));
  check(cudaMemsetAsync(d_x, 0, 128, stream));
  check(cudaMemcpyAsync(host, d_x, 256, cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  expect(host[31] == 0 && host[32] == 32);
  check(cudaFreeHost(host));
  check(cudaFree(d_x));
  check(cudaStreamDestroy(stream));
}

int main(int words, char** word) { return run_cases(words, word); }
