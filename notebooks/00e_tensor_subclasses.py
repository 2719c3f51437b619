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
# # 00e: subclasses of Tensor, wrappers and modes
#
# Notebook 00d wrote a `__torch_function__` for a type that is not a tensor. In this notebook you write tensors that
# log the calls made with them, and numbers that record where they come from. Then you see which type torch asks if
# there are several in one call, how to receive every call whatever its arguments are, and how to test how much of
# torch a type covers.
#
# You need notebook 00d, and no compiler. The notebook takes about 35 minutes. No later notebook needs its contents.

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


# %% [markdown] syllabus="0.9a"
# ## Subclasses of `torch.Tensor`
#
# A subclass of `Tensor` inherits a `__torch_function__`, which runs the operation and converts the result to the
# subclass:


# %%
class Pixels(torch.Tensor):
    pass


image = torch.rand(2, 2).as_subclass(Pixels)
for result in (image + 1, 1 + image, image.mean(), image[0], torch.stack([image, image]), image.clone(), image.shape):
    print(type(result).__name__, end="  ")

# %% [markdown]
# All results that are tensors are `Pixels`. The shape is not a tensor, so its type does not change.

# %% [markdown]
# `as_subclass` turns an existing tensor into a `Pixels`. You can also call the class: with a list of numbers, it
# makes a tensor of float32, as `torch.Tensor` does. With a single number, it makes an uninitialised tensor of that
# size:

# %%
print(Pixels([3.14]), Pixels(2).shape)

# %% [markdown] syllabus="0.9b 0.9c"
# ### Related and unrelated subclasses
#
# Here are three more classes: two subclasses of `Pixels`, and a third class that is not related to `Pixels`.


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
# The result has the most derived type of the two operands. The order of the operands does not matter. Siblings such
# as `Grey` and `Colour` do not mix, although they have a common parent: a class accepts only itself and its base
# classes, and otherwise returns `NotImplemented`. Here both classes return it, so torch raises an error.

# %% [markdown] syllabus="0.9d 0.9f"
# ### A tensor that keeps a log
#
# As everywhere in Python, a subclass may override a method. The next cell shows which calls use the new method:


# %%
class OwnAdd(torch.Tensor):
    def add(self, other):
        return "our method"


own = torch.ones(2).as_subclass(OwnAdd)
for call in (lambda: own.add(1), lambda: own + 1, lambda: torch.add(own, 1), lambda: torch.ones(2).add(own)):
    attempt(call)

# %% [markdown]
# Only `own.add(1)` uses the new method. `own + 1`, `torch.add(own, 1)` and the method of another tensor do not use
# it. `__torch_function__`, in contrast, receives all of these calls:

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
# `__torch_function__` receives functions, methods and attributes. The name of an attribute's getter ends in
# `__get__`. `__torch_function__` does not receive the calls inside a function: `F.softmax` calls `x.softmax`, and
# this call is not in the list. Why not?

# %% [markdown] syllabus="0.9e"
# ### Why the method calls `super()`
#
# The reason is `super().__torch_function__`, which switches the *protocol* off while the operation runs. (The
# protocol is the rule that torch's functions look for a `__torch_function__` and call it.) The next class does not
# switch the protocol off:


# %%
class NeverEnds(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


attempt(lambda: torch.ones(2).as_subclass(NeverEnds) + 1)

# %% [markdown]
# The operation finds the type of its argument and calls `__torch_function__` again, so the recursion never ends. You
# can switch the protocol off yourself. But `super()` does a second thing, which is missing here:


# %%
class Forgets(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


print(type(torch.ones(2).as_subclass(Forgets) + 1).__name__)
print(type(torch.ones(2).as_subclass(Logging) + 1).__name__)

# %% [markdown]
# The result of `Forgets` is a plain tensor. If the class logged its calls, later calls with this result would not be
# logged. The second thing that `super()` does is to convert the result to the subclass.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/count_products`. `make check EX=0/count_products` in a terminal creates the files of the exercise
# and checks what you wrote. The cell below makes the same check here.

# %%
from common.exercises import show

show("0/count_products")

# %% [markdown] syllabus="0.10a"
# ## Numbers that record where they come from
#
# A program processes measurements from several cameras. At the end you want to know which cameras contributed to a
# number. A first approach is a subclass of `Tensor` with an attribute. The tensor `image` from above is an object of
# such a subclass:

# %%
image.sources = {"camera 1"}
attempt(lambda: image.sources)
attempt(lambda: (image + 1).sources)

# %% [markdown]
# The result has the same type, but not the attribute, because the result is another object. So we write a wrapper: a
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
# This version has four mistakes. Here is the first one:

# %%
attempt(lambda: torch.sum(one))

# %% [markdown]
# `torch.sum(one, dim=0)` worked and `torch.sum(one)` fails, because **`kwargs` is `None` if a call has no keyword
# arguments**. Functions that are written in Python pass a dictionary, so `F.relu` worked. The default in the
# signature does not help, because the default *is* `None`. The next version replaces `None` by an empty dictionary:


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
# Here is the second mistake:

# %%
attempt(lambda: torch.cat((torch.ones(1), one)))

# %% [markdown]
# torch searches lists and tuples, and finds a wrapper there. Our method does not search them. It calls the function
# with the wrapper still in the tuple, so torch calls our method again, and the recursion never ends. The third
# mistake is similar, but concerns results: `torch.max` with a dimension returns a tuple of two tensors, and our
# method wraps the tuple as if it were one tensor.

# %%
attempt(lambda: torch.max(one, 0))

# %% [markdown]
# Two functions help: `tree_map` applies a function to every item in nested lists, tuples and dictionaries, and
# `tree_leaves` lists these items. The last version below uses both.

# %% [markdown] syllabus="0.10d"
# ### Several wrappers in one call
#
# The fourth mistake causes no error:

# %%
attempt(lambda: torch.add(one, two))

# %% [markdown]
# The numbers come from both cameras, but the result names only one camera. Our method uses the sources of the first
# wrapper, because we did not define how to merge them. For sources, the right result is the union. If a wrapper
# stored physical units, different units should perhaps be an error. If it stored uncertainties, a sum would need a
# formula. **A wrapper must define how its metadata, here the sources, are merged.**

# %%
from torch.utils._pytree import tree_leaves, tree_map


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
# Stage 0 has this class in `tensor_likes.py`. There, the class raises an error for calls that it does not support.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/carry_rate`. `show("0/carry_rate")` in a cell checks it here.

# %% [markdown] syllabus="0.11a 0.11b"
# ## The order in which torch calls the types
#
# If one call has arguments of several types with a `__torch_function__`, torch calls ("asks") these methods one
# after the other. The types below record that they were called, and return `NotImplemented`.

# %%
asked = []


def asks(name, *bases, answer=NotImplemented):
    """A type that records its name when torch calls its method, and returns `answer`."""

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
# torch goes from left to right and calls the method of each type once. But a subclass comes immediately before its
# base class, even if the subclass stands later in the call. In `B, A, A2`, the position of `B` does not change,
# because `B` is not a base class of the others.

# %% [markdown] syllabus="0.11c"
# ### The first result other than `NotImplemented` counts
#
# If a method returns anything other than `NotImplemented`, this value is the result, and torch does not call the
# methods of the remaining types:

# %%
yes, none = asks("yes", answer="an answer"), asks("none", answer=None)
order(A, yes, B)
order(A, none, yes)

# %% [markdown]
# `None` is also such a value. If a `__torch_function__` ends without `return`, it returns None, and torch does not
# call the remaining types. So if your method does not handle a call, write `return NotImplemented`.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/who_is_asked`. `show("0/who_is_asked")` in a cell checks it here.

# %% [markdown] syllabus="0.12a"
# ## How much of torch can be overridden
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
# The counterpart is `get_ignored_functions`. torch's documentation says that these functions cannot be overridden.
# Test a few of them:

# %%
for function in (torch.tensor, torch.is_tensor, torch.as_tensor, torch.rand_like, torch.normal):
    asked.clear()
    with contextlib.suppress(TypeError, RuntimeError):
        function(A())
    print(f"{function.__name__:10} ignored: {function in get_ignored_functions()}  asks the type: {bool(asked)}")

# %% [markdown]
# `torch.tensor` and `torch.as_tensor` never call `__torch_function__`: they read what is inside the argument.
# `is_tensor` calls Python's `isinstance`. But `rand_like` is in the list and calls `__torch_function__`, although
# the documentation says otherwise. `get_ignored_functions` really lists the functions that torch's own tests of the
# protocol skip. It does not list the functions that cannot be overridden. Test the functions that you need yourself.

# %% [markdown] syllabus="0.12d"
# ### Let your own functions call `__torch_function__`
#
# A function that you write in Python does not call `__torch_function__`. Only the functions of torch that your
# function calls do so. With two additional lines, your function also calls `__torch_function__` first, as torch's
# own Python functions do. (For several arguments, use `has_torch_function`, which takes a tuple.)

# %%
from torch.overrides import handle_torch_function, has_torch_function_unary


def energy(x):
    if has_torch_function_unary(x):
        return handle_torch_function(energy, (x,), x)  # the function, its relevant arguments, all arguments
    return x.square().sum()


# %%
class Listener:
    """Prints the calls that reach it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(f"func={func.__name__}  types={[kind.__name__ for kind in types]}")
        return "whatever is returned here"


# %%
from common import load

stage0 = load(0)
ScalarTensor = stage0.scaled_identity.ScalarTensor  # the matrix of notebook 00d: N, and the value on the diagonal

attempt(lambda: energy(torch.full((3,), 2.0)))
attempt(lambda: energy(Listener()))
attempt(lambda: energy(ScalarTensor(3, 2.0)))
stage0.scaled_identity.implements(energy)(lambda x: x.N * x.value**2)
attempt(lambda: energy(ScalarTensor(3, 2.0)))

# %% [markdown]
# The protocol now treats `energy` like `torch.mean`. An entry in the table overrides `energy`.

# %% [markdown] syllabus="0.12e"
# ### Modes: receive every call, whatever its arguments are
#
# A mode is an object with a `__torch_function__` that is active inside a `with` block, whatever the types of the
# arguments are. Inside the block, the method receives every call that takes part in the protocol, including calls of
# functions such as `energy`. A mode even receives calls of `torch.tensor`, which never reach a type. `is_tensor` and
# `from_numpy` never take part. While the method runs, the mode is switched off, so the method can call the function.

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
# Modes can be nested. torch calls the method of the inner mode first. When the inner mode calls the function, torch
# calls the method of the outer mode, and after that the `__torch_function__` of the arguments' types.


# %%
class Named(TorchFunctionMode):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def __torch_function__(self, func, types, args=(), kwargs=None):
        print(f"the {self.name} mode is asked about {func.__name__}")
        return func(*args, **(kwargs or {}))


with Named("outer"), Named("inner"):
    torch.exp(Listener())

# %% [markdown]
# While the method of a mode runs, only this mode is off. Inside `with self:` the mode is on again, so the method
# also receives the calls that its own code makes there. (Inside `with self:`, do not call the function that the
# method received: this call would reach the mode again, and the recursion would never end.)


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
# ### Operations inside torch: `__torch_dispatch__`
#
# `__torch_function__` only receives calls that are made from Python. One such call may run several operations of
# ATen, torch's library in C++, and autograd runs more of them in backward. Each of these operations passes through
# torch's dispatcher, which selects the code that runs for it. The dispatcher has a protocol of its own:
# `__torch_dispatch__`. The dispatcher calls this method after autograd has handled the call, and `func` is an
# operation of ATen, such as `aten.sum.default`. A `TorchDispatchMode` sees all of these operations (notebook 00a
# counts operations with such a mode). The next cell runs the same line under both modes:

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
# The first mode, `Listening`, lists three calls, and `backward` is one of them. The other mode, `Dispatched`, also
# shows what `backward` ran: `ones_like` for the gradient of the result, `expand` for the gradient of the sum, and
# the gradient of the softmax. (`detach` is a view and does no work.) The names are those of ATen, so you cannot see
# any more whether the code says `x.softmax(0)` or `F.softmax(x, 0)`. Override `__torch_function__` to change what
# torch's functions mean. Override `__torch_dispatch__` to see or change which operations run.

# %% [markdown] syllabus="0.12c"
# ### Test how much of torch your type covers
#
# The table in stage 0's `scaled_identity.py` has entries for `mean`, `add` and `matmul`, and for the methods of the
# last two. How much of torch does this table cover? You can simply count the names:

# %%
everything = {function for functions in listed.values() for function in functions}
table = stage0.scaled_identity.HANDLED
print(f"{len(everything & set(table))} of {len(everything)}")

# %% [markdown]
# You learn more if you call the functions. `coverage` of stage 0 takes each overridable function that accepts a
# single argument. It calls the function with a matrix, and with an object that represents this matrix, and compares
# the results. (Of the functions in our table, only `mean` accepts a single argument. The functions of
# `torch.foreach` are not called, because they take lists.)

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
axes.set_title("Functions of one argument: is the result the same as for the matrix?")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, -0.2), ncols=3)
plt.show()

# %% [markdown]
# A table covers only its entries. Conversion covers every function, but it covers hardly any method and no
# attribute: methods and attributes belong to `Tensor`, and a class that is not a `Tensor` does not have them. The
# subclass covers everything except for a few functions, such as `_is_view`. Here the result has to differ: the
# object of the subclass really is a view of the matrix, because `as_subclass` creates a view.
#
# Add such a count to the tests of your type. A new version of torch adds new functions, and the test shows whether
# the type handles them.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/what_is_missing`. `show("0/what_is_missing")` in a cell checks it here.

# %% [markdown]
# ## Summary
#
# - There are three ways to write a type that torch accepts: a table, conversion, and a subclass of `Tensor`.
# - The common mistakes with wrappers are: `kwargs` that is `None`; wrappers in lists; results that are tuples;
#   metadata that is not merged; and calls that never end.
# - A mode receives every call, and `__torch_dispatch__` the operations that a call runs.
# - A test can show how much of torch a type covers.
#
# Next: `00f_conv_batchnorm` combines two layers in one Function that needs less memory. Or continue with
# `01_python`, the recurrent cell that is the example of all later stages.
