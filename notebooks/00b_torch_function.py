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
# # 00b: types that torch takes for tensors
#
# PyTorch's functions do not insist on tensors. A class with a method called `__torch_function__` is asked first: here
# is the function, here are the arguments, what do you make of it? With it you write matrices that need no memory,
# tensors that log what happens to them, and numbers that know where they come from, all in Python.
#
# You need Python and PyTorch, and no compiler. About 45 minutes. Nothing later builds on it.

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
# Much of this notebook is about calls that fail. `attempt` shows what a call returns or, in its first line, why it
# does not.


# %%
def attempt(call):
    try:
        print(call())
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


# %% [markdown] syllabus="0.7a"
# ## A matrix of two numbers
#
# The matrix with `value` on its diagonal and zeros elsewhere, a multiple of the identity:
#
# $$A = v \, I_N, \qquad \mathrm{mean}(A) = \frac{N v}{N^2} = \frac{v}{N}, \qquad A B = v B$$
#
# Two numbers say it all. A tensor holds $N^2$.


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
# torch wants a tensor, and this is none. What a function asks next is whether the argument's class has a
# `__torch_function__`. Let us see what would arrive there:


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
# `func` is torch's own function, `types` are the classes that override it, and the rest is the call. An argument in a
# list is found, too. A plain tensor overrides nothing, and `cat` does not list it; functions that are written in
# Python, such as `einsum`, list it all the same. What is returned is the result, whatever it is.
#
# Now a table: from torch's function to ours, filled by a decorator. What is not in the table is answered with
# `NotImplemented`.

# %%
HANDLED = {}


def implements(*functions):
    """A decorator: the override answers for each of these functions of torch."""

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
# The second matrix would be 4 TB.

# %% [markdown] syllabus="0.7d"
# ### A misnamed parameter
#
# This override has been printed often, and has a mistake. Its parameter is called `t`:


# %%
@implements(torch.mean)
def mean(t):
    return torch.tensor(input.value / input.N)


attempt(lambda: torch.mean(ScalarTensor(5, 2.0)))

# %% [markdown]
# No `NameError`, neither when it is defined nor when it is called: Python has a function called `input`, which reads
# from the keyboard, and that is what the override looks into. The message does not say a word about the parameter.
#
# So is `t` a good name, if only the body uses it, too?


# %%
@implements(torch.mean)
def mean(t):
    return torch.tensor(t.value / t.N)


attempt(lambda: torch.mean(ScalarTensor(5, 2.0)))
attempt(lambda: torch.mean(input=ScalarTensor(5, 2.0)))

# %% [markdown]
# No: arguments that were given by name arrive by name. **An override has the parameters of torch's function, under
# the same names.**


# %%
@implements(torch.mean)
def mean(input):
    return torch.tensor(input.value / input.N)


attempt(lambda: torch.mean(input=ScalarTensor(5, 2.0)))

# %% [markdown] syllabus="0.7e"
# ### Mixed operands
#
# `torch.add` may get a tensor on either side, or two of ours. Two of one size make a third, without any matrix; for
# everything else the matrix has to be made.


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
# ### Nobody compares signatures
#
# `torch.add` has more parameters: `torch.add(input, other, *, alpha=1, out=None)` is `input + alpha * other`, written
# to `out` if there is one. Nothing has complained that ours lacks two. Callers will find out:

# %%
attempt(lambda: torch.add(two, ones, alpha=10))

# %% [markdown]
# That is the good case: loud. An override that takes anything, to be on the safe side, is the bad one:


# %%
@implements(torch.add)
def add(input, other, **options):
    return torch.add(dense(input), dense(other))


out = torch.zeros(2, 2)
attempt(lambda: torch.add(two, ones, alpha=10))
attempt(lambda: torch.add(two, ones, out=out))
print("out:", out)

# %% [markdown]
# `alpha` was lost, and `out` never written. Silently. So, with all that torch has:


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
# Where does one look up all that torch has? In the documentation of the function. `get_testing_overrides` returns a
# stand-in for each function, documented as having its signature. Do not compare with those:

# %%
import inspect

print(inspect.signature(torch.overrides.get_testing_overrides()[torch.add]))

# %% [markdown]
# No `alpha`: the override that lost it would pass.

# %% [markdown] syllabus="0.7g"
# ### `NotImplemented`
#
# What the table lacks was answered with `NotImplemented`, from every type in the call. torch makes a `TypeError` of
# that:

# %%
attempt(lambda: torch.relu(two))
attempt(lambda: F.relu(two))
attempt(lambda: ones * two)

# %% [markdown]
# Three wordings: of functions in C++, of functions in Python, and Python's own for operators. And there is a fourth:

# %%
attempt(lambda: two.tensor() == two)

# %% [markdown]
# Not an error, but `False`. When both sides of `==` say `NotImplemented`, Python compares identities. A type that is
# to be safe defines `__eq__` itself; the workbook's does, below.

# %% [markdown] syllabus="0.7h"
# ### The other way: convert
#
# A table refuses what it lacks. The opposite is to make the matrix and call the original function with it. `tree_map`
# goes through nested lists, tuples and dictionaries.

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
# All of torch in three lines, and each call may cost $N^2$ numbers. One thing is not right yet:

# %%
attempt(lambda: torch.sub(ones, ones, out=four))
print(four)

# %% [markdown]
# `out` says where the result goes. It went into a matrix that nobody has any more. The workbook's class looks at the
# matrix's version, which counts writes, and refuses.

# %%
from common import load

stage0 = load(0)
four = stage0.scaled_identity.ConvertingScalarTensor(2, 4.0)
attempt(lambda: torch.sub(ones, ones, out=four))
attempt(lambda: F.relu(four, inplace=True))
attempt(lambda: four.tensor() == four)

# %% [markdown]
# (`load(0)` imports stage 0 as the package `lltm_stage0`. Read `scaled_identity.py` in it: what you wrote here, with
# the wrong calls refused.)
#
# What is it good for? A product with it needs no matrix:

# %%
from torch.utils.benchmark import Timer

N = 1000
B, wide = torch.randn(N, N), stage0.scaled_identity.ScalarTensor(N, 3.0)
A = wide.tensor()
print("equal:", torch.equal(wide @ B, A @ B))
times = {name: Timer("A @ B", globals={"A": factor, "B": B}).blocked_autorange().median
         for name, factor in {"tensor": A, "two numbers": wide}.items()}  # fmt: skip
print(f"{times['tensor'] / times['two numbers']:.0f} times as fast, and {A.nbytes / 1e6:.0f} MB less")

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/diagonal`. `make check EX=0/diagonal` in a terminal hands out the files and checks what you wrote;
# the cell below checks it here.

# %%
from common.exercises import show

show("0/diagonal")

# %% [markdown] syllabus="0.8a"
# ## One operation, many names
#
# `torch.add(a, b)`, `a.add(b)`, `a + b` are one operation. They are not one function. A type that only says what
# arrives:


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
# The function arrives under its name, an alias such as `subtract` under its own, and the method under that of the
# method. Operators go two ways. `+`, on either side, is the method `add`, because C++ binds both to one function.
# Those that are written in Python have names of their own: `__pow__`, and `__rsub__` and `__rmatmul__` where the
# tensor is on the right. These get the tensor first in `args`, though it stands last in what you wrote.
#
# `+=` is an operation of its own, the method `add_`, which works in place. And here, too, what is returned is the
# result, so that the variable is no tensor any more:

# %%
total = torch.ones(2)
total += it
print("total is now the string", total)

# %% [markdown]
# Many tutorials register `torch.Tensor.__add__`. It never comes:

# %%
print("torch.Tensor.__add__ is torch.Tensor.add:", torch.Tensor.__add__ is torch.Tensor.add)
HANDLED[torch.Tensor.__add__] = add
attempt(lambda: ones + two)
HANDLED[torch.Tensor.add] = add
attempt(lambda: ones + two)

# %% [markdown]
# And where no operand is a tensor, torch is not called at all:

# %%
attempt(lambda: two + three)
ScalarTensor.__add__ = lambda self, other: torch.add(self, other)
attempt(lambda: two + three)

# %% [markdown]
# So full coverage of one operation is the function, its aliases, the methods, the operators' names, and the operators
# of your own class. Do not guess: let a type like `Namer` tell.

# %% [markdown] syllabus="0.8b"
# ### Round and round
#
# It is tempting to let one spelling call another. Here the function asks for the method and the method for the
# function:


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
# Each call has an argument that overrides it, so each is handed over again. The way out is one place that works on
# plain tensors: `dense` above did that, and in a subclass of `Tensor` it is `super()`, next.

# %% [markdown] syllabus="0.9a"
# ## Subclasses of `torch.Tensor`
#
# A subclass of `Tensor` inherits a `__torch_function__`. It runs the operation and makes the result one of its own:


# %%
class Pixels(torch.Tensor):
    pass


image = torch.rand(2, 2).as_subclass(Pixels)
for result in (image + 1, 1 + image, image.mean(), image[0], torch.stack([image, image]), image.clone(), image.shape):
    print(type(result).__name__, end="  ")

# %% [markdown]
# Everything stays `Pixels`, and the shape, which is no tensor, stays what it is.

# %% [markdown] syllabus="0.9b 0.9c"
# ### Families
#
# Three more: two subclasses of `Pixels`, and one that is not related.


# %%
class Grey(Pixels):
    pass


class Colour(Pixels):
    pass


class Sound(torch.Tensor):
    pass


values = torch.ones(2)
pixels, grey, colour, sound = (values.as_subclass(kind) for kind in (Pixels, Grey, Colour, Sound))
print("Pixels + Tensor:", type(pixels + values).__name__)
print("Pixels + Grey:  ", type(pixels + grey).__name__)
print("Grey + Pixels:  ", type(grey + pixels).__name__)
attempt(lambda: torch.add(grey, colour))
attempt(lambda: torch.add(pixels, sound))

# %% [markdown]
# The most derived type wins, on whichever side it stands. Siblings do not mix, not even with a common parent: each
# says `NotImplemented` to a type that is no parent of its own, and nobody is left to answer.

# %% [markdown] syllabus="0.9d 0.9f"
# ### A tensor that keeps a log
#
# A subclass may replace a method in its body, as in all of Python. Who gets there?


# %%
class OwnAdd(torch.Tensor):
    def add(self, other):
        return "our method"


own = torch.ones(2).as_subclass(OwnAdd)
for call in (lambda: own.add(1), lambda: own + 1, lambda: torch.add(own, 1), lambda: torch.ones(2).add(own)):
    attempt(call)

# %% [markdown]
# Only who calls this very method of this very object: neither `+` nor `torch.add`. `__torch_function__` gets them
# all:

# %%
calls = []


class Logging(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append(torch.overrides.resolve_name(func))
        return super().__torch_function__(func, types, args, kwargs)


x = torch.randn(3, 4).as_subclass(Logging)
y = F.softmax(x @ torch.randn(4, 2), dim=1)  # an operator, then a function written in Python
y.sum().item()  # methods
x.shape, x.T, x.requires_grad  # attributes
print(*calls, sep="\n")

# %% [markdown]
# Functions, methods, and attributes, whose getters end in `__get__`. What it does not see is what is inside:
# `F.softmax` calls `x.softmax`, and that is not in the list. Why not?

# %% [markdown] syllabus="0.9e"
# ### Why `super()`
#
# Because `super().__torch_function__` does two things, and the first is to switch the protocol off while it runs the
# operation. Without that:


# %%
class NeverEnds(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


attempt(lambda: torch.ones(2).as_subclass(NeverEnds) + 1)

# %% [markdown]
# The operation sees its argument's type and asks again. The protocol can be switched off by hand, and then the second
# thing is missed:


# %%
class Forgets(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


print(type(torch.ones(2).as_subclass(Forgets) + 1).__name__)
print(type(torch.ones(2).as_subclass(Logging) + 1).__name__)

# %% [markdown]
# The result is a plain tensor, and whatever is done with it goes unseen. `super()` wraps it again.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/count_products`. `show("0/count_products")` in a cell checks it here.

# %% [markdown] syllabus="0.10a"
# ## Numbers that know where they come from
#
# Measurements from several cameras go through a program, and in the end somebody asks: which ones are in this number?
# The first idea is an attribute of a subclass:

# %%
image.sources = {"camera 1"}
attempt(lambda: image.sources)
attempt(lambda: (image + 1).sources)

# %% [markdown]
# The type is kept, its attributes are not: the result is another object. So we wrap: a class with a tensor and its
# sources in it, whose `__torch_function__` takes the tensor out, calls, and wraps the result again. First try:


# %%
class Sourced:
    def __init__(self, tensor, sources):
        self.tensor, self.sources = tensor, frozenset(sources)

    def __repr__(self):
        return f"{self.tensor} from {', '.join(sorted(self.sources))}"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        carriers = [one for one in args if isinstance(one, Sourced)]
        sources = carriers[0].sources if carriers else ()
        args = [one.tensor if isinstance(one, Sourced) else one for one in args]
        return cls(func(*args, **kwargs), sources)


# %%
one, two = Sourced(torch.ones(2), {"camera 1"}), Sourced(torch.ones(2), {"camera 2"})
attempt(lambda: F.relu(one))
attempt(lambda: torch.sum(one, dim=0))

# %% [markdown] syllabus="0.10c"
# ### None is not an empty dictionary
#
# It has four mistakes. The first:

# %%
attempt(lambda: torch.sum(one))

# %% [markdown]
# `torch.sum(one, dim=0)` worked and `torch.sum(one)` does not, because **`kwargs` arrives as `None` where a call has
# no keyword arguments**. Functions in Python hand over a dictionary, so that `F.relu` worked. The default in the
# signature does not help: it *is* `None`.


# %%
class Second(Sourced):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


one, two = Second(torch.ones(2), {"camera 1"}), Second(torch.ones(2), {"camera 2"})
attempt(lambda: torch.sum(one))
attempt(lambda: torch.sum(torch.add(one, 1)))

# %% [markdown] syllabus="0.10b"
# ### Nested arguments
#
# The second:

# %%
attempt(lambda: torch.cat((torch.ones(1), one)))

# %% [markdown]
# torch looks into lists and tuples and finds a wrapper there. We did not look, so the call was made with the wrapper
# still in it, and torch handed it over again, without end. The third mistake is its mirror image: `torch.max` with a
# dimension returns a tuple of two tensors, and all of it is wrapped as if it were one.

# %%
attempt(lambda: torch.max(one, 0))

# %% [markdown]
# `tree_map` goes through both, and `tree_leaves` lists what is in them.

# %% [markdown] syllabus="0.10d"
# ### Several carriers
#
# The fourth mistake is the quiet one:

# %%
attempt(lambda: torch.add(one, two))

# %% [markdown]
# Numbers of both cameras, and only one is named: the first carrier won, because nobody had said what should happen.
# For sources the answer is the union. For units it might be an error, for a sum of uncertainties a formula. **A
# wrapper must say how metadata is merged.**

# %%
from torch.utils._pytree import tree_leaves


class Sourced(Sourced):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        carriers = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Sourced)]
        sources = frozenset().union(*(one.sources for one in carriers))
        args, kwargs = tree_map(lambda one: one.tensor if isinstance(one, Sourced) else one, (args, kwargs))
        result = func(*args, **kwargs)
        return tree_map(lambda one: cls(one, sources) if isinstance(one, torch.Tensor) else one, result)


# %%
one, two = Sourced(torch.ones(2), {"camera 1"}), Sourced(torch.ones(2), {"camera 2"})
attempt(lambda: torch.add(one, two))
attempt(lambda: torch.cat([torch.zeros(1), one, two]))
attempt(lambda: torch.max(one, 0))
attempt(lambda: F.linear(one, weight=Sourced(torch.ones(3, 2), {"a model"})))
attempt(lambda: torch.numel(one))

# %% [markdown]
# Stage 0 keeps it in `tensor_likes.py`, with what it cannot do refused.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/carry_rate`. `show("0/carry_rate")` in a cell checks it here.

# %% [markdown] syllabus="0.11a 0.11b"
# ## Who is asked first
#
# Several types in one call, each with a `__torch_function__`: torch asks one after the other. These say so, and never
# answer.

# %%
asked = []


def asks(name, *bases, answer=NotImplemented):
    """A type that writes its name down when it is asked, and answers with this."""

    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(name)
        return answer

    return type(name, bases, {"__torch_function__": classmethod(__torch_function__)})


def order(*kinds):
    """The names of the types in the order in which they are asked about a list with one of each."""
    asked.clear()
    try:
        result = torch.stack([kind() for kind in kinds])
    except TypeError:
        result = "TypeError"
    print(f"{', '.join(kind.__name__ for kind in kinds):14} asked: {' '.join(asked):8} result: {result}")


# %%
A, B = asks("A"), asks("B")
A2 = asks("A2", A)  # a subclass of A
order(A, B)
order(B, A)
order(A, A2)
order(A, B, A2)
order(B, A, A2)
order(B, A2, A, B)

# %% [markdown]
# From left to right, each type once, and a subclass just before its base, wherever it stands. In `B, A, A2` nothing
# moves `B`: it is a base of nobody.

# %% [markdown] syllabus="0.11c"
# ### The first answer
#
# The first answer other than `NotImplemented` is the result, and nobody is asked after it:

# %%
yes, none = asks("yes", answer="an answer"), asks("none", answer=None)
order(A, yes, B)
order(A, none, yes)

# %% [markdown]
# `None` is an answer, too. A `__torch_function__` that forgets its `return` has answered, with None, for everybody to
# its right. Write the `return NotImplemented`.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/who_is_asked`. `show("0/who_is_asked")` in a cell checks it here.

# %% [markdown] syllabus="0.12a"
# ## How much of torch?
#
# `torch.overrides.get_overridable_functions` lists everything that can be overridden, by the namespace in which it
# stands:

# %%
import contextlib

from torch.overrides import get_ignored_functions, get_overridable_functions

listed = get_overridable_functions()
for namespace, functions in listed.items():
    if len(functions) > 1:
        print(f"{namespace.__name__:22}{len(functions):5}  such as", *(f.__name__ for f in functions[:3]))
print(f"{'attributes':22}{sum(len(functions) == 1 for functions in listed.values()):5}  such as shape, T, grad")

# %% [markdown] syllabus="0.12b"
# ### What cannot be overridden
#
# The counterpart is `get_ignored_functions`. torch's documentation says that these explicitly cannot be overridden.
# Ask a few:

# %%
for function in (torch.tensor, torch.is_tensor, torch.as_tensor, torch.rand_like, torch.normal):
    asked.clear()
    with contextlib.suppress(TypeError, RuntimeError):
        function(A())
    print(f"{function.__name__:10} ignored: {function in get_ignored_functions()}  asks the type: {bool(asked)}")

# %% [markdown]
# `torch.tensor` and `torch.as_tensor` never ask: they look at what is inside. `is_tensor` asks Python. But
# `rand_like` is in the list and asks all the same, whatever the documentation says. Read the list as what torch's own
# tests leave out, and try what matters to you.

# %% [markdown] syllabus="0.12d"
# ### Your functions may ask, too
#
# A function that you write in Python does not ask; only the functions that it calls do. Two lines make it ask first,
# as torch's own functions in Python do. (For several arguments there is `has_torch_function`, with a tuple.)

# %%
from torch.overrides import handle_torch_function, has_torch_function_unary


def energy(x):
    if has_torch_function_unary(x):
        return handle_torch_function(energy, (x,), x)  # the function, who is asked, the arguments
    return x.square().sum()


# %%
attempt(lambda: energy(torch.full((3,), 2.0)))
attempt(lambda: energy(Listener(3, 2.0)))
attempt(lambda: energy(ScalarTensor(3, 2.0)))
implements(energy)(lambda x: x.N * x.value**2)
attempt(lambda: energy(ScalarTensor(3, 2.0)))

# %% [markdown]
# From then on the protocol knows `energy` as it knows `torch.mean`: an entry in the table is enough, and a mode,
# which comes next, sees it.

# %% [markdown] syllabus="0.12e"
# ### A mode needs no argument
#
# There is a `__torch_function__` that needs no argument of its type: that of a mode. Within `with`, it is handed
# every call that takes part in the protocol: `torch.tensor` does now, `is_tensor` and `from_numpy` never do. The mode
# is off while it is being asked, so that it may call the function.

# %%
from torch.overrides import TorchFunctionMode


class Listening(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print(torch.overrides.resolve_name(func))
        return func(*args, **(kwargs or {}))


with Listening():
    x = F.softmax(torch.tensor([1.0, 2.0]) + torch.ones(2), dim=0)
    torch.is_tensor(x)  # not seen

# %% [markdown]
# Modes nest. The inner one is asked first; when it calls the function the outer one is asked, and then the types.


# %%
class Named(TorchFunctionMode):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def __torch_function__(self, func, types, args=(), kwargs=None):
        print(f"the {self.name} mode is asked about {func.__name__}")
        return func(*args, **(kwargs or {}))


with Named("outer"), Named("inner"):
    torch.exp(Listener(5, 2.0))

# %% [markdown]
# While a mode is being asked only it is off. `with self:` switches it on again, so that it sees what it calls itself.
# (Not the function that it was asked about: that call would come back to it without end.)


# %%
class OwnSoftmax(Named):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is not F.softmax:
            return super().__torch_function__(func, types, args, kwargs)
        with self:
            power = torch.exp(args[0])
            return power / power.sum()


with OwnSoftmax("re-entered"):
    y = F.softmax(torch.ones(2), dim=0)
print(y)

# %% [markdown] syllabus="0.12f"
# ### What no `__torch_function__` sees
#
# Only calls that are made from Python arrive there. One call may run several operations of ATen, torch's library in
# C++, and autograd runs more of them in backward. Each passes torch's dispatcher, which has a protocol of its own:
# `__torch_dispatch__`. It is asked below autograd, and `func` is an operation of ATen, such as `aten.sum.default`. A
# `TorchDispatchMode` sees them all (notebook 00a counted with one). The same line under both modes:

# %%
from torch.utils._python_dispatch import TorchDispatchMode


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func)
        return func(*args, **(kwargs or {}))


for mode in (Listening(), Dispatched()):
    x = torch.randn(3, requires_grad=True)
    print(f"\n{type(mode).__name__}:")
    with mode:
        x.softmax(0).sum().backward()

# %% [markdown]
# Three calls, of which `backward` is one. The other mode says what it ran: the gradient of the result, which is
# `ones_like`; that of the sum, an `expand`; and that of the softmax. (`detach` is a view and no work.) The names are
# ATen's: whether you wrote `x.softmax(0)` or `F.softmax(x, 0)` cannot be told any more. Override
# `__torch_function__` to change what torch's functions mean, `__torch_dispatch__` to see or change what really runs.

# %% [markdown] syllabus="0.12c"
# ### A test of one's own type
#
# How much does the table of `mean`, `add` and `matmul` cover, with methods and operators? Counting names is quick:

# %%
everything = {function for functions in listed.values() for function in functions}
table = stage0.scaled_identity.HANDLED
print(f"{len(everything & set(table))} of {len(everything)}")

# %% [markdown]
# Calling says more. `coverage` of stage 0 takes, from that list, each function that is happy with a single argument,
# calls it with a matrix and with an object that stands for it, and compares the results. (Of ours that is `mean`
# alone; none of `torch.foreach` is among them, whose functions take lists.)

# %%
from lltm_stage0.coverage import coverage
from lltm_stage0.scaled_identity import ConvertingScalarTensor, ScalarTensor
from lltm_stage0.tensor_likes import LoggingTensor

matrix = ScalarTensor(3, 2.0).tensor()
covered = {
    "ScalarTensor": coverage(matrix, lambda: ScalarTensor(3, 2.0)),
    "ConvertingScalarTensor": coverage(matrix, lambda: ConvertingScalarTensor(3, 2.0)),
    "LoggingTensor": coverage(matrix, lambda: matrix.clone().as_subclass(LoggingTensor)),
}
for name, counts in covered.items():
    right, total = (sum(column) for column in zip(*counts.values(), strict=True))
    print(f"{name:24}{right:4} of {total}")

# %%
names = [name for name, _ in sorted(covered["LoggingTensor"].items(), key=lambda item: item[1][1])]
figure, axes = plt.subplots(figsize=(9, 5))
for k, (kind, counts) in enumerate(covered.items()):
    places = [place + 0.27 * (1 - k) for place in range(len(names))]
    bars = axes.barh(places, [counts[name][0] / counts[name][1] for name in names], height=0.25, label=kind)
    axes.bar_label(bars, ["{} of {}".format(*counts[name]) for name in names], padding=3, fontsize=8)
axes.set_yticks(range(len(names)), names)
axes.set_xlim(0, 1.15)
axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
axes.set_title("Functions of one argument that treat it as they treat the matrix")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, -0.2), ncols=3)
plt.show()

# %% [markdown]
# A table covers what is in it. Converting covers every function, but hardly a method and no attribute: those
# belong to `Tensor`, and a class that is none has none. The subclass has it all but for a few, such as `_is_view`: it
# *is* a view of the matrix, for that is what `as_subclass` makes.
#
# Such a count belongs in the tests of a type: a new version of torch brings new functions, and the test says what
# became of them.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/what_is_missing`. `show("0/what_is_missing")` in a cell checks it here.

# %% [markdown]
# ## What you have now
#
# - three ways to make a type that torch takes: a table, conversion, a subclass of `Tensor`;
# - the traps: names and parameters that must be torch's own, `kwargs` that is `None`, wrappers in lists, `==`, calls
#   that never end;
# - a test that tells how far a type goes.
#
# Next: `00c_conv_batchnorm` fuses two layers and saves memory; the cell begins in `01_python`.
