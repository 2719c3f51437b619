// Checks and times the persistent kernels of stage 7 without torch, also under compute-sanitizer:
//
//   driver CELL TYPE RUNG T B S [BLOCKS [REPEATS [FLAGS]]]
//
// CELL is lltm, lstm or gru; TYPE is float, tf32, half, bfloat16 or double; RUNG is grid or cluster. BLOCKS
// of a chain: 0 for the plan's own choice. FLAGS may contain r (reverse) and l (lengths). Prints the plan,
// the largest error against a loop in double on the CPU, whether two runs give the same bits, and the time of
// each pass in microseconds. The exit status is 1 if a result is wrong.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "../../../stages/stage7_sequence/csrc/cells.h"
#include "../../../stages/stage7_sequence/csrc/persistent/plan.h"

using Numbers = std::vector<double>;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

struct Case {
  int64_t T, B, S;
  bool reverse;
  std::vector<int64_t> lengths;  // empty: all steps

  bool is_active(int64_t t, int64_t b) const { return lengths.empty() || t < lengths[b]; }
  int64_t time(int64_t step) const { return reverse ? T - 1 - step : step; }
};

struct Arrays {
  Numbers x, weights, bias, h0, cell0, grad_outputs, grad_h, grad_cell;  // given
  Numbers outputs, h, cell, cells, z, d_z, d_h0, d_cell0;                // computed
};

// The loop in double. `round` rounds to the type of the tensors.
template <typename Cell>
void compute_reference(const Case& c, Arrays& a, const std::function<double(double)>& round) {
  constexpr int G = Cell::kGates, K = Cell::kSaved;
  const auto [T, B, S] = std::array{c.T, c.B, c.S};
  Numbers h = a.h0, cell = a.cell0;
  for (int64_t step = 0; step < T; ++step) {
    const int64_t t = c.time(step);
    const Numbers old = h;
    for (int64_t b = 0; b < B; ++b)
      for (int64_t s = 0; s < S; ++s) {
        double x[G], r[G], z[K];
        for (int g = 0; g < G; ++g) {
          x[g] = a.x[((t * B + b) * G + g) * S + s];
          r[g] = a.bias[g * S + s];
          for (int64_t k = 0; k < S; ++k) r[g] += a.weights[(g * S + s) * S + k] * old[b * S + k];
        }
        Cell::pre_activations(z, x, r);
        for (int i = 0; i < K; ++i) a.z[((t * B + b) * K + i) * S + s] = z[i] = round(z[i]);
        if (c.is_active(t, b)) h[b * S + s] = round(Cell::forward(z, old[b * S + s], cell[b * S + s]));
        a.outputs[(t * B + b) * S + s] = h[b * S + s];
        a.cells[(t * B + b) * S + s] = cell[b * S + s];
      }
  }
  a.h = h, a.cell = cell;

  Numbers d_h = a.grad_h;
  a.d_cell0 = a.grad_cell;
  for (int64_t step = T - 1; step >= 0; --step) {
    const int64_t t = c.time(step), before = step ? c.time(step - 1) : 0;
    Numbers next(B * S, 0.0);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t s = 0; s < S; ++s) {
        const int64_t at = b * S + s;
        double z[K], d_z[K] = {}, direct = d_h[at] + a.grad_outputs[t * B * S + at];
        for (int i = 0; i < K; ++i) z[i] = a.z[((t * B + b) * K + i) * S + s];
        const double old_h = step ? a.outputs[before * B * S + at] : a.h0[at];
        const double old_cell = step ? a.cells[before * B * S + at] : a.cell0[at];
        if (c.is_active(t, b))
          direct = Cell::backward(d_z, z, old_h, old_cell, a.cells[t * B * S + at], direct, a.d_cell0[at]);
        next[at] += direct;
        for (int i = 0; i < K; ++i) a.d_z[((t * B + b) * K + i) * S + s] = d_z[i];
        for (int g = 0; g < G; ++g)
          for (int64_t k = 0; k < S; ++k)
            next[b * S + k] += round(d_z[Cell::recurrent(g)]) * a.weights[(g * S + s) * S + k];
      }
    d_h = next;
  }
  a.d_h0 = d_h;
}

template <typename scalar_t>
class OnDevice {
 public:
  explicit OnDevice(const Numbers& numbers) : size_(numbers.size()) {
    std::vector<scalar_t> host(size_);
    for (size_t i = 0; i < size_; ++i) host[i] = scalar_t(float(numbers[i]));
    if constexpr (sizeof(scalar_t) == 8)
      for (size_t i = 0; i < size_; ++i) host[i] = numbers[i];
    check(cudaMalloc(&data_, std::max<size_t>(size_, 1) * sizeof(scalar_t)), "cudaMalloc");
    check(cudaMemcpy(data_, host.data(), size_ * sizeof(scalar_t), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  // For results: NaN, so that an element that is not written is wrong.
  explicit OnDevice(size_t size) : OnDevice(Numbers(size, NAN)) {}
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }
  scalar_t* get() const { return static_cast<scalar_t*>(data_); }
  Numbers read() const {
    std::vector<scalar_t> host(size_);
    check(cudaMemcpy(host.data(), data_, size_ * sizeof(scalar_t), cudaMemcpyDeviceToHost), "cudaMemcpy");
    Numbers numbers(size_);
    for (size_t i = 0; i < size_; ++i) {
      if constexpr (sizeof(scalar_t) == 8)
        numbers[i] = host[i];
      else
        numbers[i] = float(host[i]);
    }
    return numbers;
  }

 private:
  void* data_ = nullptr;
  size_t size_;
};

int failures = 0;
double largest = 0;

void compare(const char* name, const Numbers& got, const Numbers& expected, double tolerance) {
  double scale = 1e-30, error = 0;
  for (double number : expected) scale = std::max(scale, std::abs(number));
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]) / scale;
    if (difference <= error) continue;
    error = difference;
    if (!(difference <= tolerance) && ++failures <= 3)
      std::printf("%s[%zu] is %g, expected %g\n", name, i, got[i], expected[i]);
    if (std::isnan(difference)) break;
  }
  for (double number : got) failures += std::isnan(number);
  largest = std::max(largest, error);
}

double time_of(int repeats, const std::function<void()>& run) {
  cudaEvent_t start, stop;
  cudaEventCreate(&start), cudaEventCreate(&stop);
  std::vector<float> times;
  for (int i = 0; i < repeats; ++i) {
    cudaEventRecord(start);
    run();
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    times.push_back(0);
    cudaEventElapsedTime(&times.back(), start, stop);
  }
  cudaEventDestroy(start), cudaEventDestroy(stop);
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : 1000 * times[times.size() / 2];
}

void print(const char* pass, const Plan& plan) {
  std::printf("%s: %d chains, %d at once, of %d blocks and %d rows; %d units and %d bytes a block\n", pass,
              plan.chains, plan.chains_at_once, plan.partition.blocks, plan.partition.rows,
              plan.partition.units, plan.shared_bytes);
}

template <typename Cell, typename scalar_t>
int run(const Case& c, CellKind cell, Scalar scalar, Rung rung, int blocks, int repeats) {
  constexpr int G = Cell::kGates, K = Cell::kSaved;
  const auto [T, B, S] = std::array{c.T, c.B, c.S};
  auto round = [](double number) {
    return sizeof(scalar_t) == 8 ? number : double(float(scalar_t(float(number))));
  };
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  auto numbers = [&](size_t size, double scale) {
    Numbers result(size);
    for (double& number : result) number = round(scale * uniform(random));
    return result;
  };
  Arrays a;
  a.x = numbers(T * B * G * S, 1), a.weights = numbers(G * S * S, 1 / std::sqrt(double(S)));
  a.bias = numbers(G * S, 0.5), a.h0 = numbers(B * S, 0.5), a.cell0 = numbers(B * S, 0.5);
  a.grad_outputs = numbers(T * B * S, 1), a.grad_h = numbers(B * S, 1), a.grad_cell = numbers(B * S, 1);
  a.outputs = a.cells = Numbers(T * B * S), a.z = a.d_z = Numbers(T * B * K * S);

  std::string reason;
  const Sizes sizes{T, B, S};
  const auto forward = make_plan(rung, cell, scalar, sizes, false, reason, blocks);
  const auto backward = make_plan(rung, cell, scalar, sizes, true, reason, blocks);
  if (!forward || !backward) return std::printf("no plan: %s\n", reason.c_str()), 2;
  print("forward", *forward), print("backward", *backward);

  const OnDevice<scalar_t> x(a.x), weights(a.weights), bias(a.bias), h0(a.h0), cell0(a.cell0);
  const OnDevice<scalar_t> grad_outputs(a.grad_outputs), grad_h(a.grad_h), grad_cell(a.grad_cell);
  const OnDevice<scalar_t> outputs(T * B * S), h(B * S), new_cell(B * S), cells(T * B * S), z(T * B * K * S);
  const OnDevice<scalar_t> d_z(T * B * K * S), d_h0(B * S), d_cell0(B * S);
  int64_t* lengths = nullptr;
  if (!c.lengths.empty()) {
    check(cudaMalloc(&lengths, B * sizeof(int64_t)), "cudaMalloc");
    check(cudaMemcpy(lengths, c.lengths.data(), B * sizeof(int64_t), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  void* workspace = nullptr;
  if (const size_t bytes = std::max(forward->workspace_bytes, backward->workspace_bytes))
    check(cudaMalloc(&workspace, bytes), "cudaMalloc");
  const bool has = Cell::kHasCell;
  const ForwardArrays<void> f{x.get(),
                              weights.get(),
                              S,
                              bias.get(),
                              h0.get(),
                              has ? cell0.get() : nullptr,
                              lengths,
                              outputs.get(),
                              h.get(),
                              has ? new_cell.get() : nullptr,
                              has ? cells.get() : nullptr,
                              z.get(),
                              c.reverse};
  const BackwardArrays<void> b{grad_outputs.get(),
                               grad_h.get(),
                               has ? grad_cell.get() : nullptr,
                               weights.get(),
                               S,
                               h0.get(),
                               has ? cell0.get() : nullptr,
                               outputs.get(),
                               has ? cells.get() : nullptr,
                               z.get(),
                               lengths,
                               d_z.get(),
                               d_h0.get(),
                               has ? d_cell0.get() : nullptr,
                               c.reverse};
  check(launch(*forward, f, workspace, nullptr), "forward");
  check(launch(*backward, b, workspace, nullptr), "backward");
  check(cudaDeviceSynchronize(), "kernels");
  const Numbers first_h = h.read(), first_d_h0 = d_h0.read(), first_d_z = d_z.read(),
                first_outputs = outputs.read();

  if (T * B * S * S <= int64_t(1) << 26) {
    compute_reference<Cell>(c, a, round);
    const double epsilon = sizeof(scalar_t) == 8      ? 1e-12
                           : scalar == Scalar::kFloat ? 2e-5
                           : scalar == Scalar::kTf32  ? 5e-3
                           : scalar == Scalar::kHalf  ? 1e-2
                                                      : 6e-2;
    compare("outputs", first_outputs, a.outputs, epsilon), compare("h", first_h, a.h, epsilon);
    compare("z", z.read(), a.z, epsilon), compare("d_z", first_d_z, a.d_z, epsilon);
    compare("d_h0", first_d_h0, a.d_h0, epsilon);
    if (has) {
      compare("cells", cells.read(), a.cells, epsilon), compare("cell", new_cell.read(), a.cell, epsilon);
      compare("d_cell0", d_cell0.read(), a.d_cell0, epsilon);
    }
    std::printf("largest error %.2e of the largest number, %d wrong\n", largest, failures);
  }
  if (repeats == 0) return cudaFree(lengths), cudaFree(workspace), failures != 0;
  const double forward_us =
      time_of(repeats, [&] { check(launch(*forward, f, workspace, nullptr), "forward"); });
  const double backward_us =
      time_of(repeats, [&] { check(launch(*backward, b, workspace, nullptr), "backward"); });
  const bool is_same = first_h == h.read() && first_outputs == outputs.read() && first_d_z == d_z.read() &&
                       first_d_h0 == d_h0.read();
  std::printf(
      "forward %.1f us (%.3f us a step), backward %.1f us (%.3f us a step); the same bits again: %s\n",
      forward_us, forward_us / T, backward_us, backward_us / T, is_same ? "yes" : "NO");
  cudaFree(lengths), cudaFree(workspace);
  return failures != 0 || !is_same;
}

template <typename Cell>
int run(const Case& c, CellKind cell, const std::string& type, Rung rung, int blocks, int repeats) {
  if (type == "float") return run<Cell, float>(c, cell, Scalar::kFloat, rung, blocks, repeats);
  if (type == "tf32") return run<Cell, float>(c, cell, Scalar::kTf32, rung, blocks, repeats);
  if (type == "half") return run<Cell, half>(c, cell, Scalar::kHalf, rung, blocks, repeats);
  if (type == "bfloat16") return run<Cell, __nv_bfloat16>(c, cell, Scalar::kBfloat16, rung, blocks, repeats);
  return run<Cell, double>(c, cell, Scalar::kDouble, rung, blocks, repeats);
}

int main(int count, char** arguments) {
  if (count < 7) return std::fprintf(stderr, "driver CELL TYPE RUNG T B S [BLOCKS [REPEATS [FLAGS]]]\n"), 2;
  const std::string cell = arguments[1], type = arguments[2], rung_name = arguments[3];
  Case c{std::atoll(arguments[4]), std::atoll(arguments[5]), std::atoll(arguments[6]), false, {}};
  const int blocks = count > 7 ? std::atoi(arguments[7]) : 0,
            repeats = count > 8 ? std::atoi(arguments[8]) : 0;
  const std::string flags = count > 9 ? arguments[9] : "";
  c.reverse = flags.find('r') != std::string::npos;
  if (flags.find('l') != std::string::npos)
    for (int64_t b = 0; b < c.B; ++b) c.lengths.push_back(b * 7 % (c.T + 1));
  const Rung rung = rung_name == "cluster" ? Rung::kCluster : Rung::kGrid;
  std::printf("%s %s %s T%lld B%lld S%lld %s\n", cell.c_str(), type.c_str(), rung_name.c_str(),
              (long long)c.T, (long long)c.B, (long long)c.S, flags.c_str());
  if (cell == "lltm") return run<Lltm>(c, CellKind::kLltm, type, rung, blocks, repeats);
  if (cell == "lstm") return run<Lstm>(c, CellKind::kLstm, type, rung, blocks, repeats);
  return run<Gru>(c, CellKind::kGru, type, rung, blocks, repeats);
}
