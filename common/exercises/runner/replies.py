"""The form that a reply of the learner's process must have. The learner's code may have written any other reply."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def require_valid(do: str, reply: object) -> None:
    """Raises ValueError unless `reply` has the form of a reply to the request `do`: an error or an answer."""
    if not isinstance(reply, dict) or len(reply) != 1:
        raise ValueError("neither an answer nor an error")
    is_valid = is_error(reply["error"]) if "error" in reply else ANSWERS[do](reply["answer"])
    if not is_valid:
        raise ValueError(f"not a reply to {do}")


def is_error(value: object) -> bool:
    """Whether a value describes an exception, as `describe_error` in learner.py does."""
    if not has_types(value, {"kind": str, "message": str, "where": list}):
        return False
    return all(isinstance(place, list) and is_place(place) for place in value["where"])


def is_place(place: list) -> bool:
    """Whether a list is a line of a source: its file, its number (None if unknown) and its text."""
    return len(place) == 3 and all(map(isinstance, place, (str, int | None, str | None)))


def is_call(value: object) -> bool:
    """Whether a value is what `Learner.call` returns."""
    if not isinstance(value, dict) or value.keys() != {"value", "graph", "changed", "same"}:
        return False
    numbers = is_list_of(value["changed"], int) and is_list_of(value["same"], int | None)
    return numbers and isinstance(value["graph"], int | None)


def is_counted(value: object) -> bool:
    """Whether a value is what `Learner.counted` returns."""
    if not has_types(value, {"calls": dict, "saved": int, "kernels": str | None}):
        return False
    return is_list_of(list(value["calls"]), str) and is_list_of(list(value["calls"].values()), int)


def has_types(value: object, types: dict) -> bool:
    """Whether a value is a dictionary with exactly these keys and values of these types."""
    is_dictionary = isinstance(value, dict) and value.keys() == types.keys()
    return is_dictionary and all(isinstance(value[key], kind) for key, kind in types.items())


def is_list_of(value: object, kind: type) -> bool:
    """Whether a value is a list of values of this type."""
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)


def is_nothing(value: object) -> bool:
    """Whether a value is None."""
    return value is None


def is_text(value: object) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def is_names(value: object) -> bool:
    """Whether a value is a list of texts."""
    return is_list_of(value, str)


def is_gradient(value: object) -> bool:
    """Whether a value is a tensor, or None if there is no gradient."""
    return isinstance(value, Tensor | None)


def is_gradients(value: object) -> bool:
    """Whether a value is a list of tensors, or None where there is no gradient."""
    return isinstance(value, list) and all(map(is_gradient, value))


ANSWERS: dict[str, Callable[[object], bool]] = {
    "load": is_nothing, "define": is_nothing, "count": is_nothing, "names": is_names, "doc": is_text,
    "call": is_call, "backward": is_gradients, "second": is_gradients,
    "second_of_pair": is_gradient, "counted": is_counted,
}  # fmt: skip
