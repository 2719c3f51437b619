// The recurrence on a GPU: the choice of the rung, the loop over steps, and calls of the persistent kernels.
#include <ATen/Context.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>

#include "loop.h"
#include "operators.h"
#include "recurrence.h"

namespace {  // each library has its own, as in sequence_autograd.cpp

using at::Tensor;

// The arguments of the operators, prepared for kernels: contiguous, and undefined if missing.
struct Arguments {
  Tensor x, weights_h, bias_h, h0, cell0, lengths;
  std::string cell;
  bool reverse;
};

struct Results {
  Tensor outputs, h, cell, cells,
      z;  // cell, cells and z have shape (0) if the cell lacks them or they are not saved
};

struct BackwardArguments {
  Tensor grad_outputs, grad_h, grad_cell, weights_h, h0, cell0, lengths, outputs, cells, z;
  std::string cell;
  bool reverse;
};

struct Gradients {
  Tensor d_z, d_h0, d_cell0;
};

Tensor contiguous(const OptionalTensor& tensor) { return tensor ? tensor->contiguous() : Tensor(); }

// The tensor, or an undefined one if it is empty for lack of use.
Tensor if_used(const Tensor& tensor, bool is_used) { return is_used ? tensor : Tensor(); }

// The choice of the rung
// ----------------------

Scalar scalar_of(at::ScalarType dtype) {
  if (dtype == at::kDouble) return Scalar::kDouble;
  if (dtype == at::kHalf) return Scalar::kHalf;
  if (dtype == at::kBFloat16) return Scalar::kBfloat16;
  return at::globalContext().allowTF32CuBLAS() ? Scalar::kTf32 : Scalar::kFloat;
}

CellKind kind_of(std::string_view cell) {
  return cell == "lltm" ? CellKind::kLltm : cell == "lstm" ? CellKind::kLstm : CellKind::kGru;
}

// A plan for a persistent kernel, or why there is none.
struct Answer {
  std::optional<Plan> plan;
  std::string reason;
};

// The answer for the current device. A plan takes longer than a launch, so answers are kept.
const Answer& find_plan(Rung rung, std::string_view cell, at::ScalarType dtype, Sizes sizes, bool backward) {
  using Key = std::tuple<c10::DeviceIndex, Rung, CellKind, Scalar, int64_t, int64_t, int64_t, bool>;
  static std::mutex mutex;
  static std::map<Key, Answer> answers;
  const Key key = {c10::cuda::current_device(),
                   rung,
                   kind_of(cell),
                   scalar_of(dtype),
                   sizes.steps,
                   sizes.batch,
                   sizes.state,
                   backward};
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [found, is_new] = answers.try_emplace(key);
  if (is_new) {
    if (sizes.steps && sizes.batch && sizes.state)
      found->second.plan =
          make_plan(rung, kind_of(cell), scalar_of(dtype), sizes, backward, found->second.reason);
    else
      found->second.reason = "there is nothing to compute";
  }
  return found->second;  // elements of a map stay where they are
}

// The rung that runs, its plan if it is persistent, and why it was chosen.
struct Choice {
  std::string rung, reason;
  const Plan* plan = nullptr;
};

constexpr std::pair<const char*, Rung> kPersistent[] = {{"cluster", Rung::kCluster}, {"grid", Rung::kGrid}};

// What a step of the loop takes at least: to launch its kernels, from a CPU as in an H200's machine.
constexpr double kLoopStep = 25e3;  // nanoseconds

// The rung that is the fastest by estimate.
Choice choose(std::string_view cell, at::ScalarType dtype, Sizes sizes, bool backward) {
  std::string refusals;
  const Plan* best = nullptr;
  const char* best_name = nullptr;
  for (const auto& [name, rung] : kPersistent) {
    const Answer& answer = find_plan(rung, cell, dtype, sizes, backward);
    if (!answer.plan)
      refusals += std::string("no ") + name + ", because " + answer.reason + "; ";
    else if (!best || answer.plan->step_ns < best->step_ns)
      best = &*answer.plan, best_name = name;
  }
  if (!best) return {"loop", refusals + "a product and a kernel for each step"};
  const std::string time = std::to_string(int64_t(best->step_ns / 1e3 + 0.5)) + " us";
  if (best->step_ns > kLoopStep)
    return {"loop", refusals + "a product and a kernel for each step, because " + best_name +
                        " would take about " + time + " for one"};
  return {best_name,
          refusals + "the recurrent weights fit on chip, in " + std::to_string(best->chains) + " chains of " +
              std::to_string(best->division.blocks) + " blocks; a step takes about " + time,
          best};
}

// The rung that the caller asks for; without a name, the chosen one.
Choice find_rung(std::string_view rung, std::string_view cell, at::ScalarType dtype, Sizes sizes,
                 bool backward) {
  if (rung.empty()) return choose(cell, dtype, sizes, backward);
  if (rung == "loop") return {"loop", "", nullptr};
  for (const auto& [name, persistent] : kPersistent) {
    if (rung != name) continue;
    if (!sizes.steps || !sizes.batch || !sizes.state) return {"loop", "", nullptr};  // nothing to compute
    const Answer& answer = find_plan(persistent, cell, dtype, sizes, backward);
    TORCH_CHECK(answer.plan, "lltm: rung '", rung, "' cannot run: ", answer.reason);
    return {name, "", &*answer.plan};
  }
  TORCH_CHECK(false, "lltm: rung is '", rung,
              "', but tensors on a GPU have 'loop', 'graph', 'grid' and 'cluster'");
}

std::tuple<std::string, std::string> choose_rung(const Tensor& like, std::string_view cell, int64_t T,
                                                 int64_t B, int64_t S, bool backward) {
  constants_of(cell);  // refuses a name that no cell has
  const c10::cuda::CUDAGuard guard(like.device());
  const Choice choice = choose(cell, like.scalar_type(), {T, B, S}, backward);
  return {choice.rung, choice.reason};
}

// The loop over steps
// -------------------

void run_loop(const Arguments& given, const Results& results) {
  const int64_t T = given.x.size(0);
  const bool has_cell = given.cell0.defined(), saves = results.z.dim() == 3;
  const Tensor columns = given.weights_h.t();  // [S,G*S]
  if (has_cell) results.cell.copy_(given.cell0);
  Tensor h = given.h0;
  for (int64_t step = 0; step < T; ++step) {
    const int64_t time = given.reverse ? T - 1 - step : step;
    const Tensor recurrent = given.bias_h.defined() ? at::addmm(given.bias_h, h, columns) : h.mm(columns);
    const Tensor new_h = results.outputs[time];
    launch_step({given.x[time], recurrent, h, new_h, if_used(results.cell, has_cell),
                 saves && has_cell ? results.cells[time] : Tensor(), saves ? results.z[time] : Tensor(),
                 given.lengths, time},
                given.cell);
    h = new_h;
  }
  results.h.copy_(h);
}

void run_loop(const BackwardArguments& given, const Gradients& results) {
  const int64_t T = given.z.size(0), B = given.h0.size(0), S = given.h0.size(1);
  const bool has_cell = given.cell0.defined();
  const auto math = given.z.options().dtype(at::toOpMathType(given.z.scalar_type()));
  auto start = [&](const Tensor& grad) {
    return grad.defined() ? grad.to(math).clone() : at::zeros({B, S}, math);
  };
  const Tensor d_h = start(given.grad_h), d_cell = has_cell ? start(given.grad_cell) : Tensor();
  Tensor product;
  for (int64_t step = T - 1; step >= 0; --step) {
    const int64_t time = given.reverse ? T - 1 - step : step, before = given.reverse ? time + 1 : time - 1;
    const Tensor d_recurrent = at::empty({B, given.weights_h.size(0)}, given.z.options());
    launch_step({given.grad_outputs.defined() ? given.grad_outputs[time] : Tensor(), product, given.z[time],
                 step ? given.outputs[before] : given.h0,
                 !has_cell ? Tensor()
                 : step    ? given.cells[before]
                           : given.cell0,
                 has_cell ? given.cells[time] : Tensor(), d_h, d_cell, results.d_z[time], d_recurrent,
                 given.lengths, time},
                given.cell);
    product = d_recurrent.mm(given.weights_h);
  }
  results.d_h0.copy_(product.defined() ? at::add(d_h, product) : d_h);
  if (has_cell) results.d_cell0.copy_(d_cell);
}

// The persistent kernels
// ----------------------

const void* pointer_to(const Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }
void* pointer_to_out(const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr() : nullptr; }

template <typename Arrays>
void launch_plan(const Plan& plan, Arrays& arrays, const Tensor& like) {
  const Tensor workspace = at::empty({int64_t(plan.workspace_bytes)}, like.options().dtype(at::kByte));
  arrays.workspace = plan.workspace_bytes ? workspace.mutable_data_ptr() : nullptr;
  C10_CUDA_CHECK(launch(plan, arrays, c10::cuda::getCurrentCUDAStream()));
}

void run_persistent(const Plan& plan, const Arguments& given, const Results& results) {
  const bool has_cell = given.cell0.defined(), saves = results.z.dim() == 3;
  Forward arrays = {};
  arrays.x = pointer_to(given.x);
  arrays.weights = pointer_to(given.weights_h);
  arrays.weights_stride = given.weights_h.stride(0);
  arrays.bias = pointer_to(given.bias_h);
  arrays.h0 = pointer_to(given.h0);
  arrays.cell0 = pointer_to(given.cell0);
  arrays.lengths = static_cast<const int64_t*>(pointer_to(given.lengths));
  arrays.outputs = pointer_to_out(results.outputs);
  arrays.h = pointer_to_out(results.h);
  arrays.cell = pointer_to_out(if_used(results.cell, has_cell));
  arrays.cells = pointer_to_out(if_used(results.cells, has_cell && saves));
  arrays.z = pointer_to_out(if_used(results.z, saves));
  arrays.reverse = given.reverse;
  launch_plan(plan, arrays, given.x);
}

void run_persistent(const Plan& plan, const BackwardArguments& given, const Gradients& results) {
  const bool has_cell = given.cell0.defined();
  Backward arrays = {};
  arrays.grad_outputs = pointer_to(given.grad_outputs);
  arrays.grad_h = pointer_to(given.grad_h);
  arrays.grad_cell = pointer_to(given.grad_cell);
  arrays.weights = pointer_to(given.weights_h);
  arrays.weights_stride = given.weights_h.stride(0);
  arrays.h0 = pointer_to(given.h0);
  arrays.cell0 = pointer_to(given.cell0);
  arrays.outputs = pointer_to(given.outputs);
  arrays.cells = pointer_to(if_used(given.cells, has_cell));
  arrays.z = pointer_to(given.z);
  arrays.lengths = static_cast<const int64_t*>(pointer_to(given.lengths));
  arrays.d_z = pointer_to_out(results.d_z);
  arrays.d_h0 = pointer_to_out(results.d_h0);
  arrays.d_cell0 = pointer_to_out(if_used(results.d_cell0, has_cell));
  arrays.reverse = given.reverse;
  launch_plan(plan, arrays, given.z);
}

// The operators
// -------------

template <typename Given, typename Made>
void run(const Choice& choice, const Given& given, const Made& made) {
  if (choice.plan)
    run_persistent(*choice.plan, given, made);
  else
    run_loop(given, made);
}

// The kernels read rows of weights with any stride between them, but contiguous numbers in each.
Tensor in_rows(const Tensor& weights) {
  return weights.stride(1) == 1 || weights.size(1) < 2 ? weights : weights.contiguous();
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> recurrence(const Tensor& x, const Tensor& weights_h,
                                                              const OptionalTensor& bias_h, const Tensor& h0,
                                                              const OptionalTensor& cell0,
                                                              const OptionalTensor& lengths,
                                                              std::string_view cell, bool reverse,
                                                              std::string_view rung, bool save) {
  if (rung == "graph") {
    static const auto graphed = find_operator<Recurrence>(LLTM_OPERATOR("graphed_recurrence"));
    return graphed.call(x, weights_h, bias_h, h0, cell0, lengths, cell, reverse, "loop", save);
  }
  check_recurrence(x, weights_h, bias_h, h0, cell0, lengths, cell);
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t T = x.size(0), B = h0.size(0), S = h0.size(1);
  const Choice choice = find_rung(rung, cell, x.scalar_type(), {T, B, S}, /*backward=*/false);
  const int64_t K = constants_of(cell).saved;
  auto empty_if = [&](bool wanted, at::IntArrayRef shape) {
    return at::empty(wanted ? shape : at::IntArrayRef{0}, x.options());
  };
  const Arguments given = {x.contiguous(),    in_rows(weights_h),  contiguous(bias_h), h0.contiguous(),
                           contiguous(cell0), contiguous(lengths), std::string(cell),  reverse};
  const Results results = {empty_if(true, {T, B, S}), empty_if(true, {B, S}),
                           empty_if(cell0.has_value(), {B, S}), empty_if(save && cell0, {T, B, S}),
                           empty_if(save, {T, B, K * S})};
  run(choice, given, results);
  return {results.outputs, results.h, results.cell, results.cells, results.z};
}

std::tuple<Tensor, Tensor, Tensor> recurrence_backward(
    const OptionalTensor& grad_outputs, const OptionalTensor& grad_h, const OptionalTensor& grad_cell,
    const Tensor& weights_h, const Tensor& h0, const OptionalTensor& cell0, const OptionalTensor& lengths,
    const Tensor& outputs, const Tensor& cells, const Tensor& z, std::string_view cell, bool reverse,
    std::string_view rung) {
  if (rung == "graph") {
    static const auto graphed =
        find_operator<RecurrenceBackward>(LLTM_OPERATOR("graphed_recurrence_backward"));
    return graphed.call(grad_outputs, grad_h, grad_cell, weights_h, h0, cell0, lengths, outputs, cells, z,
                        cell, reverse, "loop");
  }
  check_recurrence_backward(grad_outputs, grad_h, grad_cell, weights_h, h0, cell0, lengths, outputs, cells, z,
                            cell);
  const c10::cuda::CUDAGuard guard(z.device());
  const int64_t T = z.size(0), B = h0.size(0), S = h0.size(1);
  const Choice choice = find_rung(rung, cell, z.scalar_type(), {T, B, S}, /*backward=*/true);
  const BackwardArguments given = {contiguous(grad_outputs), contiguous(grad_h),   contiguous(grad_cell),
                                   in_rows(weights_h),       h0.contiguous(),      contiguous(cell0),
                                   contiguous(lengths),      outputs.contiguous(), cells.contiguous(),
                                   z.contiguous(),           std::string(cell),    reverse};
  const Gradients results = {at::empty(z.sizes(), z.options()), at::empty(h0.sizes(), z.options()),
                             at::empty(cell0 ? cell0->sizes() : at::IntArrayRef{0}, z.options())};
  run(choice, given, results);
  return {results.d_z, results.d_h0, results.d_cell0};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CUDA, m) {
  m.impl("recurrence", &recurrence);
  m.impl("recurrence_backward", &recurrence_backward);
  m.impl("choose_rung", &choose_rung);
}

}  // namespace
