"""Calls the same C++ with and without `with_pytorch_error_handling`."""

import sys
import warnings

from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

void third(int length) {
  TORCH_WARN("counting from 0");
  TORCH_CHECK_INDEX(length > 2, "there are only ", length);
}
"""
handled = sys.argv[1] == "handled"
_C = load_inline(
    sys.argv[1], SOURCE, functions=["third"], no_implicit_headers=True, with_pytorch_error_handling=handled
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        _C.third(1)
    except Exception as error:
        print(type(error).__name__, "of Python:", error)
print("warnings of Python:", len(caught))
