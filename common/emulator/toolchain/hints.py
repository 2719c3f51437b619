"""What to do about common errors of the compiler: missing headers, and members that CUDA no longer has."""

from __future__ import annotations

import re
from collections.abc import Iterator

MISSING_HEADER = re.compile(r"fatal error: ([^\s:]+): No such file or directory")
NOT_CONSTANT = re.compile(r"[‘']constinit[’'] variable [‘'](\w+)[’'] does not have a constant initializer")
TWO_TYPES = re.compile(r"conflicting declaration [‘'].*\bemulator_dynamic_(\w+)\b")
UNKNOWN_MEMBER = re.compile(r"cudaDeviceProp[’'] has no member named [‘'](\w+)[’']")
# The beginning of a header's name, and where the header comes from.
PACKAGES = {
    "helper_": "a header of NVIDIA's CUDA samples: pass its folder, cuda-samples/Common, with -I",
    "cudnn": "a header of NVIDIA's cuDNN, which the emulator does not support",
    "nccl": "a header of NVIDIA's NCCL, which the emulator does not support",
    "nvshmem": "a header of NVIDIA's NVSHMEM, which the emulator does not support",
    "npp": "a header of NVIDIA's NPP, which the emulator does not support",
    "optix": "a header of NVIDIA's OptiX, which the emulator does not support",
    "hip/": "a header of AMD's HIP: the emulator runs CUDA programs",
    "mpi.h": "a header of MPI, for example of the package libopenmpi-dev: pass its folder with -I",
    "opencv": "a header of OpenCV (the package libopencv-dev): pass its folder, /usr/include/opencv4, with -I",
    "GL/": "a header of OpenGL: the emulator shows no graphics",
    "GLFW/": "a header of GLFW: the emulator shows no graphics",
    "SDL": "a header of SDL: the emulator shows no graphics",
    "Eigen/": "a header of Eigen (the package libeigen3-dev): pass its folder, /usr/include/eigen3, with -I",
    "torch/": "a header of PyTorch: a program cannot use it. Build it as an extension, with setup.py",
    "ATen/": "a header of PyTorch: a program cannot use it. Build it as an extension, with setup.py",
    "c10/": "a header of PyTorch: a program cannot use it. Build it as an extension, with setup.py",
}
# Members that cudaDeviceProp no longer has, and the attributes that replace them.
ATTRIBUTES = {
    "clockRate": "cudaDevAttrClockRate",
    "memoryClockRate": "cudaDevAttrMemoryClockRate",
    "deviceOverlap": "cudaDevAttrGpuOverlap",
    "kernelExecTimeoutEnabled": "cudaDevAttrKernelExecTimeout",
    "computeMode": "cudaDevAttrComputeMode",
    "singleToDoublePrecisionPerfRatio": "cudaDevAttrSingleToDoublePrecisionPerfRatio",
}


def find_hints(output: str) -> str:
    """The hints for the errors in a compiler's output, each as a line that begins with "hint: "."""
    return "".join(f"hint: {hint}\n" for hint in dict.fromkeys(_hints(output)))


def _hints(output: str) -> Iterator[str]:
    for name in MISSING_HEADER.findall(output):
        yield from (f"{name} is {package}" for begin, package in PACKAGES.items() if name.startswith(begin))
    for name in NOT_CONSTANT.findall(output):
        yield f"{name} is a variable of the device: its value must be a constant, not the result of a constructor"
    for name in TWO_TYPES.findall(output):
        yield (
            f"extern __shared__ arrays of one name are one variable, also in a template, so {name} cannot have two "
            f"types: declare bytes, and cast: extern __shared__ char bytes[]; T* {name} = reinterpret_cast<T*>(bytes)"
        )
    for name in UNKNOWN_MEMBER.findall(output):
        if name in ATTRIBUTES:
            yield f"CUDA 13's cudaDeviceProp has no {name}: use cudaDeviceGetAttribute with {ATTRIBUTES[name]}"
