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
# PyTorch's functions also accept objects that are not tensors. If the class of an argument has a method called
# `__torch_function__`, torch calls this method instead of its own function. The method receives the function and
# the arguments, and decides what the result is. With it you write matrices that need no memory, tensors that log
# the calls made with them, and numbers that record where they come from, all in Python.
#
# You need Python and PyTorch, and no compiler. The notebook takes about 45 minutes. No later notebook builds on
# it.

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
# Many calls in this notebook fail on purpose. `attempt` prints what a call returns. If the call fails, it prints
# the first line of the error.


# %%
def attempt(call):
    try:
        print(call())
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


# %% [markdown] syllabus="0.7a"
# ## A matrix of two numbers
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
# torch expects a tensor, and this object is not a tensor. The function then checks whether the class of the
# argument has a `__torch_function__`. This class prints what its `__torch_function__` receives:


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
# arguments of the call. torch also finds an argument inside a list. A plain tensor overrides nothing, and `cat`
# does not list it in `types`. Functions that are written in Python, such as `einsum`, list it anyway. Whatever the
# method returns is the result of the call.
#
# The next class uses a table that maps torch's functions to ours. A decorator fills the table. For a function that
# is not in the table, the method returns `NotImplemented`.

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
# As a tensor, the second matrix would need 4 TB.

# %% [markdown] syllabus="0.7d"
# ### A misnamed parameter
#
# This override has been published in many places, and it contains a mistake. Its parameter is called `t`:


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
# Is `t` a good name if the body uses it, too?


# %%
@implements(torch.mean)
def mean(t):
    return torch.tensor(t.value / t.N)


attempt(lambda: torch.mean(ScalarTensor(5, 2.0)))
attempt(lambda: torch.mean(input=ScalarTensor(5, 2.0)))

# %% [markdown]
# No: an argument that the caller passes by name also arrives by name. **An override has the parameters of torch's
# function, under the same names.**


# %%
@implements(torch.mean)
def mean(input):
    return torch.tensor(input.value / input.N)


attempt(lambda: torch.mean(input=ScalarTensor(5, 2.0)))

# %% [markdown] syllabus="0.7e"
# ### Mixed operands
#
# `torch.add` may get one of our matrices on the left, on the right, or on both sides. The sum of two of our
# matrices of the same size is a third one, and needs no tensor. In all other cases, we have to create the tensor.


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
# `torch.add` has more parameters: `torch.add(input, other, *, alpha=1, out=None)` computes
# `input + alpha * other`, and writes the result to `out` if it is given. Our override lacks these two parameters,
# and so far there has been no error. It appears when a caller uses one of them:

# %%
attempt(lambda: torch.add(two, ones, alpha=10))

# %% [markdown]
# This case is harmless, because there is an error. To avoid the error, some overrides accept any keyword argument.
# That is worse:


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
# If a function is not in the table, our method returns `NotImplemented`. If every type in the call does so, torch
# raises a `TypeError`:

# %%
attempt(lambda: torch.relu(two))
attempt(lambda: F.relu(two))
attempt(lambda: ones * two)

# %% [markdown]
# There are three different messages: one from functions in C++, one from functions in Python, and Python's own for
# operators. There is also a fourth result:

# %%
attempt(lambda: two.tensor() == two)

# %% [markdown]
# This is not an error, but `False`. If both sides of `==` return `NotImplemented`, Python compares identities. To
# prevent this, a type has to define `__eq__` itself. The workbook's type does so, as you see below.

# %% [markdown] syllabus="0.7h"
# ### The other way: convert
#
# A table rejects every function that it does not contain. The opposite approach is to create the tensor and to
# call the original function with it. `tree_map` applies a function to everything in nested lists, tuples and
# dictionaries.

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
# Three lines cover all of torch, but each call may create a tensor of $N^2$ numbers. One case is still wrong:

# %%
attempt(lambda: torch.sub(ones, ones, out=four))
print(four)

# %% [markdown]
# `out` says where the result goes. Here the result was written to a temporary tensor, which was then discarded.
# The workbook's class checks the version of this tensor, which counts writes. If the call has written to the
# tensor, the class raises an error.

# %%
from common import load

stage0 = load(0)
four = stage0.scaled_identity.ConvertingScalarTensor(2, 4.0)
attempt(lambda: torch.sub(ones, ones, out=four))
attempt(lambda: F.relu(four, inplace=True))
attempt(lambda: four.tensor() == four)

# %% [markdown]
# (`load(0)` imports stage 0 as the package `lltm_stage0`. Read its `scaled_identity.py`: it contains what you have
# written here, and raises an error for the wrong calls.)
#
# What is such a type good for? A product with it needs no matrix:

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
# **Your turn:** `0/diagonal`. `make check EX=0/diagonal` in a terminal creates the files of the exercise and
# checks what you wrote. The cell below checks it here.

# %%
from common.exercises import show

show("0/diagonal")

# %% [markdown] syllabus="0.8a"
# ## One operation, many names
#
# `torch.add(a, b)`, `a.add(b)` and `a + b` are the same operation, but not the same function. The next type only
# returns the name of the function that it receives:


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
# A function arrives under its own name, an alias such as `subtract` under the name of the alias, and a method
# under the name of the method. For operators, there are two cases. `+`, on either side, arrives as the method
# `add`, because C++ binds both names to one function. Operators that are written in Python have names of their
# own: `__pow__`, and `__rsub__` and `__rmatmul__` where the tensor is on the right. For these two, the tensor
# comes first in `args`, although it is the right operand in your code.
#
# `+=` is an operation of its own, the method `add_`, which works in place. Here, too, the result is whatever the
# method returns, so afterwards the variable is not a tensor any more:

# %%
total = torch.ones(2)
total += it
print("total is now the string", total)

# %% [markdown]
# Many tutorials register `torch.Tensor.__add__`. This function never arrives:

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
# So to cover one operation completely, you need the function, its aliases, the methods, the names of the
# operators, and the operators of your own class. Do not guess these names: print them with a type like `Namer`.

# %% [markdown] syllabus="0.8b"
# ### Round and round
#
# It is tempting to let one spelling call another. Here the function calls the method, and the method calls the
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
# Each of these calls has an argument that overrides it, so each call arrives in `__torch_function__` again. To end
# the recursion, one place has to work on plain tensors. Above, `dense` did that. In a subclass of `Tensor`,
# `super()` does it, as the next section shows.

# %% [markdown] syllabus="0.9a"
# ## Subclasses of `torch.Tensor`
#
# A subclass of `Tensor` inherits a `__torch_function__`. It runs the operation and converts the result to the
# subclass:


# %%
class Pixels(torch.Tensor):
    pass


image = torch.rand(2, 2).as_subclass(Pixels)
for result in (image + 1, 1 + image, image.mean(), image[0], torch.stack([image, image]), image.clone(), image.shape):
    print(type(result).__name__, end="  ")

# %% [markdown]
# All tensors stay `Pixels`. The shape is not a tensor, and its type does not change.

# %% [markdown] syllabus="0.9b 0.9c"
# ### Families
#
# Here are three more classes: two subclasses of `Pixels`, and one that is not related to them.


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
# The result has the most derived type, whether that operand is on the left or on the right. Siblings do not mix,
# although they have a common parent: each one returns `NotImplemented` for a type that is not its own parent, and
# no other type remains.

# %% [markdown] syllabus="0.9d 0.9f"
# ### A tensor that keeps a log
#
# As everywhere in Python, a subclass may override a method. Which calls use the new method?


# %%
class OwnAdd(torch.Tensor):
    def add(self, other):
        return "our method"


own = torch.ones(2).as_subclass(OwnAdd)
for call in (lambda: own.add(1), lambda: own + 1, lambda: torch.add(own, 1), lambda: torch.ones(2).add(own)):
    attempt(call)

# %% [markdown]
# Only a direct call of this method on this object uses it. `+` and `torch.add` do not. `__torch_function__`
# receives all of these calls:

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
# It receives functions, methods and attributes, whose getters end in `__get__`. It does not see calls inside a
# function: `F.softmax` calls `x.softmax`, and that is not in the list. Why not?

# %% [markdown] syllabus="0.9e"
# ### Why `super()`
#
# The reason is `super().__torch_function__`, which does two things. The first is to switch the protocol off while
# it runs the operation. This class does not do that:


# %%
class NeverEnds(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


attempt(lambda: torch.ones(2).as_subclass(NeverEnds) + 1)

# %% [markdown]
# The operation finds the type of its argument and calls `__torch_function__` again, without end. You can switch
# the protocol off yourself, but then the second thing is missing:


# %%
class Forgets(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


print(type(torch.ones(2).as_subclass(Forgets) + 1).__name__)
print(type(torch.ones(2).as_subclass(Logging) + 1).__name__)

# %% [markdown]
# The result is a plain tensor, so later calls with it are not logged. `super()` converts the result to the
# subclass again. That is the second thing.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/count_products`. `show("0/count_products")` in a cell checks it here.

# %% [markdown] syllabus="0.10a"
# ## Numbers that know where they come from
#
# A program processes measurements from several cameras. At the end you want to know which cameras contributed to a
# number. A first approach is an attribute of a subclass:

# %%
image.sources = {"camera 1"}
attempt(lambda: image.sources)
attempt(lambda: (image + 1).sources)

# %% [markdown]
# The result has the same type, but not the attributes, because it is another object. So we write a wrapper: a
# class that contains a tensor and its sources. Its `__torch_function__` takes the tensor out, calls the function,
# and wraps the result again. This is a first version:


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
# This version has four mistakes. The first one:

# %%
attempt(lambda: torch.sum(one))

# %% [markdown]
# `torch.sum(one, dim=0)` worked and `torch.sum(one)` does not, because **`kwargs` arrives as `None` where a call
# has no keyword arguments**. Functions in Python pass a dictionary, so `F.relu` worked. The default in the
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
# The second mistake:

# %%
attempt(lambda: torch.cat((torch.ones(1), one)))

# %% [markdown]
# torch searches lists and tuples, and finds a wrapper there. Our method does not search them. It calls the
# function with the wrapper still in the tuple, so torch calls our method again, without end. The third mistake is
# the same one for results: `torch.max` with a dimension returns a tuple of two tensors, and our method wraps the
# tuple as if it were one tensor.

# %%
attempt(lambda: torch.max(one, 0))

# %% [markdown]
# `tree_map` converts nested arguments and nested results, and `tree_leaves` lists everything in them.

# %% [markdown] syllabus="0.10d"
# ### Several carriers
#
# The fourth mistake causes no error:

# %%
attempt(lambda: torch.add(one, two))

# %% [markdown]
# The numbers come from both cameras, and the result names only one. Our method uses the sources of the first
# wrapper, because we did not define how to merge them. For sources, the right result is the union. For units, it
# might be an error, and for the uncertainty of a sum, a formula. **A wrapper must say how metadata is merged.**

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
# Stage 0 has this class in `tensor_likes.py`. There, it raises an error for calls that it does not support.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/carry_rate`. `show("0/carry_rate")` in a cell checks it here.

# %% [markdown] syllabus="0.11a 0.11b"
# ## Who is asked first
#
# If one call has several types with a `__torch_function__`, torch calls these methods one after the other. The
# types below record that they were called, and return `NotImplemented`.

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
# torch goes from left to right and calls each type once. A subclass comes immediately before its base class,
# wherever it stands in the call. In `B, A, A2`, the position of `B` does not change, because `B` is not a base
# class of the others.

# %% [markdown] syllabus="0.11c"
# ### The first answer
#
# The first return value other than `NotImplemented` is the result. torch does not call the remaining types:

# %%
yes, none = asks("yes", answer="an answer"), asks("none", answer=None)
order(A, yes, B)
order(A, none, yes)

# %% [markdown]
# `None` is also a return value. If a `__torch_function__` has no `return`, its result is None, and torch does not
# call the types to its right. So always write `return NotImplemented`.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/who_is_asked`. `show("0/who_is_asked")` in a cell checks it here.

# %% [markdown] syllabus="0.12a"
# ## How much of torch?
#
# `torch.overrides.get_overridable_functions` lists everything that can be overridden, grouped by namespace:

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
# The counterpart is `get_ignored_functions`. torch's documentation says that these functions explicitly cannot be
# overridden. Test a few of them:

# %%
for function in (torch.tensor, torch.is_tensor, torch.as_tensor, torch.rand_like, torch.normal):
    asked.clear()
    with contextlib.suppress(TypeError, RuntimeError):
        function(A())
    print(f"{function.__name__:10} ignored: {function in get_ignored_functions()}  asks the type: {bool(asked)}")

# %% [markdown]
# `torch.tensor` and `torch.as_tensor` never call `__torch_function__`: they read what is inside the argument.
# `is_tensor` calls Python's `isinstance`. But `rand_like` is in the list and calls `__torch_function__`, although
# the documentation says otherwise. Treat the list as the functions that torch's own tests leave out, and test the
# functions that matter to you.

# %% [markdown] syllabus="0.12d"
# ### Your functions may ask, too
#
# A function that you write in Python does not call `__torch_function__`. Only the functions that it calls do. With
# two additional lines your function calls it first, as torch's own Python functions do. (For several arguments
# there is `has_torch_function`, which takes a tuple.)

# %%
from torch.overrides import handle_torch_function, has_torch_function_unary


def energy(x):
    if has_torch_function_unary(x):
        return handle_torch_function(energy, (x,), x)  # the function, its relevant arguments, all arguments
    return x.square().sum()


# %%
attempt(lambda: energy(torch.full((3,), 2.0)))
attempt(lambda: energy(Listener(3, 2.0)))
attempt(lambda: energy(ScalarTensor(3, 2.0)))
implements(energy)(lambda x: x.N * x.value**2)
attempt(lambda: energy(ScalarTensor(3, 2.0)))

# %% [markdown]
# The protocol now treats `energy` like `torch.mean`. An entry in the table overrides it, and it is visible to a
# mode, which the next section explains.

# %% [markdown] syllabus="0.12e"
# ### A mode needs no argument
#
# The `__torch_function__` of a mode needs no argument of its type. Within `with`, it receives every call that
# takes part in the protocol. Here this includes `torch.tensor`. `is_tensor` and `from_numpy` never take part.
# While the method of the mode runs, the mode is switched off, so the method can call the function.

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
# Modes can be nested. torch calls the inner mode first. When the inner mode calls the function, torch calls the
# outer mode, and then the types.


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
# While the method of a mode runs, only this mode is off. `with self:` switches it on again, so that it receives
# the calls that it makes itself. (Within `with self:`, do not call the function that the method received: this
# call would come back to the mode without end.)


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
# `__torch_function__` only receives calls that are made from Python. One such call may run several operations of
# ATen, torch's library in C++, and autograd runs more of them in backward. Each of these operations passes torch's
# dispatcher, which has a protocol of its own: `__torch_dispatch__`. The dispatcher calls it below autograd, and
# `func` is an operation of ATen, such as `aten.sum.default`. A `TorchDispatchMode` sees all of these operations
# (notebook 00a counted them with one). The next cell runs the same line under both modes:

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
# The first mode lists three calls, and `backward` is one of them. The other mode also shows what `backward` ran:
# `ones_like` for the gradient of the result, `expand` for the gradient of the sum, and the gradient of the
# softmax. (`detach` is a view and does no work.) The names are those of ATen, so you cannot see any more whether
# the code says `x.softmax(0)` or `F.softmax(x, 0)`. Override `__torch_function__` to change what torch's functions
# mean. Override `__torch_dispatch__` to see or change which operations run.

# %% [markdown] syllabus="0.12c"
# ### A test of one's own type
#
# The table of `mean`, `add` and `matmul` includes methods and operators. How much of torch does it cover? Counting
# names is quick:

# %%
everything = {function for functions in listed.values() for function in functions}
table = stage0.scaled_identity.HANDLED
print(f"{len(everything & set(table))} of {len(everything)}")

# %% [markdown]
# Calling the functions says more. `coverage` of stage 0 takes each function from that list that accepts a single
# argument. It calls the function with a matrix, and with an object that represents this matrix, and compares the
# results. (Of the functions in our table, only `mean` accepts a single argument. None of `torch.foreach` does,
# because these functions take lists.)

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
# A table covers only its entries. Conversion covers every function, but hardly any method and no attribute: these
# belong to `Tensor`, and a class that is not a `Tensor` does not have them. The subclass covers everything except
# for a few, such as `_is_view`. The object *is* a view of the matrix, because `as_subclass` creates a view.
#
# Add such a count to the tests of your type. A new version of torch adds new functions, and the test shows whether
# the type handles them.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/what_is_missing`. `show("0/what_is_missing")` in a cell checks it here.

# %% [markdown]
# ## What you have now
#
# - There are three ways to write a type that torch accepts: a table, conversion, and a subclass of `Tensor`.
# - The common mistakes concern names and parameters that differ from torch's, `kwargs` that is `None`, wrappers in
#   lists, `==`, and calls that never end.
# - A test can show how much of torch a type covers.
#
# Next: `00c_conv_batchnorm` fuses two layers and saves memory. `01_python` starts with the cell.
