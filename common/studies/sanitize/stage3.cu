// Launches every kernel of stage 3 at each B S of the command line, for compute-sanitizer. No torch.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lltm_kernel.cu"

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// Memory of exactly `size` numbers, so that the first one behind it is out of bounds. Nobody has written it
// yet.
template <typename scalar_t>
struct Numbers {
  explicit Numbers(int64_t size) : size(size) {
    if (size) check(cudaMalloc(&data, size * sizeof(scalar_t)), "cudaMalloc");
  }
  Numbers(const Numbers&) = delete;
  ~Numbers() { check(cudaFree(data), "cudaFree"); }

  Numbers& fill() {
    std::vector<scalar_t> values(size);
    for (int64_t k = 0; k < size; ++k) values[k] = scalar_t((k * 37 + 11) % 200 - 100) / 25;
    if (size) check(cudaMemcpy(data, values.data(), size * sizeof(scalar_t), cudaMemcpyHostToDevice), "copy");
    return *this;
  }

  // Reads all of it: initcheck then names what a kernel has left out.
  void expect_finite(const char* name) const {
    std::vector<scalar_t> values(size);
    if (size) check(cudaMemcpy(values.data(), data, size * sizeof(scalar_t), cudaMemcpyDeviceToHost), name);
    for (int64_t k = 0; k < size; ++k) {
      if (std::isfinite(values[k])) continue;
      std::printf("%s[%lld] is not finite\n", name, static_cast<long long>(k));
      std::exit(1);
    }
  }

  int64_t size;
  scalar_t* data = nullptr;
};

// What the tool reports up to the next such line belongs to this case.
void begin(const char* kernel, const char* dtype, int64_t B, int64_t S) {
  usleep(50'000);  // the tool is another process, and its last words may still be on their way
  std::printf("\nCASE %s %s %lld %lld\n", kernel, dtype, static_cast<long long>(B),
              static_cast<long long>(S));
  std::fflush(stdout);
}

template <typename scalar_t>
void run(const char* dtype, int64_t B, int64_t S) {
  Numbers<scalar_t> z(B * 3 * S), old_cell(B * S), grad_h(B * S), grad_cell(B * S);
  z.fill(), old_cell.fill(), grad_h.fill(), grad_cell.fill();
  Numbers<scalar_t> gates(B * 3 * S), new_h(B * S), new_cell(B * S);

  begin("forward_kernel", dtype, B, S);
  check(launch_forward<scalar_t>(new_h.data, new_cell.data, gates.data, z.data, old_cell.data, B, S, nullptr),
        "launch_forward");
  check(cudaDeviceSynchronize(), "forward_kernel");
  new_h.expect_finite("new_h"), new_cell.expect_finite("new_cell"), gates.expect_finite("gates");

  begin("backward_kernel", dtype, B, S);
  for (int missing = 0; missing < 3; ++missing) {  // no gradient, grad_h, grad_cell
    Numbers<scalar_t> d_z(B * 3 * S), d_old_cell(B * S);
    check(launch_backward<scalar_t>(d_z.data, d_old_cell.data, missing == 1 ? nullptr : grad_h.data,
                                    missing == 2 ? nullptr : grad_cell.data, gates.data, new_cell.data, B, S,
                                    nullptr),
          "launch_backward");
    check(cudaDeviceSynchronize(), "backward_kernel");
    d_z.expect_finite("d_z"), d_old_cell.expect_finite("d_old_cell");
  }
}

int main(int count, char** arguments) {
  for (int k = 1; k + 1 < count; k += 2) {
    const int64_t B = std::atoll(arguments[k]), S = std::atoll(arguments[k + 1]);
    run<float>("float32", B, S);
    run<double>("float64", B, S);
  }
  usleep(50'000);
}
