import torch

from common.exercises.judge import CALLS, OPERATORS, Failure, LearnerError, require, right_or_refused, same

SCHEMAS = (
    "step(Tensor z, Tensor old_h) -> (Tensor new_h, Tensor gates)",
    "step_backward(Tensor grad_h, Tensor gates, Tensor old_h) -> (Tensor d_z, Tensor d_old_h)",
)
# Likely mistakes, and the switch of `step` that reproduces each of them.
MISTAKES = {
    "forget and 1 - forget are swapped": {"exchanged": True},
    "the gradient of old_h through the sum is not multiplied by 1 - forget": {"whole": True},
    "forget is treated as a constant: no gradient flows back through it": {"deaf": True},
}
REFUSE = (
    "gates leads nowhere, and old_h does not lead to z, so no later node can reach every caller: raise the error in "
    "backward, with once_differentiable in its message, if torch.is_grad_enabled()"
)
MISREAD = "gates is read as if it were contiguous"
LOST = "candidate loses the digits of a z near zero: std::tanh keeps them"


def check(work):
    probe = work.beside(OPERATORS)
    for expected in SCHEMAS:
        defined(probe, expected)
    probe.load("unit")
    for B, S in ((3, 70), (1, 33), (5, 1)):
        for dtype in (torch.float32, torch.float64):
            compare(probe, work.case(B, 1, S, dtype=dtype))
    for layout in ("transposed", "sliced"):
        compare(probe, work.case(3, 1, 70, dtype=torch.float64, layout=layout))
    compare(probe, work.case(3, 1, 70, dtype=torch.float64, grads="expanded"))
    one_gradient(probe, work.case(3, 1, 70, dtype=torch.float64))
    registered(work, probe)
    gates_without_gradient(work, probe)
    kept_by_autograd(work)
    compiled(work, probe)
    gates_with_strides(probe, work.case(3, 1, 70, dtype=torch.float64))
    near_zero(probe, work.case(3, 1, 70))
    second_derivatives(work)


def defined(probe, expected):
    """Raises `Failure` unless the operator has the schema and a kernel for the CPU."""
    name = f"unit::{expected.partition('(')[0]}"
    try:
        found = probe.schema(name)
    except LearnerError:
        raise Failure(f"there is no operator {name}") from None
    require(found == expected, f"{name} has the schema\n  {found}\nexpected\n  {expected}")
    require(probe.has_kernel(name, "CPU"), f"{name} has a schema but no kernel for the CPU")


def given(case):
    """z (B, 2S) and old_h (B, S) in the layout of the case, and the gradient of new_h."""
    other = type(case)(case.B, 1, 2 * case.S, dtype=case.dtype, layout=case.layout, seed=case.seed + 1)
    return other.inputs()["old_h"].detach(), case.inputs()["old_h"].detach(), case.gradients()[0]


def compare(probe, case):
    """Compares a call, forward and backward, with the equations in float64."""
    z, old_h, grad_h = given(case)
    want = results(step, z.double(), old_h.double(), grad_h.double())
    wrong = {
        words: results(
            lambda *inputs, switch=switch: step(*inputs, **switch), z.double(), old_h.double(), grad_h.double()
        )
        for words, switch in MISTAKES.items()
    }
    shape = tuple(probe.call("unit::step", z, old_h)[0].shape)
    require(shape == (case.B, case.S), f"new_h has shape {shape}, expected {(case.B, case.S)} ({case})")
    got = results(lambda *inputs: probe.call("unit::step", *inputs)[0], z, old_h, grad_h)
    for name, one in got.items():
        suspects = {words: tensors[name] for words, tensors in wrong.items()}
        same(name, one, want[name], case, suspects=suspects)


def one_gradient(probe, case):
    """Compares the gradient of one argument while the other needs none."""
    z, old_h, grad_h = given(case)
    want = results(step, z, old_h, grad_h)
    for name in ("z", "old_h"):
        inputs = {"z": z, "old_h": old_h}
        inputs[name] = inputs[name].clone().requires_grad_()
        new_h = probe.call("unit::step", *inputs.values())[0]
        (got,) = torch.autograd.grad(new_h, [inputs[name]], grad_h, allow_unused=True)
        require(got is not None, f"{name} has no gradient when only {name} needs one")
        same(f"d_{name}", got, want[f"d_{name}"], f"{case}; only {name} needs a gradient")


def results(unit, z, old_h, grad_h):
    """new_h and the gradients of z and old_h, by name."""
    inputs = [z.detach().requires_grad_(), old_h.detach().requires_grad_()]
    new_h = unit(*inputs)
    require(new_h.requires_grad, "new_h does not require a gradient: register one with register_autograd")
    d_z, d_old_h = torch.autograd.grad(new_h, inputs, grad_h, allow_unused=True)
    return {"new_h": new_h.detach(), "d_z": d_z, "d_old_h": d_old_h}


def step(z, old_h, exchanged=False, whole=False, deaf=False):
    """The equations of the README, with switches for likely mistakes."""
    z_f, z_c = z.chunk(2, dim=1)
    forget, candidate = z_f.sigmoid(), z_c.tanh()
    share = 1 - forget if exchanged else forget
    share = share.detach() if deaf else share
    kept = (1 - share) * old_h
    if whole:  # the value of the product, and a gradient of 1
        kept = (1 - share) * old_h.detach() + (old_h - old_h.detach())
    return kept + share * candidate


def registered(work, probe):
    """The fake kernels of both operators are right, and opcheck passes."""
    for dtype in (torch.float32, torch.float64):
        for device in ("cpu", "cuda:0", "meta"):
            truthful(probe, given(work.case(3, 1, 70, dtype=dtype, layout="transposed")), device)
    z, old_h, _ = given(work.case(3, 1, 70, layout="transposed"))
    for test in ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"):
        found = probe.opcheck("unit::step", test, z.requires_grad_(), old_h.requires_grad_())
        require(not found, f"opcheck's {test}: {found}")


def truthful(probe, arguments, device):
    """Raises `Failure` where a fake kernel describes something other than the result on that device."""
    z, old_h, grad_h = arguments
    _, gates = probe.call("unit::step", z, old_h)
    calls = (("unit::step", z, old_h), ("unit::step_backward", grad_h, gates, old_h))
    try:
        said = [one for call in calls for one in probe.fake(*call, device=device)]
    except LearnerError as error:
        if error.kind != "UnsupportedOperatorException":
            raise
        raise Failure("an operator has no fake kernel: register one with torch.library.register_fake") from None
    real = [[*one[:3], device] for call in calls for one in probe.real(*call)]
    for name, lie, truth in zip(("new_h", "gates", "d_z", "d_old_h"), said, real, strict=True):
        contiguous = list(torch.empty(truth[0], device="meta").stride())
        require(
            list(truth[1]) == contiguous,
            f"{name} has strides {tuple(truth[1])} for transposed arguments, expected {tuple(contiguous)}: "
            "results must be contiguous, but empty_like keeps the strides of its argument",
        )
        require(
            lie == truth,
            f"the fake kernel is wrong about {name}: it returns {shown(lie)}, "
            f"but the operator returns {shown(truth)}. "
            "tensor.new_empty takes dtype and device from the tensor, and its result is contiguous",
        )


def shown(described):
    """The description of a result, as text."""
    shape, strides, dtype, device = described
    return f"shape {tuple(shape)}, strides {tuple(strides)}, {dtype}, {device}"


def gates_without_gradient(work, probe):
    """The gates, which only backward reads, cannot be differentiated."""
    z, old_h, _ = given(work.case(3, 1, 70))
    _, gates = probe.call("unit::step", z.requires_grad_(), old_h.requires_grad_())
    require(
        not gates.requires_grad,
        "gates requires a gradient, but the gradient of a loss that uses it would be wrong: backward takes only the "
        "gradient of new_h. Mark gates with ctx.mark_non_differentiable",
    )


def kept_by_autograd(work):
    """Tensors are saved with save_for_backward, so that autograd notices when they change."""
    inputs = work.case(3, 5, 70).inputs()
    arguments = [inputs["input"], inputs["weights"][:140], inputs["bias"][:140], inputs["old_h"]]
    kept = work.beside(CALLS).attributes("unit", "unit", *arguments)
    require(
        not kept,
        f"ctx.{', ctx.'.join(kept)} holds tensors: autograd does not notice when such a tensor is changed before "
        "backward. Save tensors with ctx.save_for_backward",
    )


def compiled(work, probe):
    """The unit compiles into one graph that computes the same values."""
    case = work.case(3, 5, 70)
    inputs = case.inputs()
    arguments = [inputs["input"], inputs["weights"][:140], inputs["bias"][:140], inputs["old_h"]]
    arguments = [tensor.detach().requires_grad_() for tensor in arguments]
    grad_h = case.gradients()[0]
    found = []
    for unit in (work.load("unit").unit, lambda *given: probe.compiled("unit", "unit", False, *given)):
        new_h = unit(*arguments)
        found.append([new_h.detach(), *torch.autograd.grad(new_h, arguments, grad_h)])
    for name, eager, one in zip(("new_h", "d_input", "d_weights", "d_bias", "d_old_h"), *found, strict=True):
        same(f"{name} of the compiled unit", one, eager.double(), case)


def gates_with_strides(probe, case):
    """The backward accepts gates with other strides than those that step returns."""
    z, old_h, grad_h = given(case)
    _, gates = probe.call("unit::step", z, old_h)
    in_memory = gates.transpose(0, 2).contiguous()
    three = (in_memory.transpose(0, 2), gates, in_memory.view_as(gates))
    found = (probe.call("unit::step_backward", grad_h, one, old_h) for one in three)
    for name, got, want, misread in zip(("d_z", "d_old_h"), *found, strict=True):
        same(name, got, want, f"{case}, transposed gates", suspects={MISREAD: misread})


def second_derivatives(work):
    """Each second derivative of the unit raises an error."""
    inputs = work.case(2, 3, 4, dtype=torch.float64).inputs()
    arguments = [inputs["input"], inputs["weights"][:8], inputs["bias"][:8], inputs["old_h"]]
    names = ("input", "weights", "bias", "old_h")
    arguments = {name: one.detach().requires_grad_() for name, one in zip(names, arguments, strict=True)}
    right_or_refused(work.load("unit").unit, equations, arguments, REFUSE)


def equations(input, weights, bias, old_h):
    """The whole unit, in operations that autograd follows."""
    return step(torch.addmm(bias, torch.cat([old_h, input], dim=1), weights.t()), old_h)


def near_zero(probe, case):
    """The candidate of a z near zero has all digits of its dtype."""
    z, old_h, _ = given(case)
    z, old_h = 3e-4 * z, torch.zeros_like(old_h)
    new_h, _ = probe.call("unit::step", z, old_h)
    want = step(z.double(), old_h.double())
    # All other values are right, so numbers that are almost these have lost digits.
    same("new_h", new_h, want, f"{case}, z near zero, old_h zero", suspects={LOST: want})
