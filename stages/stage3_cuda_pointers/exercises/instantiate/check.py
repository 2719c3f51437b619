import re

from common.exercises.judge import BuildFailure, Failure, LearnerError, agree, cases

ADVICE = (
    "lltm.cpp calls this function, but lltm_kernel.cu does not instantiate it for exactly these types (`long` is "
    "int64_t). Compare each argument, and check the list of instantiations"
)


def check(work):
    try:
        agree(work.cell(), cases(work, [(3, 5, 70)]))
    except BuildFailure as failure:
        if re.search(r"undefined symbol: .*launch_\w+ward", str(failure)):
            raise BuildFailure(f"{failure}\n{ADVICE}") from None
        raise
    empty_batch(work)
    code = work.code("csrc/lltm_kernel.cu")
    for function in ("launch_forward", "launch_backward"):
        if not re.search(rf"\btemplate\s+(?!<)[^;{{]*\b{function}\b", code):
            raise Failure(
                f"the results are right, but {function} has no explicit instantiation (template, the result's type, "
                "the name with its types): the compiler may leave out what it instantiates only for its own use"
            )
    if '"lltm_kernel.cu' in work.code("csrc/lltm.cpp"):
        raise Failure("lltm.cpp includes the kernels: nvcc would then have to compile all of torch's headers")


def empty_batch(work):
    """The functions that are instantiated are the given ones, which launch nothing for an empty batch."""
    try:
        agree(work.cell(), cases(work, [(0, 5, 7)]))
    except LearnerError as error:
        raise Failure(
            f"with B=0: {str(error).splitlines()[0]}\nThe given launch_forward and launch_backward launch nothing "
            "for an empty batch: instantiate them, and write no function of your own in their place"
        ) from None
