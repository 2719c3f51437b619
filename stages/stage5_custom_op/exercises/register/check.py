from common.exercises.judge import OPERATORS, SMALL, Failure, LearnerError, agree, cases, require, same

SCHEMAS = (
    "pointwise(Tensor z, Tensor old_cell) -> (Tensor new_h, Tensor new_cell, Tensor gates)",
    "pointwise_backward(Tensor? grad_h, Tensor? grad_cell, Tensor gates, Tensor new_cell)"
    " -> (Tensor d_z, Tensor d_old_cell)",
)


def check(work):
    probe = work.beside(OPERATORS)
    for expected in SCHEMAS:
        defined(probe, expected)
    by_name(work, probe)
    agree(work.cell(), cases(work))
    for expected in SCHEMAS:
        name = expected.partition("(")[0]
        require(
            probe.tagged(name, "pt2_compliant_tag"),
            f"{name} has no pt2_compliant_tag. The tag declares that fake kernel and gradient match the operator, so "
            "that a compiler may rely on them. Pass it as the second argument of m.def",
        )


def defined(probe, expected):
    """Raises `Failure` unless the operator has the schema and a kernel for CPUs."""
    name = expected.partition("(")[0]
    try:
        found = probe.schema(name)
    except LearnerError:
        raise Failure(f"torch.ops has no {name}: define it with TORCH_LIBRARY in csrc/lltm.cpp") from None
    if found != expected:
        raise Failure(f"the schema is not what the README asks for.\n  it is      {found}\n  expected   {expected}")
    for key in ("CompositeImplicitAutograd", "CompositeExplicitAutograd"):
        require(
            not probe.has_kernel(name, key),
            f"{name} is registered for {key}, that is, for every device: the loop for CPU memory would also run for "
            "tensors on a GPU, and for meta tensors, which have no memory. Use the key CPU",
        )
    require(
        probe.has_kernel(name, "CPU"),
        f"{name} has a schema but no kernel for the CPU: register one with TORCH_LIBRARY_IMPL in csrc/lltm_cpu.cpp",
    )
    require(
        not probe.has_kernel(name, "CUDA"),
        f"{name} is registered for CUDA, too: the loop for CPU memory would also run for tensors on a GPU. "
        "csrc/lltm_cuda.cpp registers the kernels for GPUs",
    )


def by_name(work, probe):
    """Each named argument reaches the right parameter."""
    case = work.case(*SMALL)
    old_cell = case.inputs()["old_cell"].detach()
    z = work.case(case.B, 1, 3 * case.S).inputs()["old_h"].detach()
    for got, want in zip(
        probe.call("pointwise", z=z, old_cell=old_cell), probe.call("pointwise", z, old_cell), strict=True
    ):
        same("pointwise(z=z, old_cell=old_cell)", got, want)
