// Order of streams: a stream must wait before it reads what another stream writes.
#include "case.h"

__global__ void produce(int* out) { out[threadIdx.x] = 2 * threadIdx.x; }

struct Streams {
  explicit Streams(unsigned flags = cudaStreamNonBlocking) {
    check(cudaStreamCreateWithFlags(&first, flags));
    check(cudaStreamCreateWithFlags(&second, flags));
    check(cudaEventCreate(&event));
  }
  ~Streams() {
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
  }
  cudaStream_t first, second;
  cudaEvent_t event;
};

// ---- the second stream does not wait

__global__ void consume(int* out, const int* in) {
  const int value = in[threadIdx.x];  // BUG initialisation: in
  out[threadIdx.x] = value + 1;
}
CASE(wrong_no_event) {
  const Streams streams;
  int *x = unwritten<int>(64), *y = unwritten<int>(64);
  produce<<<1, 64, 0, streams.first>>>(x);
  consume<<<1, 64, 0, streams.second>>>(y, x);  // BUG streams: consume
  check(cudaStreamSynchronize(streams.second));
  check(cudaStreamSynchronize(streams.first));
}

__global__ void consume_too_early(int* out, const int* in) {
  const int value = in[threadIdx.x];  // BUG initialisation: in
  out[threadIdx.x] = value + 1;
}
CASE(wrong_event_recorded_too_early) {
  const Streams streams;
  int *x = unwritten<int>(64), *y = unwritten<int>(64);
  check(cudaEventRecord(streams.event, streams.first));
  produce<<<1, 64, 0, streams.first>>>(x);
  check(cudaStreamWaitEvent(streams.second, streams.event, 0));
  consume_too_early<<<1, 64, 0, streams.second>>>(y, x);  // BUG streams: consume_too_early
  check(cudaStreamSynchronize(streams.second));
  check(cudaStreamSynchronize(streams.first));
}

__global__ void consume_the_copy(int* out, const int* in) {
  const int value = in[threadIdx.x];  // BUG initialisation: in
  out[threadIdx.x] = value + 1;
}
CASE(wrong_copy_in_another_stream) {
  const Streams streams;
  int *host, *x = unwritten<int>(64), *y = unwritten<int>(64);
  check(cudaMallocHost(&host, 64 * sizeof(int)));
  for (int i = 0; i < 64; i++) host[i] = i;
  check(cudaMemcpyAsync(x, host, 64 * sizeof(int), cudaMemcpyHostToDevice, streams.first));
  consume_the_copy<<<1, 64, 0, streams.second>>>(y, x);  // BUG streams: consume_the_copy
  check(cudaStreamSynchronize(streams.second));
  check(cudaStreamSynchronize(streams.first));
  check(cudaFreeHost(host));
}

// ---- the host does not wait

CASE(wrong_host_reads_too_early) {
  const Streams streams;
  int *host, *x = unwritten<int>(64);
  check(cudaMallocHost(&host, 64 * sizeof(int)));
  produce<<<1, 64, 0, streams.first>>>(x);
  check(cudaMemcpyAsync(host, x, 64 * sizeof(int), cudaMemcpyDeviceToHost, streams.first));
  int sum = 0;
  for (int i = 0; i < 64; i++) sum += host[i];  // BUG streams: host
  check(cudaStreamSynchronize(streams.first));
  std::printf("%d\n", sum);
  check(cudaFreeHost(host));
}

CASE(wrong_buffer_filled_again_too_early) {
  const Streams streams;
  int *staging, *x = unwritten<int>(128);
  check(cudaMallocHost(&staging, 64 * sizeof(int)));
  for (int batch = 0; batch < 2; batch++) {
    for (int i = 0; i < 64; i++) staging[i] = batch;  // BUG streams: staging
    check(cudaMemcpyAsync(x + 64 * batch, staging, 64 * sizeof(int), cudaMemcpyHostToDevice, streams.first));
  }
  check(cudaStreamSynchronize(streams.first));
  check(cudaFreeHost(staging));
}

CASE(wrong_managed_memory_read_too_early) {
  int* counts;
  check(cudaMallocManaged(&counts, 64 * sizeof(int)));
  produce<<<1, 64>>>(counts);
  const int last = counts[63];  // BUG streams: counts
  check(cudaDeviceSynchronize());
  std::printf("%d\n", last);
  check(cudaFree(counts));
}

__global__ void greet() { printf("Hello from thread %d\n", threadIdx.x); }
CASE(wrong_nobody_waits_at_the_end) {
  greet<<<1, 4>>>();  // BUG streams: greet
  std::exit(0);
}

// ---- the second stream or the host waits

__global__ void consume_right(int* out, const int* in) { out[threadIdx.x] = in[threadIdx.x] + 1; }

static int one_more(int i) { return 2 * i + 1; }

CASE(right_one_stream) {
  const Streams streams;
  int *x = unwritten<int>(64), *y = unwritten<int>(64);
  produce<<<1, 64, 0, streams.first>>>(x);
  consume_right<<<1, 64, 0, streams.first>>>(y, x);
  check(cudaStreamSynchronize(streams.first));
  expect_each(y, 64, one_more);
}

CASE(right_event) {
  const Streams streams;
  int *x = unwritten<int>(64), *y = unwritten<int>(64);
  produce<<<1, 64, 0, streams.first>>>(x);
  check(cudaEventRecord(streams.event, streams.first));
  check(cudaStreamWaitEvent(streams.second, streams.event, 0));
  consume_right<<<1, 64, 0, streams.second>>>(y, x);
  check(cudaStreamSynchronize(streams.second));
  expect_each(y, 64, one_more);
}

CASE(right_host_waits_for_the_event) {
  const Streams streams;
  int *x = unwritten<int>(64), *y = unwritten<int>(64);
  produce<<<1, 64, 0, streams.first>>>(x);
  check(cudaEventRecord(streams.event, streams.first));
  check(cudaEventSynchronize(streams.event));
  consume_right<<<1, 64, 0, streams.second>>>(y, x);
  check(cudaDeviceSynchronize());
  expect_each(y, 64, one_more);
}

CASE(right_default_stream_waits_for_the_others) {  // except for non-blocking streams
  const Streams streams(cudaStreamDefault);
  int *x = unwritten<int>(64), *y = unwritten<int>(64);
  produce<<<1, 64, 0, streams.first>>>(x);
  consume_right<<<1, 64>>>(y, x);
  consume_right<<<1, 64, 0, streams.second>>>(x, y);  // and they wait for the default stream
  check(cudaStreamSynchronize(streams.second));
  expect_each(x, 64, [](int i) { return 2 * i + 2; });
}

CASE(right_two_halves_in_two_streams) {
  const Streams streams;
  int* x = unwritten<int>(128);
  produce<<<1, 64, 0, streams.first>>>(x);
  produce<<<1, 64, 0, streams.second>>>(x + 64);
  check(cudaDeviceSynchronize());
  expect_each(x, 128, [](int i) { return 2 * (i % 64); });
}

CASE(right_copies_in_a_stream) {
  const Streams streams;
  int *host, *x = unwritten<int>(64);
  check(cudaMallocHost(&host, 64 * sizeof(int)));
  produce<<<1, 64, 0, streams.first>>>(x);
  check(cudaMemcpyAsync(host, x, 64 * sizeof(int), cudaMemcpyDeviceToHost, streams.first));
  check(cudaStreamSynchronize(streams.first));
  for (int i = 0; i < 64; i++) expect(host[i] == 2 * i);
  check(cudaFreeHost(host));
}

CASE(right_buffers_in_turn) {
  const Streams streams;
  int *staging[2], *x = unwritten<int>(256);
  cudaEvent_t copied[2];
  for (int k = 0; k < 2; k++) check(cudaMallocHost(&staging[k], 64 * sizeof(int)));
  for (int k = 0; k < 2; k++) check(cudaEventCreate(&copied[k]));
  for (int batch = 0; batch < 4; batch++) {
    const int k = batch % 2;
    check(cudaEventSynchronize(copied[k]));  // two batches ago; an unrecorded event counts as complete
    for (int i = 0; i < 64; i++) staging[k][i] = batch;
    check(cudaMemcpyAsync(x + 64 * batch, staging[k], 256, cudaMemcpyHostToDevice, streams.first));
    check(cudaEventRecord(copied[k], streams.first));
  }
  check(cudaStreamSynchronize(streams.first));
  expect_each(x, 256, [](int i) { return i / 64; });
  for (int k = 0; k < 2; k++) check(cudaFreeHost(staging[k]));
  for (int k = 0; k < 2; k++) check(cudaEventDestroy(copied[k]));
}

// ---- host and kernel use managed memory at the same time

template <typename T>
T* managed(int count) {
  T* array;
  check(cudaMallocManaged(&array, count * sizeof(T)));
  for (int i = 0; i < count; i++) array[i] = 0;
  return static_cast<T*>(arrays[array_count++] = array);
}

__global__ void count_on_device(int* counter) {
  atomicAdd(counter, 1);  // BUG streams: counter
}
CASE(wrong_atomics_of_the_device_only) {
  int* counter = managed<int>(1);
  count_on_device<<<2, 32>>>(counter);
  for (int i = 0; i < 36; i++) __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
  check(cudaDeviceSynchronize());
}

__global__ void count_in_system(int* counter) { atomicAdd_system(counter, 1); }
CASE(right_atomics_of_the_system) {
  int* counter = managed<int>(1);
  count_in_system<<<2, 32>>>(counter);
  for (int i = 0; i < 36; i++) __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
  check(cudaDeviceSynchronize());
  expect(*counter == 100);
}

__global__ void finish(int* data, int* done) {
  data[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) *done = 1;  // BUG streams: done
}
CASE(wrong_flag_that_is_not_volatile) {
  int *data = managed<int>(32), *done = managed<int>(1);
  finish<<<1, 32>>>(data, done);
  while (!*static_cast<volatile int*>(done)) {
  }
  check(cudaDeviceSynchronize());
}

__global__ void finish_right(int* data, volatile int* done) {
  data[threadIdx.x] = threadIdx.x;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *done = 1;
}
CASE(right_host_waits_for_a_flag) {
  int *data = managed<int>(32), *done = managed<int>(1);
  finish_right<<<1, 32>>>(data, done);
  while (!*static_cast<volatile int*>(done)) {
  }
  expect(data[31] == 31);
}

__global__ void wait_for_host(int* out, volatile int* go) {
  while (!*go) {
  }
  *out = 7;
}
CASE(right_kernel_waits_for_the_host) {
  int *out = managed<int>(1), *go = managed<int>(1);
  wait_for_host<<<1, 1>>>(out, go);
  *static_cast<volatile int*>(go) = 1;
  check(cudaDeviceSynchronize());
  expect(*out == 7);
}

// A plain access of the host to the same array is still too early.
__global__ void count_each(int* counters) { atomicAdd_system(counters + threadIdx.x, 1); }
CASE(wrong_plain_read_beside_an_atomic) {
  int* counters = managed<int>(32);
  count_each<<<1, 32>>>(counters);
  __atomic_fetch_add(counters, 1, __ATOMIC_SEQ_CST);
  if (counters[1]) std::puts("counted");  // BUG streams
  check(cudaDeviceSynchronize());
}

int main(int words, char** word) { return run_cases(words, word); }
