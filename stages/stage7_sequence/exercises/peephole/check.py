import torch

from common.exercises.judge import Failure, same, stored_once, unchanged
from common.exercises.judging.programs import printed

GIVEN = "Write the policy in peephole.h: the kernels that call it are given"
INPUTS = ("x", "weights", "peepholes", "h0", "cell0")
DIFFERENTIATED = ("x", "h0", "cell0")  # d_x is d_z: the gradients of weights and peepholes follow from it
EXTREME, UNUSED = ", cells of 0 and of 80", ", outputs without a gradient"
RESULTS = ("outputs", "cell", "d_z", "d_h0", "d_cell0")
# Typical mistakes: for a gate, the cell that it sees, and the cell that receives the gradient on this path.
NO_PEEPHOLES = dict.fromkeys(("input", "forget", "output"), ("nothing", "nothing"))
WRONG_FORWARD = {
    "this is an LSTM without peepholes": NO_PEEPHOLES,
    "the output gate has no peephole": {"output": ("nothing", "nothing")},
    "the output gate sees the old cell, but it should see the new one": {"output": ("old", "old")},
    "the input gate sees a cell that forward has already changed": {"input": ("forgotten", "old")},
    "the peepholes of input gate and forget gate are exchanged": {"exchanged": True},
}
WRONG_BACKWARD = {
    "the path from the new cell through the output gate is missing": {"output": ("new", "nothing")},
    "the path from the old cell through the input gate is missing": {"input": ("old", "nothing")},
    "the path from the old cell through the forget gate is missing": {"forget": ("old", "nothing")},
    "the paths from the old cell through the input gate and the forget gate are missing": {
        "input": ("old", "nothing"),
        "forget": ("old", "nothing"),
    },
    "all paths through the peepholes are missing": {
        "input": ("old", "nothing"),
        "forget": ("old", "nothing"),
        "output": ("new", "nothing"),
    },
    "backward computes its gates without the peepholes' terms, as in an LSTM": NO_PEEPHOLES,
    "backward computes its gates without the peepholes' terms": {
        "input": ("nothing", "old"),
        "forget": ("nothing", "old"),
        "output": ("nothing", "new"),
    },
    "backward's output gate sees the old cell": {"output": ("old", "new")},
    "backward's input gate and forget gate see the new cell": {"input": ("new", "old"), "forget": ("new", "old")},
}


def check(work):
    for file in ("sequence.cu", "gate_math.h"):
        unchanged(work, file, GIVEN)
    numbers = work.numbers()
    for T, B, S, kind in ((1, 3, 5, ""), (4, 2, 7, ""), (2, 2, 4, EXTREME), (1, 2, 3, UNUSED)):
        case = f"T={T}, B={B}, S={S}{kind}"
        given = random_inputs(T, B, S, numbers)
        if kind == EXTREME:
            given["cell0"][:, 0], given["cell0"][:, 1] = 0, 80
            given["peepholes"][1, 1] = 1  # the forget gate keeps the cell of 80
        upstream = [torch.randn(*shape, generator=numbers, dtype=torch.float64) for shape in ((T, B, S), (B, S))]
        if kind == UNUSED:
            upstream[0].zero_()
        got, want = run(work, given, upstream, case), reference(given, upstream)
        wrong = {words: reference(given, upstream, values=sees) for words, sees in WRONG_FORWARD.items()}
        compare(got, want, RESULTS[:2], case, wrong)
        quotient, product = difference_quotient(work, got, given, upstream, numbers, case)
        both = f"the difference quotient of forward is {quotient:.6g}, and backward gives {product:.6g}"
        wrong = {words: reference(given, upstream, derivatives=sees) for words, sees in WRONG_BACKWARD.items()}
        try:
            compare(got, want, RESULTS[2:], case, wrong)
        except Failure as failure:
            raise Failure(f"{failure}\nYour forward pass is right. In a random direction, {both}") from None
    return both


def random_inputs(T, B, S, numbers):
    """The arguments of a sequence by name. The cell and the peepholes are large enough to matter."""
    shapes = ((T, B, 4, S), (4, S, S), (3, S), (B, S), (B, S))
    given = {
        name: torch.randn(*shape, generator=numbers, dtype=torch.float64)
        for name, shape in zip(INPUTS, shapes, strict=True)
    }
    return given | {"weights": given["weights"] / S**0.5}


def run(work, given, upstream, case):
    """The results of the learner's program by name."""
    T, B, _, S = given["x"].shape
    shapes = ((T, B, S), (B, S), (T, B, 4, S), (B, S), (B, S))
    sizes = [torch.Size(shape).numel() for shape in shapes]
    arguments = [T, B, S, *given.values(), *upstream]
    got, counted = printed(work, "sequence.cu", arguments, (sum(sizes),), case, torch.float64)
    stored_once(counted, got.nbytes, case)
    return {name: part.view(shape) for name, part, shape in zip(RESULTS, got.split(sizes), shapes, strict=True)}


def compare(got, want, names, case, mistakes):
    """Raises `Failure` unless these results are right. `mistakes`: the results of typical mistakes."""
    for name in names:
        suspects = {words: results[name] for words, results in mistakes.items()}
        same(name, got[name], want[name], case, torch.float64, 1e-10, suspects)


def difference_quotient(work, got, given, upstream, numbers, case):
    """The derivative of the learner's forward pass in a random direction, and the one that backward gives."""
    step = 1e-6
    direction = {
        name: torch.randn(given[name].shape, generator=numbers, dtype=torch.float64) for name in DIFFERENTIATED
    }
    losses = []
    for sign in (1, -1):
        moved = {name: x + sign * step * direction.get(name, torch.zeros(())) for name, x in given.items()}
        results = run(work, moved, upstream, case)
        losses.append(sum((results[name] * g).sum() for name, g in zip(RESULTS[:2], upstream, strict=True)))
    gradients = zip(direction.values(), (got[name] for name in RESULTS[2:]), strict=True)
    return float(losses[0] - losses[1]) / (2 * step), float(sum((v * g).sum() for v, g in gradients))


def reference(given, upstream, values=None, derivatives=None):
    """Results and gradients by name, by autograd. `values` are mistakes of forward, and `derivatives` of backward."""
    inputs = {name: tensor.clone().requires_grad_() for name, tensor in given.items()}
    h, cell, peepholes = inputs["h0"], inputs["cell0"], inputs["peepholes"]
    outputs = []
    for x in inputs["x"]:
        z = x + torch.einsum("gsk,bk->bgs", inputs["weights"], h)
        forward = unit_step(z, peepholes, cell, **values or {})
        backward = unit_step(z, peepholes, cell, forward[1], **derivatives) if derivatives else forward
        h, cell = (with_value(*pair) for pair in zip(forward, backward, strict=True))
        outputs.append(h)
    results = torch.stack(outputs), cell
    gradients = torch.autograd.grad(results, [inputs[name] for name in DIFFERENTIATED], upstream)
    return dict(zip(RESULTS, (*(result.detach() for result in results), *gradients), strict=True))


def unit_step(
    z, peepholes, cell, at=None, input=("old", "old"), forget=("old", "old"), output=("new", "new"), exchanged=False
):
    """New h and new cell by the equations of the README. `at`: the value that the new cell has in forward.

    A gate sees the cell of the first name, and its gradient goes to the cell of the second.
    """
    z_i, z_f, z_g, z_o = z.unbind(1)
    p_i, p_f, p_o = peepholes[[1, 0, 2]] if exchanged else peepholes
    cells = {"old": cell, "nothing": torch.zeros_like(cell), "forgotten": cell * torch.sigmoid(z_f + p_f * cell)}
    cells |= {} if at is None else {"new": at}

    def gate(z, weight, sees):
        return torch.sigmoid(z + weight * with_value(*(cells[name] for name in sees)))

    new_cell = gate(z_f, p_f, forget) * cell + gate(z_i, p_i, input) * torch.tanh(z_g)
    cells["new"] = new_cell = new_cell if at is None else with_value(at, new_cell)
    return gate(z_o, p_o, output) * torch.tanh(new_cell), new_cell


def with_value(value, derivative):
    """A tensor with this value, whose gradient goes to `derivative`."""
    return value.detach() + derivative - derivative.detach()
