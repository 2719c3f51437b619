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
# # 00d: types of your own that torch's functions accept
#
# PyTorch's functions also accept objects that are not tensors. If the class of an argument has a method called
# `__torch_function__`, torch calls this method instead of its own function. The method receives the function and the
# arguments, and decides what the result is. In this notebook you write, all in Python, a matrix that needs almost no
# memory. (NumPy has a similar mechanism:
# [`__array_function__`](https://numpy.org/neps/nep-0018-array-function-protocol.html).)
#
# You need Python and PyTorch, and no compiler. The notebook takes about 25 minutes. Only notebook 00e needs its
# contents.

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

# %% [markdown]
# Many calls in this notebook fail on purpose. `attempt` prints what a call returns. If the call fails, `attempt`
# prints the first line of the error.


# %%
def attempt(call):
    try:
        print(call())
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


# %% [markdown] syllabus="0.7a"
# ## A matrix that is stored as two numbers
#
# The example is a matrix with `value` on its diagonal and zeros elsewhere, a multiple of the identity:
#
# $$A = v \, I_N, \qquad \mathrm{mean}(A) = \frac{N v}{N^2} = \frac{v}{N}, \qquad A B = v B$$
#
# Two numbers describe the whole matrix. A tensor stores $N^2$ numbers.


# %%
class TwoNumbers:
    """The matrix of (N, N) with `value` on its diagonal."""

    def __init__(self, N, value):
        self.N, self.value = N, value

    def __repr__(self):
        return f"{type(self).__name__}(N={self.N}, value={self.value})"

    def tensor(self):
        return self.value * torch.eye(self.N)


attempt(lambda: torch.mean(TwoNumbers(5, 2.0)))
attempt(lambda: torch.mean(TwoNumbers(5, 2.0).tensor()))

# %% [markdown] syllabus="0.7b 0.7c"
# ### A table of overrides
#
# torch expects a tensor, and this object is not a tensor. Before `torch.mean` raises the error, it checks whether
# the class of the argument has a `__torch_function__`. The next class has such a method, which prints what it
# receives:


# %%
class Listener(TwoNumbers):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(f"func={func.__name__}  types={[kind.__name__ for kind in types]}  args={args}  kwargs={kwargs}")
        return "whatever is returned here"


print(torch.mean(Listener(5, 2.0)))
print(torch.cat([torch.ones(1, 5), Listener(5, 2.0)], dim=0))
print(torch.einsum("ij,jk->ik", torch.ones(1, 5), Listener(5, 2.0)))

# %% [markdown]
# `func` is torch's own function, `types` lists the classes that override it, and `args` and `kwargs` are the
# arguments of the call. torch also finds an argument inside a list. `Tensor`, the class of a plain tensor, overrides
# nothing, so `types` does not contain this class when you call `cat`. For functions that are written in Python, such
# as `einsum`, `types` contains `Tensor` anyway. Whatever `__torch_function__` returns is the result of the call.
#
# The next class uses a table. Its keys are functions of torch, and its values are our own versions of these
# functions, the overrides. A decorator fills the table. For a function that is not in the table,
# `__torch_function__` returns `NotImplemented`.

# %%
HANDLED = {}


def implements(*functions):
    """A decorator: registers the override for each of these functions of torch."""

    def register(override):
        HANDLED.update(dict.fromkeys(functions, override))
        return override

    return register


# %%
class ScalarTensor(TwoNumbers):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED:
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


@implements(torch.mean)
def mean(input):
    return torch.tensor(input.value / input.N)


big = ScalarTensor(1_000_000, 2.0)
print(torch.mean(ScalarTensor(5, 2.0)), torch.mean(big))

# %% [markdown]
# As a tensor, the second matrix would need 4 TB.

# %% [markdown] syllabus="0.7d"
# ### A misnamed parameter
#
# The next override contains a common mistake: its parameter is called `t`, but the body uses `input`:


# %%
@implements(torch.mean)
def mean(t):
    return torch.tensor(input.value / input.N)


attempt(lambda: torch.mean(ScalarTensor(5, 2.0)))

# %% [markdown]
# There is no `NameError`, neither when the override is defined nor when it is called. Python has a built-in
# function called `input`, which reads from the keyboard, and the body of the override uses that function. The
# message does not mention the parameter.
#
# Suppose that we correct the body so that it uses `t`. Is the override right then?


# %%
@implements(torch.mean)
def mean(t):
    return torch.tensor(t.value / t.N)


attempt(lambda: torch.mean(ScalarTensor(5, 2.0)))
attempt(lambda: torch.mean(input=ScalarTensor(5, 2.0)))

# %% [markdown]
# No: if the caller passes an argument by name, the override receives the argument under this name, `input`. **An
# override must have the parameters of torch's function, under the same names.**


# %%
@implements(torch.mean)
def mean(input):
    return torch.tensor(input.value / input.N)


attempt(lambda: torch.mean(input=ScalarTensor(5, 2.0)))

# %% [markdown] syllabus="0.7e"
# ### Mixed operands
#
# `torch.add` may get one of our matrices on the left, on the right, or on both sides. If both are ours and have the
# same size, the sum is again one of our matrices, and no tensor is needed. In all other cases, we have to create the
# tensor.


# %%
def dense(operand):
    return operand.tensor() if isinstance(operand, ScalarTensor) else operand


@implements(torch.add)
def add(input, other):
    if isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor) and input.N == other.N:
        return ScalarTensor(input.N, input.value + other.value)
    return torch.add(dense(input), dense(other))


# %%
two, three, ones = ScalarTensor(2, 2.0), ScalarTensor(2, 3.0), torch.ones(2, 2)
attempt(lambda: torch.add(two, ones))
attempt(lambda: torch.add(ones, two))
attempt(lambda: torch.add(two, three))
attempt(lambda: torch.add(two, ScalarTensor(3, 1.0)))  # the wrong N: torch's own message

# %% [markdown] syllabus="0.7f"
# ### Missing parameters cause no error at first
#
# `torch.add` has more parameters: `torch.add(input, other, *, alpha=1, out=None)` computes `input + alpha * other`,
# and writes the result to `out` if it is given. Our override lacks these two parameters, and so far there has been
# no error. A caller who uses one of them gets an error:

# %%
attempt(lambda: torch.add(two, ones, alpha=10))

# %% [markdown]
# This mistake is harmless, because there is an error. To avoid the error, some overrides accept any keyword
# argument. That is worse:


# %%
@implements(torch.add)
def add(input, other, **options):
    return torch.add(dense(input), dense(other))


out = torch.zeros(2, 2)
attempt(lambda: torch.add(two, ones, alpha=10))
attempt(lambda: torch.add(two, ones, out=out))
print("out:", out)

# %% [markdown]
# `alpha` was ignored, and nothing was written to `out`. There was no error. So the override needs all parameters
# of torch's function:


# %%
@implements(torch.add)
def add(input, other, *, alpha=1, out=None):
    both = isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor)
    if both and input.N == other.N and out is None:
        return ScalarTensor(input.N, input.value + alpha * other.value)
    return torch.add(dense(input), dense(other), alpha=alpha, out=out)


attempt(lambda: torch.add(two, ones, alpha=10))
attempt(lambda: torch.add(two, three, alpha=10))
torch.add(two, ones, out=out)
print("out:", out)

# %% [markdown]
# Look up the parameters in the documentation of the function. `get_testing_overrides` returns a dummy function for
# each function of torch. According to its documentation, the dummies have the same signatures as the originals. Do
# not rely on these signatures:

# %%
import inspect

print(inspect.signature(torch.overrides.get_testing_overrides()[torch.add]))

# %% [markdown]
# This signature has no `alpha`, so a comparison with it would not find the override that ignores `alpha`.

# %% [markdown] syllabus="0.7g"
# ### `NotImplemented`
#
# If a function is not in the table, our `__torch_function__` returns `NotImplemented`. If the methods of all types
# in the call return `NotImplemented`, torch raises a `TypeError`:

# %%
attempt(lambda: torch.relu(two))
attempt(lambda: F.relu(two))
attempt(lambda: ones * two)

# %% [markdown]
# There are three different messages: one from functions in C++, one from functions in Python, and Python's own
# message for operators. For the operator `==`, there is no error:

# %%
attempt(lambda: two.tensor() == two)

# %% [markdown]
# The result is `False`. If both sides of `==` return `NotImplemented`, Python compares identities: it checks whether
# both are the same object. To prevent this, a type has to define `__eq__` itself. The type in stage 0 does so, as
# you see below.

# %% [markdown] syllabus="0.7h"
# ### Conversion instead of a table
#
# A table rejects every function that it does not contain. The opposite approach is to create the tensor and to call
# the original function with it. `tree_map` applies a function, here `dense`, to every item in nested lists, tuples
# and dictionaries.

# %%
from torch.utils._pytree import tree_map


class ConvertingScalarTensor(ScalarTensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        answer = super().__torch_function__(func, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
        args, kwargs = tree_map(dense, (args, kwargs or {}))
        return func(*args, **kwargs)


# %%
four = ConvertingScalarTensor(2, 4.0)
attempt(lambda: torch.mean(four))  # in the table
attempt(lambda: F.relu(four))
attempt(lambda: torch.cat([ones, four]))
attempt(lambda: ones * four)

# %% [markdown]
# Three lines cover all functions of torch, but each call may create a tensor of $N^2$ numbers. One case is still
# wrong:

# %%
attempt(lambda: torch.sub(ones, ones, out=four))
print(four)

# %% [markdown]
# `out` says where torch should write the result. Here torch wrote the result to a temporary tensor, which was then
# discarded. The class in stage 0 looks at the version of the temporary tensor, a number that increases with each
# write. If the call has written to the tensor, the class raises an error.

# %%
from common import load

stage0 = load(0)
four = stage0.scaled_identity.ConvertingScalarTensor(2, 4.0)
attempt(lambda: torch.sub(ones, ones, out=four))
attempt(lambda: F.relu(four, inplace=True))
attempt(lambda: four.tensor() == four)

# %% [markdown]
# (`load(0)` imports stage 0 as the package `lltm_stage0`. Read the file `scaled_identity.py` of this stage: it
# contains the classes of this section, and raises an error for the wrong calls.)
#
# What can you use such a type for? If a factor of a matrix product is such an object, the product does not need the
# full matrix:

# %%
from torch.utils.benchmark import Timer

sizes, times = [125, 250, 500, 1000], {"a tensor": [], "two numbers": []}
for N in sizes:
    B, wide = torch.randn(N, N), stage0.scaled_identity.ScalarTensor(N, 3.0)
    A = wide.tensor()
    assert torch.equal(wide @ B, A @ B)
    for name, factor in {"a tensor": A, "two numbers": wide}.items():
        timer = Timer("factor @ B", globals={"factor": factor, "B": B})
        times[name].append(timer.blocked_autorange(min_run_time=0.1).median)
print(f"at N = {N}: {times['a tensor'][-1] / times['two numbers'][-1]:.0f} times as fast, "
      f"and {A.nbytes / 1e6:.0f} MB less")  # fmt: skip

# %%
figure, axes = plt.subplots(figsize=(6, 3.5))
for name, seconds in times.items():
    axes.plot(sizes, [1e6 * one for one in seconds], marker="o", label=f"A as {name}")
axes.set(xscale="log", yscale="log", xticks=sizes, xticklabels=sizes, xlabel="N", ylabel="microseconds")
axes.minorticks_off()
axes.set_title("The product A @ B of two matrices (N, N)")
axes.legend()
plt.show()

# %% [markdown]
# The product of two tensors needs $N^3$ multiplications. The override needs $N^2$, as it multiplies each number of
# $B$ by `value`. For small matrices, most of the time is that of Python, which runs the override.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/diagonal`. `make check EX=0/diagonal` in a terminal creates the files of the exercise and checks
# what you wrote. The cell below makes the same check here.

# %%
from common.exercises import show

show("0/diagonal")

# %% [markdown] syllabus="0.8a"
# ## One operation, many names
#
# `torch.add(a, b)`, `a.add(b)` and `a + b` are the same operation, but not the same function. The
# `__torch_function__` of the next type returns only the name of the function that it receives:


# %%
class Namer:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return torch.overrides.resolve_name(func)


it = Namer()
spellings = {
    "torch.add(ones, it)": lambda: torch.add(ones, it),
    "ones.add(it)": lambda: ones.add(it),
    "ones + it": lambda: ones + it,
    "it + ones": lambda: it + ones,
    "torch.sub(ones, it)": lambda: torch.sub(ones, it),
    "torch.subtract(ones, it)": lambda: torch.subtract(ones, it),
    "ones - it": lambda: ones - it,
    "it - ones": lambda: it - ones,
    "ones ** it": lambda: ones**it,
    "ones @ it": lambda: ones @ it,
    "it @ ones": lambda: it @ ones,
}
for text, call in spellings.items():
    print(f"{text:26} arrives as {call()}")

# %% [markdown]
# A function arrives under its own name. An alias such as `subtract` arrives under the name of the alias, and a
# method under the name of the method. For operators, there are two cases. `+` arrives as the method `add`, whether
# the tensor is on the left or on the right, because `__add__`, `__radd__` and `add` are the same function in C++.
# Some operators are written in Python and arrive under their own names: `__pow__`, and, if the tensor is on the
# right, `__rsub__` and `__rmatmul__`. For `__rsub__` and `__rmatmul__`, the tensor comes first in `args`, although
# it is the right operand in your code.
#
# `+=` is an operation of its own, the method `add_`, which works in place. Here, too, the result is whatever
# `__torch_function__` returns, so afterwards the variable is not a tensor any more:

# %%
total = torch.ones(2)
total += it
print("total is now the string", total)

# %% [markdown]
# Many tutorials put `torch.Tensor.__add__` into the table. But `__torch_function__` never receives this function:

# %%
print("torch.Tensor.__add__ is torch.Tensor.add:", torch.Tensor.__add__ is torch.Tensor.add)
HANDLED[torch.Tensor.__add__] = add
attempt(lambda: ones + two)
HANDLED[torch.Tensor.add] = add
attempt(lambda: ones + two)

# %% [markdown]
# If no operand is a tensor, Python does not call torch at all:

# %%
attempt(lambda: two + three)
ScalarTensor.__add__ = lambda self, other: torch.add(self, other)
attempt(lambda: two + three)

# %% [markdown]
# So to cover one operation completely, you need entries for the function, its aliases, the methods and the
# operators, and your class has to define the operators itself. Do not guess the names: print them with a type like
# `Namer`.

# %% [markdown] syllabus="0.8b"
# ### A function and a method that call each other
#
# It is tempting to let one override call another. In the next class, the override of the function calls the method,
# and the override of the method calls the function:


# %%
class Circular(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.add:
            return args[0].add(args[1])
        if func is torch.Tensor.add:
            return torch.add(*args)
        return super().__torch_function__(func, types, args, kwargs)


attempt(lambda: torch.add(torch.ones(2).as_subclass(Circular), 1))

# %% [markdown]
# Each of these calls has an argument of type `Circular`, so each call leads to `__torch_function__` again. To end
# the recursion, `__torch_function__` must at some point call torch's function with plain tensors. Above, `dense`
# created the plain tensors. In a subclass of `Tensor`, you call `super().__torch_function__` instead, as the next
# notebook shows.

# %% [markdown]
# ## Summary
#
# - A class with a `__torch_function__` may be an argument of torch's functions. A table of overrides handles the
#   functions that it contains. Conversion to a tensor handles all others, but creates the tensor.
# - An override needs the parameters of torch's function, all of them, under the same names.
# - One operation arrives under several names. Print them before you fill the table.
#
# Next: `00e_tensor_subclasses` does the same with subclasses of `Tensor`, wrappers and modes.
