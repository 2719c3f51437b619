"""Uses the class as a program would. Do not change this file; edit csrc/statistics.cpp."""

import copy
import pickle

from . import _C


def state(one):
    """What Python can read of an object."""
    return {"mean": one.mean, "rows": one.rows}


def means(batches, S):
    """The mean and the number of rows after all batches."""
    one = _C.RunningMean(S=S)
    for x in batches:
        one.add(x=x)
    return state(one)


def can_be_set(name):
    """Whether Python can set an attribute."""
    try:
        setattr(_C.RunningMean(2), name, 1)
    except AttributeError:
        return False
    except TypeError:  # there is a function that sets it, but not to a number
        pass
    return True


def kind(name):
    """The type of an attribute, such as "int"."""
    return type(getattr(_C.RunningMean(2), name)).__name__


def copied(x, how, more):
    """Copies an object that has the rows of x, and adds the rows of `more` to the copy: mean and rows of both."""
    one = _C.RunningMean(x.size(1))
    one.add(x)
    another = copy.deepcopy(one) if how == "deepcopy" else pickle.loads(pickle.dumps(one))
    another.add(more)
    return [state(one), state(another)]


def doc():
    """What help() shows of `add`."""
    return _C.RunningMean.add.__doc__ or ""
