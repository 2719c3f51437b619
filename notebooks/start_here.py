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
# # Start here: your first CUDA kernel in PyTorch
#
# In the next ten minutes you call a CUDA kernel from PyTorch, break it, read what went wrong, fix it, and give it a
# gradient. You do not need a GPU. Without one, the workbook's emulator compiles the same CUDA source with g++, runs
# it on the CPU and checks every memory access.
#
# The first build takes up to a minute.

# %% [markdown] tags=["notebook-only"]
# Run the cells from top to bottom with Shift+Enter.

# %% tags=["notebook-only"]
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
import torch

from common.inline import device, inline

torch.manual_seed(0)
print("torch", torch.__version__, "on", "the GPU" if device() == "cuda" else "the CPU: kernels run on the emulator")

# %% [markdown]
# ## 1. A kernel of five lines
#
# A **kernel** is a function that many threads of a GPU run at the same time. The kernel below squares the numbers of
# an array. Each **thread** handles one element, and first computes the index `i` of that element. Threads are
# grouped in **blocks** of equal size. So `i` = (number of the block) × (size of a block) + (number of the thread in
# its block).

# %%
KERNEL = """
__global__ void square_kernel(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n)
    y[i] = x[i] * x[i];
}
"""

# %% [markdown]
# Here are 10 elements and blocks of 4 threads. Three blocks make 12 threads, two more than there are elements. The
# line `if (i < n)`, called the **guard**, stops these two.

# %%
# %matplotlib inline
from common.figures.diagrams.thread_grid import draw_thread_grid

draw_thread_grid(count=10, block_size=4)

# %% [markdown]
# ## 2. Call it from PyTorch
#
# Two more pieces are needed: a launch and a C++ function. The **launch** starts the kernel. The first two values in
# `<<<...>>>` are the number of blocks and the number of threads in each block. The other two values are the size of
# the shared memory and the stream; notebooks 03b and 03c explain them. The **C++ function** `square` takes a tensor
# and allocates the result. It calls `launch_square` with a pointer to the data of each tensor, and returns the
# result. `inline` compiles the kernel, the launch and the C++ function, and returns a Python module.

# %%
LAUNCH = """
void launch_square(const float* x, float* y, int64_t n, cudaStream_t stream) {
  square_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}
"""

CPP = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

void launch_square(const float* x, float* y, int64_t n, cudaStream_t stream);

at::Tensor square(const at::Tensor& x) {
  at::Tensor y = at::empty_like(x);
  launch_square(x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), x.numel(),
                c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

HEADERS = "#include <cuda_runtime.h>\n#include <cstdint>\n"
kernels = inline("first_kernel", CPP, HEADERS + KERNEL + LAUNCH, ["square"])

x = torch.randn(1000, device=device())
print("the same as x * x:", torch.equal(kernels.square(x), x * x))

# %% [markdown]
# 1000 elements need four blocks of 256 threads. The result equals that of PyTorch, to the last bit.

# %% [markdown]
# ## 3. Break it
#
# Now add one character to the guard: `<` becomes `<=`. One additional thread passes the guard. It reads `x[1000]`
# and writes `y[1000]`, and neither element exists. On a GPU, this kernel usually seems to work: it writes past the
# end of `y`, into padding or into memory that belongs to other data, and you find out much later or never. The
# emulator reports the mistake at once, so this version runs on the emulator even if you have a GPU.

# %%
BROKEN = HEADERS + KERNEL.replace("if (i < n)", "if (i <= n)") + LAUNCH
broken = inline("broken_kernel", CPP, BROKEN, ["square"], target="emulator")

try:
    print("the same as x * x:", torch.equal(broken.square(x.cpu()), x.cpu() * x.cpu()))
except RuntimeError as error:
    print(error)
    print("line 7:", BROKEN.splitlines()[6])

# %% [markdown]
# Read the report from the top: it names the mistake and its line (counted from the first `#include`), the element and
# its tensor, and the thread and its block. The thread reads `x[1000]` before it writes `y[1000]`, so the report names
# the read.

# %% [markdown] tags=["notebook-only", "your-turn"]
# **Your turn:** in the cell above, change `i <= n` to `i < n` and run the cell again. There is no report, and the
# result is right.

# %% [markdown]
# The emulator reports what a kernel does wrong, but not what it leaves out. With `n / 256` blocks in the launch, no
# thread would compute the last 232 elements, and there would be no report. So always compare the result as well.

# %% [markdown]
# ## 4. Give it a gradient
#
# PyTorch cannot differentiate a kernel, so you have to write the derivative yourself, in an `autograd.Function`. Its
# method `forward` calls the kernel and stores what `backward` will need. The method `backward` turns the gradient of
# the output into the gradient of the input. The derivative of x² is 2x.


# %%
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return kernels.square(x)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_y


x.requires_grad_()
Square.apply(x).sum().backward()
print("the gradient is 2x:", torch.equal(x.grad, 2 * x.detach()))

# %% [markdown]
# This is a complete PyTorch extension: a kernel, a function that calls it, and a gradient.

# %% [markdown]
# ## 5. When a kernel of your own is worth the effort
#
# Squaring is too simple to be worth a kernel of its own. A recurrent cell (one time step of a recurrent neural
# network) is worth one. It consists of a dozen small operations. PyTorch runs each operation as a separate kernel,
# which reads its inputs from memory and writes its results to memory. One kernel that does all these operations is
# called a **fused** kernel. It is launched once, and keeps the intermediate values in registers, the fast storage of
# each thread. The workbook builds such a cell in stages. The chart shows the speed of each stage (blue) as a
# multiple of the speed of ordinary PyTorch, measured on an NVIDIA H200. Longer bars are faster. The grey bars show
# what you can reach without C++: a CUDA graph, for example, replays all kernels of a call at once.

# %%
from common.figures.ladder_chart import LadderChart

LadderChart()

# %% [markdown]
# ## Where to go next
#
# | you want to | do this |
# |---|---|
# | learn to write extensions step by step | open the notebook `01_python`, then those of each stage |
# | learn to write an `autograd.Function` first | open the notebook `00a_autograd` before `01_python` |
# | practise | `make next` names an exercise, `make check` says what is wrong with your answer |
# | make an operator of your own function y = f(x) | `make new NAME=gelu KIND=elementwise`: you change three lines |
# | make any other operator of your own | `make new NAME=mycell` creates a package with tests and a benchmark |
# | find a mistake like this one yourself | `make next EX=3/guard`, then `make check` |
# | debug a CUDA program | `make emulate FILE=mine.cu` runs the program on the CPU under all checks |
# | see every stage measured on your machine | `make tour` |
# | teach a class | `docs/teaching.md`: exercises, solutions, grading in one command |
