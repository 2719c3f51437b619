# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01: the cell in Python
#
# One small recurrent cell is the example of this whole workbook. In this notebook you write it in plain PyTorch,
# derive its gradient by hand and verify it. Notebook 01b then measures how long a step of the cell takes.
#
# You need Python and PyTorch. The notebook takes about 35 minutes.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

torch.manual_seed(0)
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown] syllabus="1.1a 1.1b"
# ## The cell
#
# A recurrent cell is a function that is called once for each step of a sequence. The LLTM (long long-term memory)
# takes an input and the state after the previous step, `old_h` and `old_cell`, and returns the new state. There are
# `B` rows in a batch, `I` input features and a state of size `S`:
#
#     X        = concat([old_h, input], dim=1)          (B, S+I)
#     z        = X @ weights.T + bias                   (B, 3S)
#     z_i, z_o, z_g = z.chunk(3, dim=1)                 (B, S) each
#     input_gate, output_gate, candidate_cell = sigmoid(z_i), sigmoid(z_o), elu(z_g)
#     new_cell = old_cell + candidate_cell * input_gate
#     new_h    = tanh(new_cell) * output_gate
#
# elu(z) is z for z > 0, and exp(z) - 1 otherwise. The LLTM is an LSTM (long short-term memory, a widely used
# recurrent cell) without a forget gate. PyTorch's former tutorial on extensions uses the LLTM, and this cell is a
# good choice: it is small enough to remember, and it has all the features that make real cells hard to run fast.

# %% [markdown]
# The next code cells compute the LLTM line by line. The sizes are small and all different, so you can recognise each
# dimension by its size:

# %%
B, I, S = 4, 3, 5
input = torch.randn(B, I)
old_h, old_cell = torch.randn(B, S), torch.randn(B, S)
weights, bias = torch.randn(3 * S, S + I), torch.randn(3 * S)

# %%
X = torch.cat([old_h, input], dim=1)
z = X @ weights.T + bias
print("X", tuple(X.shape), "  z", tuple(z.shape))

# %% [markdown]
# One matrix product computes `z_i`, `z_o` and `z_g` at once: `z` consists of these three blocks of `S` columns. The
# numbers in `z` are called pre-activations, because sigmoid and elu, the activation functions, come after them.

# %%
z_i, z_o, z_g = z.chunk(3, dim=1)
input_gate, output_gate, candidate_cell = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_g)
print("gates", tuple(input_gate.shape), tuple(output_gate.shape), tuple(candidate_cell.shape))
print(f"input_gate     from {input_gate.min():6.3f} to {input_gate.max():6.3f}")
print(f"candidate_cell from {candidate_cell.min():6.3f} to {candidate_cell.max():6.3f}")

# %% [markdown]
# The two gates lie between 0 and 1, and other numbers are multiplied by them: a gate determines *how much* of a
# number passes. The candidate determines *what* is added to the cell. The candidate has only a lower bound, -1, the
# lower bound of elu.

# %%
new_cell = old_cell + candidate_cell * input_gate
new_h = torch.tanh(new_cell) * output_gate
print("new_cell", tuple(new_cell.shape), "  new_h", tuple(new_h.shape))

# %% [markdown]
# The picture shows the same computation, with a shape on every edge. Follow the thick line at the top: there is no
# multiplication on the way from `old_cell` to `new_cell`.

# %%
from common.figures.diagrams.cell_diagram import draw_dataflow

draw_dataflow()

# %% [markdown]
# The whole cell is a function of six lines, with five input tensors and two output tensors. Every stage has a
# function with this signature.


# %%
def lltm(input, weights, bias, old_h, old_cell):
    X = torch.cat([old_h, input], dim=1)
    z_i, z_o, z_g = F.linear(X, weights, bias).chunk(3, dim=1)
    input_gate, output_gate, candidate_cell = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_g)
    new_cell = old_cell + candidate_cell * input_gate
    new_h = torch.tanh(new_cell) * output_gate
    return new_h, new_cell


again_h, again_cell = lltm(input, weights, bias, old_h, old_cell)
print("the same as line by line:", torch.allclose(again_h, new_h), torch.allclose(again_cell, new_cell))

# %% [markdown]
# Stage 1 of the workbook contains the same equations, and a check of the arguments:

# %%
from common import load

stage1 = load(1)
try:
    stage1.lltm(input, weights, bias, old_h, old_cell[:1])
except RuntimeError as error:
    print(error)

# %% [markdown]
# Without the check, broadcasting would have used this one row of `old_cell` for the whole batch, without an error.
# The check changes only what happens in wrong calls. The results of right calls are the same.

# %% [markdown] tags=["exercise"]
# **Your turn:** `1/cell`. `make check EX=1/cell` in a terminal creates the files of the exercise and checks what you
# wrote. The code cell below makes the same check here.

# %%
from common.exercises import show

show("1/cell")

# %% [markdown] syllabus="1.1e"
# ## A wrong dimension in `chunk`
#
# `z.chunk(3)` looks like `z.chunk(3, dim=1)`, but it splits dimension 0, the batch. The mistake is easy to make in
# this cell. Usually the first call raises an error, and the mistake is found:


# %%
def wrong_lltm(input, weights, bias, old_h, old_cell):
    X = torch.cat([old_h, input], dim=1)
    z_i, z_o, z_g = F.linear(X, weights, bias).chunk(3)  # splits the batch, not the gates
    new_cell = old_cell + F.elu(z_g) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


# %%
from common.cell.case import Case

for B, S in [(4, 5), (6, 5), (3, 5)]:
    try:
        wrong_lltm(**Case(B, 2, S).inputs())
    except (RuntimeError, ValueError) as error:
        print(f"B={B} S={S}: {type(error).__name__}: {error}")

# %% [markdown]
# All three sizes raise an error. (`Case` makes five input tensors of the given sizes, always with the same
# numbers.) Now try a batch of 3 and a state of size 1:

# %%
inputs = Case(B=3, I=2, S=1).inputs()
wrong_h, wrong_cell = wrong_lltm(**inputs)
(wrong_h.sum() + wrong_cell.sum()).backward()
print("no error, and a gradient for the weights:", inputs["weights"].grad[0])
print("new_h", tuple(wrong_h.shape), "where", tuple(lltm(**inputs)[0].shape), "is right")

# %% [markdown]
# `z` is 3 by 3 here, so it can be split along both dimensions. Broadcasting produces results of shape (3, 3), and
# the loss has a gradient. There is no error. So a test at one size is not enough: test at several sizes, and look at
# the shape of the result first.

# %% [markdown] syllabus="1.1c"
# ## The gradient along the cell state
#
# In `new_cell = old_cell + ...`, the derivative of the new cell with respect to the old one is exactly 1. An LSTM,
# in contrast, multiplies its cell state by a forget gate at each step. We run both for 100 steps and compute how
# much a change of the *first* cell state still changes the last cell state. With `h.detach()` we follow only the
# direct path, through the cell state itself. Without `detach`, the change also passes through `h`.


# %%
def influence(step, cut_h, T=100, S=32):
    """The derivative of the cell after 1, 2, ... T steps with respect to the first one, averaged over units."""
    h, cell0 = torch.zeros(1, S), torch.zeros(1, S, requires_grad=True)
    cell, curve = cell0, []
    for input in torch.randn(T, 1, 8):
        h, cell = step(input, h.detach() if cut_h else h, cell)
        (slope,) = torch.autograd.grad(cell.sum(), cell0, retain_graph=True)
        curve.append(slope.abs().mean().item())
    return curve


# %%
parameters = Case(1, 8, 32).inputs()
lstm = torch.nn.LSTMCell(8, 32)


def lltm_step(input, h, cell):
    return lltm(input, parameters["weights"], parameters["bias"], h, cell)


def lstm_step(input, h, cell):
    return lstm(input, (h, cell))


# %%
curves = {
    "LLTM, the cell's own line": influence(lltm_step, cut_h=True),
    "LLTM, with the path through h": influence(lltm_step, cut_h=False),
    "LSTM, the cell's own line": influence(lstm_step, cut_h=True),
}
for name, curve in curves.items():
    print(f"{name:30}  after 1 step {curve[0]:.4f}   after 100 {curve[-1]:.3g}")

# %%
for name, curve in curves.items():
    plt.semilogy(range(1, 101), curve, label=name, linewidth=2)
plt.title("How much the first cell still counts")
plt.xlabel("steps")
plt.ylabel("derivative")
plt.legend()
plt.show()

# %% [markdown]
# Along the direct path (in the plot: "the cell's own line"), the derivative of the LLTM is exactly 1, after any
# number of steps, because this path does not depend on the gates. The forget gates of an untrained LSTM are near one
# half, and the product of a hundred such numbers is almost zero: the gradient has vanished. If the change also
# passes through `h` ("with the path through h"), this additional effect is added to the derivative of the direct
# path, which is 1.
#
# This property has a disadvantage: no gate makes the old cell state smaller. A step can add a number of any size,
# but subtract at most 1, because elu(z) is never below -1.

# %% [markdown] syllabus="1.1d"
# ## The module
#
# The parameters, weights of shape (3S, S+I) and a bias of shape (3S), belong in an `nn.Module`. Both are initialised
# with a uniform distribution within ±1/√S. The next code cell defines such a module:


# %%
class MyLLTM(torch.nn.Module):
    def __init__(self, input_features, state_size):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.empty(3 * state_size, state_size + input_features))
        self.bias = torch.nn.Parameter(torch.empty(3 * state_size))
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -(state_size**-0.5), state_size**-0.5)

    def forward(self, input, state):
        return lltm(input, self.weights, self.bias, *state)


# %%
mine = MyLLTM(input_features=64, state_size=128)
for name, parameter in mine.named_parameters():
    low, high = parameter.min().item(), parameter.max().item()
    print(f"{name:8} {tuple(parameter.shape)!s:12} from {low:.4f} to {high:.4f}; 1/sqrt(128) = {128**-0.5:.4f}")

# %% [markdown]
# Why are the initial weights so small? Each entry of `z` is a sum of S+I products. This sum should be in the range
# in which the sigmoid is not close to 0 or 1. The next code cell compares these weights with weights that are too
# large, from a normal distribution with standard deviation 1:

# %%
input, state = torch.randn(256, 64), (torch.randn(256, 128), torch.randn(256, 128))
X = torch.cat([state[0], input], dim=1)
starts = {"uniform within ±1/√S": mine.weights.detach(), "normal, width 1": torch.randn(3 * 128, 128 + 64)}
gates = {name: torch.sigmoid(X @ weights[:128].T) for name, weights in starts.items()}
for name, gate in gates.items():
    flat = (gate * (1 - gate) < 0.01).float().mean().item()
    print(f"{name:22} {flat:4.0%} of the input gates have a slope below 0.01")

# %%
for name, gate in gates.items():
    plt.hist(gate.flatten().numpy(), bins=50, alpha=0.7, label=name)
plt.title("The input gate of a fresh cell")
plt.xlabel("value of the gate")
plt.ylabel("number of gates")
plt.legend()
plt.show()

# %% [markdown]
# If a gate is close to 0 or 1, the derivative of the sigmoid is almost 0. Then the gradient of its weights is almost
# 0, too, and these weights would hardly learn. With the small initial weights, the gates are near one half.
#
# The workbook's module `LLTM` computes the same results, and can call the cell of any stage:

# %%
from common.build.cell_module import LLTM, lltm_sequence

module = LLTM(input_features=64, state_size=128)
module.load_state_dict(mine.state_dict())
print(module)
print("equal results:", all(torch.equal(a, b) for a, b in zip(mine(input, state), module(input, state), strict=True)))

# %% [markdown]
# A sequence is a loop: the state after each step is an argument of the next step. `T` steps cannot run in parallel,
# because each step needs the result of the previous one. So the time for a sequence is `T` times the time for *one*
# step.

# %%
inputs = torch.randn(20, 256, 64)  # (T, B, I)
h, cell = state
outputs = []
for step_input in inputs:
    h, cell = module(step_input, (h, cell))
    outputs.append(h)
outputs = torch.stack(outputs)
print("outputs", tuple(outputs.shape))

# %%
same, (last_h, last_cell) = lltm_sequence(lltm, inputs, module.weights, module.bias, *state)
print("lltm_sequence gives the same:", torch.equal(same, outputs), torch.equal(last_cell, cell))

# %% [markdown]
# ## The gradient by hand
#
# Autograd can compute the gradient of these equations without our help. We derive the gradient because from stage 2
# on we write both forward and backward ourselves. We follow the picture from right to left:

# %%
draw_dataflow(backward=True)

# %% [markdown]
# `grad_h` and `grad_cell` are the upstream gradients: they come from the operations after the cell. Each `d_name`
# is the gradient of the loss with respect to `name` and has the shape of `name`. We work in float64, keep every
# intermediate result, and compare with autograd after each step.

# %%
B, I, S = 4, 3, 5
input, weights, bias, old_h, old_cell = Case(B, I, S, dtype=torch.float64).inputs().values()
X = torch.cat([old_h, input], dim=1)
z = F.linear(X, weights, bias)
z_i, z_o, z_g = z.chunk(3, dim=1)
input_gate, output_gate, candidate_cell = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_g)
new_cell = old_cell + candidate_cell * input_gate
new_h = torch.tanh(new_cell) * output_gate
grad_h, grad_cell = torch.randn(B, S, dtype=torch.float64), torch.randn(B, S, dtype=torch.float64)


# %%
def check(name, by_hand, tensor):
    """Compares a gradient found by hand with what autograd says about the same tensor."""
    ends, arriving = (new_h, new_cell), (grad_h, grad_cell)
    (expected,) = torch.autograd.grad(ends, tensor, arriving, retain_graph=True)
    error = (by_hand - expected).abs().max().item()
    verdict = "agrees" if error < 1e-12 else "WRONG "
    print(f"{name:16} {tuple(by_hand.shape)!s:8} {verdict}  largest difference {error:.1e}")


# %% [markdown] syllabus="1.2a"
# ### The derivatives of sigmoid, tanh and elu
#
# The derivatives of sigmoid, tanh and elu can be written in terms of the input. They can also be written in terms of
# the *output*. The second form is more useful, because forward has already computed the output:
#
# | | from the input z | from the output y |
# |---|---|---|
# | sigmoid | exp(-z) / (1 + exp(-z))² | y (1 - y) |
# | tanh | 1 / cosh(z)² | 1 - y² |
# | elu | 1 where z > 0, else exp(z) | min(y + 1, 1) |
#
# Here is why the last entry is right. For z ≤ 0, elu is exp(z) - 1, so exp(z) = y + 1. For z > 0, the derivative is
# 1, and y + 1 is greater than 1.

# %%
slopes = {
    "sigmoid": (torch.sigmoid, lambda z: torch.exp(-z) / (1 + torch.exp(-z)) ** 2, lambda y: y * (1 - y)),
    "tanh": (torch.tanh, lambda z: 1 / torch.cosh(z) ** 2, lambda y: 1 - y**2),
    "elu": (F.elu, lambda z: torch.where(z > 0, 1.0, torch.exp(z)), lambda y: (y + 1).clamp(max=1)),
}

# %%
points = torch.linspace(-4, 4, 401, dtype=torch.float64, requires_grad=True)
for name, (function, from_input, from_output) in slopes.items():
    y = function(points)
    (expected,) = torch.autograd.grad(y.sum(), points)
    errors = [(form - expected).abs().max().item() for form in (from_input(points), from_output(y))]
    print(f"{name:8} largest difference to autograd: {errors[0]:.1e} from the input, {errors[1]:.1e} from the output")

# %%
figure, panels = plt.subplots(1, 3, figsize=(11, 3), sharex=True)
for axes, (name, (function, _, from_output)) in zip(panels, slopes.items(), strict=True):
    y = function(points).detach()
    axes.plot(points.detach(), y, label=name)
    axes.plot(points.detach(), from_output(y), "--", label="its slope")
    axes.legend()
plt.show()

# %% [markdown]
# The derivatives of sigmoid and tanh approach zero on both sides. The derivative of elu approaches zero only on the
# left. If forward keeps the outputs for backward, these derivatives do not need any exponential.

# %% [markdown] syllabus="1.2b"
# ### The two gradients of `new_cell`
#
# `new_h = tanh(new_cell) * output_gate` is a product: the gradient of one factor is the upstream gradient times the
# other factor. `new_cell` affects the loss in two ways: as an output of the cell, with the upstream gradient
# `grad_cell`, and through `new_h`. If a tensor is used twice, its gradients are added.

# %%
tanh_new_cell = torch.tanh(new_cell)
d_output_gate = grad_h * tanh_new_cell
check("d_output_gate", d_output_gate, output_gate)

# %%
through_h = grad_h * output_gate * (1 - tanh_new_cell**2)
d_new_cell = grad_cell + through_h
check("d_new_cell", d_new_cell, new_cell)

# %% [markdown]
# A common mistake is to use only one of the two paths. The result still has the right shape:

# %%
check("grad_cell alone", grad_cell, new_cell)
check("through_h alone", through_h, new_cell)

# %% [markdown] syllabus="1.2c"
# ### The gradients of the gates and of z
#
# In `new_cell = old_cell + candidate_cell * input_gate`, the sum passes its gradient on unchanged (its derivative is
# 1, as in "The gradient along the cell state"). For the product, the gradient of each factor is again the upstream
# gradient times the other factor.

# %%
d_old_cell = d_new_cell
d_candidate_cell = d_new_cell * input_gate
d_input_gate = d_new_cell * candidate_cell
check("d_old_cell", d_old_cell, old_cell)
check("d_candidate_cell", d_candidate_cell, candidate_cell)
check("d_input_gate", d_input_gate, input_gate)

# %% [markdown]
# At each activation function, the gradient is multiplied by the derivative, which is computed from the output of
# forward. `d_z` consists of the three blocks side by side, in the order of forward:

# %%
d_z_i = d_input_gate * input_gate * (1 - input_gate)
d_z_o = d_output_gate * output_gate * (1 - output_gate)
d_z_g = d_candidate_cell * (candidate_cell + 1).clamp(max=1)
d_z = torch.cat([d_z_i, d_z_o, d_z_g], dim=1)
check("d_z", d_z, z)

# %% [markdown]
# The next version is wrong: the blocks are in another order. It still runs, and every number in `d_z` is right, but
# two of the three blocks are in each other's place:

# %%
check("d_z, order i g o", torch.cat([d_z_i, d_z_g, d_z_o], dim=1), z)

# %% [markdown] syllabus="1.2d"
# ### The matrix product and the bias
#
# Now we differentiate `z = X @ weights.T + bias`. The shapes almost determine the result: `d_weights` is (3S, S+I),
# and only `d_z.T @ X` has this shape. The bias was added to every row, so its gradient is summed over the rows.

# %%
d_weights = d_z.T @ X
d_bias = d_z.sum(dim=0)
d_X = d_z @ weights
check("d_weights", d_weights, weights)
check("d_bias", d_bias, bias)
check("d_X", d_X, X)

# %% [markdown]
# `X` is the concatenation of `old_h` and `input`, in this order, so its gradient is split in the same order.

# %%
d_old_h, d_input = d_X[:, :S], d_X[:, S:]
check("d_old_h", d_old_h, old_h)
check("d_input", d_input, input)

# %%
check("d_input, I first", d_X[:, :I], input)

# %% [markdown]
# If you split `d_X` in the other order, the shape is right, but the numbers belong to other elements. The backward
# is now complete: it computes five gradients with two matrix products. All other operations are pointwise, except
# for the sum over the rows.

# %% [markdown] tags=["exercise"]
# **Your turn:** `1/backward_by_hand`. `show("1/backward_by_hand")` in a cell checks it here.

# %% [markdown] syllabus="1.2e"
# ## Put the gradient into an `autograd.Function`
#
# Now autograd should call our backward instead of its own. Forward computes the outputs and stores the tensors that
# backward needs. Backward receives the gradient of each output and returns one gradient for each argument of
# forward. Notebook `00a_autograd` explains such a class step by step.


# %%
def backward_by_hand(grad_h, grad_cell, X, weights, input_gate, output_gate, candidate_cell, new_cell):
    tanh_new_cell, S = torch.tanh(new_cell), new_cell.size(1)
    d_new_cell = grad_cell + grad_h * output_gate * (1 - tanh_new_cell**2)
    d_z_i = d_new_cell * candidate_cell * input_gate * (1 - input_gate)
    d_z_o = grad_h * tanh_new_cell * output_gate * (1 - output_gate)
    d_z_g = d_new_cell * input_gate * (candidate_cell + 1).clamp(max=1)
    d_z = torch.cat([d_z_i, d_z_o, d_z_g], dim=1)
    d_X = d_z @ weights
    return d_X[:, S:], d_z.T @ X, d_z.sum(dim=0), d_X[:, :S], d_new_cell


# %%
class LLTMFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weights, bias, old_h, old_cell):
        X = torch.cat([old_h, input], dim=1)
        z_i, z_o, z_g = F.linear(X, weights, bias).chunk(3, dim=1)
        gates = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_g)
        new_cell = old_cell + gates[2] * gates[0]
        ctx.save_for_backward(X, weights, *gates, new_cell)
        return torch.tanh(new_cell) * gates[1], new_cell

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        return backward_by_hand(grad_h, grad_cell, *ctx.saved_tensors)


# %%
arguments = (input, weights, bias, old_h, old_cell)
expected = torch.autograd.grad(lltm(*arguments), arguments, (grad_h, grad_cell))
got = torch.autograd.grad(LLTMFunction.apply(*arguments), arguments, (grad_h, grad_cell))
for name, ours, autograds in zip(("input", "weights", "bias", "old_h", "old_cell"), got, expected, strict=True):
    print(f"d_{name:9} {tuple(ours.shape)!s:8} largest difference {(ours - autograds).abs().max().item():.1e}")

# %% [markdown]
# The five gradients are equal to autograd's up to the last bits. But the derivative of these gradients would be
# wrong without an error, because the gates are constants for autograd in `backward`. Stage 1 has the same code in
# `by_hand.py`, as a second Function that raises an error for second derivatives (notebooks
# `00b_second_derivatives` and `02_aten` explain it).
#
# The function `difference` compares the results of `by_hand.py` with a separate reference in float64, at sizes and
# values that often reveal mistakes. (`load(1)` above has imported stage 1's folder as the package `lltm_stage1`.)

# %%
from lltm_stage1 import by_hand

from common.cell.case import difference, outputs

cases = [Case(3, 5, 70), Case(5, 3, 1), Case(0, 4, 8)]
cases += [Case(3, 5, 70, layout="sliced"), Case(3, 5, 70, bias_shift=1e4)]
for case in cases:
    print(f"{case!s:58} {difference(case, outputs(by_hand.lltm, case)) or 'agrees'}")

# %% [markdown]
# The results agree in all cases, even with an empty batch, with a single unit, with strided inputs, and with
# pre-activations of ±10000. We need the last case again below.

# %% [markdown] syllabus="1.2f"
# ## Verify the gradient with `gradcheck`
#
# You can compare with autograd only if autograd can compute the same gradient. Autograd cannot differentiate the
# code of a CUDA kernel. But you can always use the definition of a derivative: change each input a little, and
# compute how much the output changes. `torch.autograd.gradcheck` does that for every input and every output.

# %%
arguments = tuple(Case(2, 3, 4, dtype=torch.float64).inputs().values())
torch.autograd.gradcheck(LLTMFunction.apply, arguments)

# %% [markdown]
# The result is True: at this point, the gradient agrees with finite differences, to their precision. In float32 the
# same correct Function fails the test:

# %%
from torch.autograd.gradcheck import GradcheckError


def gradcheck(function, arguments):
    """Prints what gradcheck says: that it passes, or the first place where it does not."""
    try:
        torch.autograd.gradcheck(function, arguments)
        print("passes")
    except GradcheckError as error:
        print(str(error).strip())


# %%
import warnings

with warnings.catch_warnings(record=True) as caught:
    gradcheck(LLTMFunction.apply, tuple(Case(1, 1, 2).inputs().values()))
print("\nand it warns:", str(caught[0].message).strip())

# %% [markdown]
# The gradient is right. gradcheck changes each input by 0.000001, and float32 rounds numbers near 1 to about
# 0.00000006. So the difference of two outputs has a rounding error of several per cent, and gradcheck allows 0.1 %.
# How large should the step, the change of the input, be, and how precise is the result at best?


# %%
def finite_difference_error(dtype, step, seed):
    """The relative error of the slope of a loss along a random direction of length 1 in the weights."""
    arguments = {name: tensor.detach() for name, tensor in Case(4, 8, 16, dtype=dtype).inputs().items()}
    weights = arguments.pop("weights").requires_grad_()
    direction = torch.randn(weights.shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    direction /= direction.norm()

    def loss(w):
        return sum(output.sum() for output in lltm(weights=w, **arguments))

    slope = (torch.autograd.grad(loss(weights), weights)[0] * direction).sum().item()
    ahead, behind = loss(weights + step * direction).item(), loss(weights - step * direction).item()
    return abs((ahead - behind) / (2 * step) - slope) / abs(slope)


# %%
steps = 10.0 ** torch.arange(-12, 0.01, 0.5).double()
for dtype in (torch.float32, torch.float64):
    errors = torch.tensor(
        [[finite_difference_error(dtype, step.item(), seed) for seed in range(15)] for step in steps]
    )
    plt.loglog(steps, errors.median(dim=1).values, "o-", label=str(dtype).removeprefix("torch."))
plt.axvline(1e-6, color="gray", linestyle=":", label="gradcheck's step")
plt.title("How wrong a finite difference is: 15 directions, median")
plt.xlabel("step")
plt.ylabel("relative error of the slope")
plt.legend()
plt.show()

# %% [markdown]
# Each curve has the shape of a V. On the right the step is too large, because the function is curved: the error
# grows with the square of the step. On the left the rounding error is larger than the difference. With a step of
# 10⁻⁶, the result has many correct digits in float64, and hardly any in float32. (How many exactly depends on the
# function: for the x³ of notebook 00c, the error is a few per cent.) So **use gradcheck in float64, always**, and
# compare float32 with a float64 reference.

# %% [markdown]
# ### What `gradcheck` finds, and what it cannot find
#
# The next code cell shows how gradcheck reports a mistake. This wrong backward ignores `grad_cell`, as if the cell
# state were not used after the step:


# %%
class Forgetful(LLTMFunction):
    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        return backward_by_hand(grad_h, torch.zeros_like(grad_cell), *ctx.saved_tensors)


gradcheck(Forgetful.apply, tuple(Case(1, 1, 2, dtype=torch.float64).inputs().values()))

# %% [markdown]
# Output 1 is `new_cell`. The message shows two Jacobians, the matrices of the derivatives of this output with
# respect to one input. According to the numerical Jacobian, from finite differences, the output depends on the
# input. According to the analytical Jacobian, from our backward, the output does not depend on it.
#
# gradcheck does not find the next mistake. A common form computes both cases of elu's derivative for every z. It
# multiplies each case by a mask, which is 1 where the case applies and 0 elsewhere, and adds the two products.


# %%
class MaskedElu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return F.elu(z)

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return grad * ((z > 0) + (z <= 0) * torch.exp(z))


gradcheck(MaskedElu.apply, (torch.randn(100, dtype=torch.float64, requires_grad=True),))

# %%
z = torch.tensor([-1.0, 1.0, 1000.0], requires_grad=True)
print("masked:  ", torch.autograd.grad(MaskedElu.apply(z).sum(), z)[0])
print("autograd:", torch.autograd.grad(F.elu(z).sum(), z)[0])

# %% [markdown]
# exp(1000) is infinite, and 0 times infinity is not 0 but NaN. gradcheck verifies only the first derivative, in
# float64, *at the points that you pass to it*. It does not tell you anything about large inputs, other layouts or
# float32. That is why the comparison above also uses pre-activations of ±10000.

# %% [markdown]
# ## Summary
#
# - You have a cell of six lines, and you derived its gradient step by step.
# - You have a test of the gradient, `gradcheck` in float64, and you know what the test cannot find. A comparison with
#   a reference at other sizes, layouts and values finds more.
#
# Next: notebook `01b_where_time_goes` measures a step of this cell.
