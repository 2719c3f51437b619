// The operators that an exported model calls, forward and in float, through torch's stable ABI: one library
// for every torch from 2.11 on. They have the names and schemas of stage 7's, so the program loads either
// library.
//
// Stage 7's own library is faster: it computes 16 units at once, and its product uses several threads.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../../stage7_sequence/csrc/cells.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// STABLE_TORCH_LIBRARY does not expand macros in its arguments.
#define EXPAND_TORCH_LIBRARY(name, m) STABLE_TORCH_LIBRARY(name, m)
#define EXPAND_TORCH_LIBRARY_IMPL(name, key, m) STABLE_TORCH_LIBRARY_IMPL(name, key, m)

EXPAND_TORCH_LIBRARY(LLTM_NAMESPACE, m) {
  m.def("product(Tensor left, Tensor right, Tensor? bias=None) -> Tensor");
  m.def(
      "recurrence(Tensor x, Tensor weights_h, Tensor? bias_h, Tensor h0, Tensor? cell0, Tensor? lengths, str "
      "cell,"
      " bool reverse, str rung, bool save)"
      " -> (Tensor outputs, Tensor h, Tensor cell, Tensor cells, Tensor z)");
}

void check_float(const char* name, const Tensor& tensor, std::vector<int64_t> shape) {
  STD_TORCH_CHECK(tensor.scalar_type() == ScalarType::Float, "lltm: ", name, " has dtype ",
                  tensor.scalar_type(), ", but this library computes in float only");
  STD_TORCH_CHECK(tensor.sizes().equals(shape), "lltm: ", name,
                  " has another shape than the arguments before it");
}

// left (M,K) @ right (K,N) + bias (N)
Tensor product(const Tensor& left, const Tensor& right, const std::optional<Tensor>& bias) {
  STD_TORCH_CHECK(left.dim() == 2 && right.dim() == 2, "lltm: left and right must be matrices");
  Tensor out = torch::stable::matmul(left, right);
  if (!bias) return out;
  const int64_t M = out.size(0), N = out.size(1);
  check_float("bias", *bias, {N});
  float* sums = out.mutable_data_ptr<float>();
  const Tensor contiguous = torch::stable::contiguous(*bias);
  const float* added = contiguous.const_data_ptr<float>();
  for (int64_t row = 0; row < M; ++row)
    for (int64_t column = 0; column < N; ++column) sums[row * N + column] += added[column];
  return out;
}

// The row's steps, one after the other. Shapes: x [3*S] of each step, weights [3*S,S], h and cell [S].
void run_row(int64_t steps, int64_t stride, const float* x, const float* weights, int64_t S, float* h,
             float* cell, float* outputs, int64_t outputs_stride) {
  std::vector<float> old_h(S);
  for (int64_t t = 0; t < steps; ++t) {
    std::copy(h, h + S, old_h.begin());
    for (int64_t unit = 0; unit < S; ++unit) {
      float z[Lltm::kSaved], inputs[Lltm::kGates], recurrent[Lltm::kGates] = {};
      for (int gate = 0; gate < Lltm::kGates; ++gate) {
        inputs[gate] = x[t * stride + gate * S + unit];
        const float* of_unit = weights + (gate * S + unit) * S;
        for (int64_t k = 0; k < S; ++k) recurrent[gate] += of_unit[k] * old_h[k];
      }
      Lltm::pre_activations(z, inputs, recurrent);
      h[unit] = Lltm::forward(z, old_h[unit], cell[unit]);
    }
    std::copy(h, h + S, outputs + t * outputs_stride);
  }
}

// The recurrence of an exported LLTM: no bias (the input parts contain it), no reverse order, nothing saved.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> recurrence(
    const Tensor& x_any, const Tensor& weights_any, const std::optional<Tensor>& bias, const Tensor& h0,
    const std::optional<Tensor>& cell0, const std::optional<Tensor>& lengths, std::string cell_name,
    bool reverse, std::string rung, bool save) {
  STD_TORCH_CHECK(
      cell_name == "lltm" && !bias && cell0 && !reverse && !save && (rung.empty() || rung == "cpu"),
      "lltm: this library computes the LLTM forward, without gradients; stage 7's computes the rest");
  STD_TORCH_CHECK(x_any.dim() == 3 && h0.dim() == 2, "lltm: x must be (T, B, 3*S) and h0 (B, S)");
  const int64_t T = x_any.size(0), B = x_any.size(1), S = h0.size(1);
  check_float("x", x_any, {T, B, 3 * S});
  check_float("weights_h", weights_any, {3 * S, S});
  check_float("h0", h0, {B, S});
  check_float("cell0", *cell0, {B, S});
  STD_TORCH_CHECK(!lengths || (lengths->scalar_type() == ScalarType::Long && lengths->sizes().equals({B})),
                  "lltm: lengths must be (B) of int64");
  const Tensor x = torch::stable::contiguous(x_any), weights = torch::stable::contiguous(weights_any);
  const Tensor steps = lengths ? torch::stable::contiguous(*lengths) : Tensor();
  Tensor outputs = torch::stable::new_empty(x, {T, B, S});
  Tensor h = torch::stable::clone(torch::stable::contiguous(h0));
  Tensor cell = torch::stable::clone(torch::stable::contiguous(*cell0));
  for (int64_t row = 0; row < B; ++row) {
    const int64_t length = lengths ? steps.const_data_ptr<int64_t>()[row] : T;
    STD_TORCH_CHECK(length >= 0 && length <= T, "lltm: lengths has ", length, " for row ", row,
                    ", but the sequence has ", T, " steps");
    float* h_row = h.mutable_data_ptr<float>() + row * S;
    float* out = outputs.mutable_data_ptr<float>() + row * S;
    run_row(length, B * 3 * S, x.const_data_ptr<float>() + row * 3 * S, weights.const_data_ptr<float>(), S,
            h_row, cell.mutable_data_ptr<float>() + row * S, out, B * S);
    for (int64_t t = length; t < T; ++t) std::copy(h_row, h_row + S, out + t * B * S);
  }
  const Tensor none = torch::stable::new_empty(x, {0});
  return {outputs, h, cell, none, none};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CPU, m) {
  m.impl("product", TORCH_BOX(&product));
  m.impl("recurrence", TORCH_BOX(&recurrence));
}
