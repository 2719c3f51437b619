"""Prints, as JSON, the architectures that torch passes to nvcc: for each case, a list of pairs such as ["sm", 80].

Usage: measure.py, with JSON on stdin: a list of [TORCH_CUDA_ARCH_LIST, [flag for nvcc ...]].
"""

import json
import os
import re
import sys

from torch.utils.cpp_extension import _get_cuda_arch_flags

found = []
for architectures, flags in json.load(sys.stdin):
    os.environ["TORCH_CUDA_ARCH_LIST"] = architectures
    asked = " ".join([*flags, *_get_cuda_arch_flags(flags)])
    found.append([[kind, int(number)] for kind, number in re.findall(r"code=(sm|compute)_(\d+)", asked)])
print("\n" + json.dumps(found))
