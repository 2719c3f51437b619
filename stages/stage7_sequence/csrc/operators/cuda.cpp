// The recurrence on a GPU: the choice of the rung, and its call.
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>

#include "../loop/loop.h"
#include "../persistent/plan.h"
#include "operators.h"

namespace {  // each library has its own, as in autograd.cpp

using at::Tensor;

// The choice of the rung
// ----------------------

Scalar scalar_of(at::ScalarType dtype) {
  if (dtype == at::kDouble) return Scalar::kDouble;
  if (dtype == at::kHalf) return Scalar::kHalf;
  if (dtype == at::kBFloat16) return Scalar::kBfloat16;
  return at::globalContext().allowTF32CuBLAS() ? Scalar::kTf32 : Scalar::kFloat;
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
              std::to_string(best->partition.blocks) + " blocks; a step takes about " + time,
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

// The operators
// -------------

template <typename Arguments, typename Results>
void run_persistent(const Plan& plan, const Arguments& given, const Results& made) {
  const Tensor workspace = at::empty({int64_t(plan.workspace_bytes)}, given.h0.options().dtype(at::kByte));
  void* const memory = plan.workspace_bytes ? workspace.mutable_data_ptr() : nullptr;
  C10_CUDA_CHECK(launch(plan, arrays_of<void>(given, made), memory, c10::cuda::getCurrentCUDAStream()));
}

template <typename Arguments>
auto run(const Choice& choice, const Arguments& given, at::ScalarType dtype) {
  const Arguments prepared = prepare(given, dtype);
  const auto made = allocate(prepared);
  if (choice.plan)
    run_persistent(*choice.plan, prepared, made);
  else
    run_loop(prepared, made);
  return made;
}

ForwardResults recurrence(const ForwardArguments& given) {
  if (given.rung == "graph") {
    static const auto graphed = find_operator<RecurrenceSignature>(LLTM_OPERATOR("graphed_recurrence"));
    ForwardArguments of_loop = given;
    of_loop.rung = "loop";
    return call(graphed, of_loop);
  }
  check_recurrence(given);
  const c10::cuda::CUDAGuard guard(given.x.device());
  const at::ScalarType dtype = given.x.scalar_type();
  const Sizes sizes = {given.x.size(0), given.h0.size(0), given.h0.size(1)};
  return run(find_rung(given.rung, given.cell, dtype, sizes, /*backward=*/false), given, dtype);
}

BackwardResults recurrence_backward(const BackwardArguments& given) {
  if (given.rung == "graph") {
    static const auto graphed =
        find_operator<RecurrenceBackwardSignature>(LLTM_OPERATOR("graphed_recurrence_backward"));
    BackwardArguments of_loop = given;
    of_loop.rung = "loop";
    return call(graphed, of_loop);
  }
  check_recurrence_backward(given);
  const c10::cuda::CUDAGuard guard(given.z.device());
  const at::ScalarType dtype = given.z.scalar_type();
  const Sizes sizes = {given.z.size(0), given.h0.size(0), given.h0.size(1)};
  return run(find_rung(given.rung, given.cell, dtype, sizes, /*backward=*/true), given, dtype);
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CUDA, m) {
  m.impl("recurrence", as_recurrence<&recurrence>());
  m.impl("recurrence_backward", as_recurrence_backward<&recurrence_backward>());
  m.impl("choose_rung", &choose_rung);
}

}  // namespace
