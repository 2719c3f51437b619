// What `make check` runs: trial CURRENT DEVICE FACTOR X... Do not change this file; edit scale.cuh.
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

#include "scale.cuh"

// Copies numbers to a device, and makes it current.
static Tensor copy_to(int device, const std::vector<float>& numbers) {
  check(cudaSetDevice(device));
  const Tensor x = allocate(numbers.size());
  check(cudaMemcpy(x.memory.get(), numbers.data(), x.count * sizeof(float), cudaMemcpyHostToDevice));
  return x;
}

static bool throws(const Tensor& x, float factor) {
  try {
    scale(x, factor);
    return false;
  } catch (const std::runtime_error&) {
    return true;
  }
}

// How many kernels `scale` puts into the current stream of the tensor's device, which a graph captures.
static int kernels_in_stream(const Tensor& x, float factor) {
  const cudaStream_t stream = current_stream(x.device);
  cudaGraph_t graph;
  size_t count = 0;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  throws(x, factor);
  if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) {
    check(cudaGraphGetNodes(graph, nullptr, &count));
    check(cudaGraphDestroy(graph));
  }
  cudaGetLastError();  // of a capture that has failed
  return count;
}

// The device that is current after a guard within another one, after both, and after a guard for the current
// device in whose scope another one became current.
static void print_nested(int current) {
  check(cudaSetDevice(current));
  {
    const DeviceGuard outer(1 - current);
    {
      const DeviceGuard inner(current);
    }
    std::printf("%d\n", current_device());
  }
  std::printf("%d\n", current_device());
  {
    const DeviceGuard guard(current);
    check(cudaSetDevice(1 - current));
  }
  std::printf("%d\n", current_device());
}

// The device that is current in this thread and in another one after guards that end in the order in which
// they began.
static void print_of_two_threads(int current) {
  check(cudaSetDevice(current));
  std::promise<void> begun, ended;
  std::thread other;
  int of_other = -1;
  {
    const DeviceGuard guard(1 - current);
    other = std::thread([&] {
      cudaSetDevice(1 - current);
      {
        const DeviceGuard inner(current);
        begun.set_value();
        ended.get_future().wait();
      }
      of_other = current_device();
    });
    begun.get_future().wait();
  }
  ended.set_value();
  other.join();
  std::printf("%d\n%d\n", current_device(), of_other);
}

// Whether a guard for a device that does not exist throws an exception.
static bool guard_throws() {
  try {
    const DeviceGuard guard(2);
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

static void print_launches(int device) {
  int value;
  check(cudaSetDevice(device));
  check(cudaMemcpyFromSymbol(&value, launches, sizeof(value)));
  std::printf("%d\n", value);
}

int main(int count, char** words) try {
  const int current = std::atoi(words[1]), device = std::atoi(words[2]);
  const float factor = std::atof(words[3]);
  std::vector<float> numbers;
  for (int k = 4; k < count; k++) numbers.push_back(std::atof(words[k]));
  const Tensor x = copy_to(device, numbers);
  if (numbers.empty()) {  // an empty grid, which the device rejects, after one that it accepts
    scale(copy_to(device, {1}), factor);
    check(cudaSetDevice(current));
    const bool is_thrown = throws(x, factor);
    std::printf("%d\n%d\n", current_device(), is_thrown);
    return 0;
  }
  const Tensor too_large{nullptr, int64_t(1) << 50, device};

  check(cudaSetDevice(current));
  const Tensor out = scale(x, factor);
  std::printf("%d\n", current_device());
  check(cudaSetDevice(current));
  std::printf("%d\n", throws(too_large, factor));
  std::printf("%d\n", current_device());

  check(cudaSetDevice(current));
  std::printf("%d\n", kernels_in_stream(x, factor));
  check(cudaStreamSynchronize(current_stream(device)));
  check(cudaMemcpy(numbers.data(), out.memory.get(), out.count * sizeof(float), cudaMemcpyDeviceToHost));
  cudaPointerAttributes attributes;
  check(cudaPointerGetAttributes(&attributes, out.memory.get()));
  std::printf("%d\n", attributes.device);
  for (const int one : {0, 1}) print_launches(one);
  const Tensor other = copy_to(1 - device, {1});
  check(cudaSetDevice(current));
  std::printf("%d\n", kernels_in_stream(other, factor));
  print_nested(current);
  print_of_two_threads(current);
  std::printf("%d\n", guard_throws());
  for (const float number : numbers) std::printf("%.9g\n", number);
} catch (const std::runtime_error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
