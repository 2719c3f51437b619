"""Times the cell against reference.py in eager mode and compiled: `python bench.py`, or with `--size 16 32 128`."""

import argparse
import statistics

import built
import torch
from torch.utils.benchmark import Timer

built.demand()

import reference  # noqa: E402
from lltm import lltm  # noqa: E402

SIZES = [(16, 32, 128), (64, 1024, 128), (256, 256, 512)]  # B, I, S
ROUNDS = 20


def steps(cell, arguments):
    """The two timed steps: forward alone, and forward with backward."""

    def forward():
        with torch.no_grad():
            return cell(*arguments)

    def both():
        results = cell(*arguments)
        results = results if isinstance(results, tuple) else (results,)
        return (*results, *torch.autograd.grad(results, arguments, [torch.ones_like(r) for r in results]))

    return {"forward": forward, "forward+backward": both}


def check(name, steps, expected):
    """Ends the program if the results are wrong, because wrong code is not timed."""
    tolerance = 1e-4  # relative to the largest number, for float32 sums of a few hundred terms
    for step, wanted in expected.items():
        got = steps[step]()
        try:
            torch.testing.assert_close(got, wanted, rtol=0, atol=tolerance * max_of(wanted))
        except AssertionError as error:
            raise SystemExit(f"{name} is wrong ({step}), so nothing is timed.\n{error}") from None


def max_of(tensors):
    """The largest magnitude in any of the tensors."""
    return max(tensor.abs().max().item() for tensor in tensors)


def medians(functions, seconds):
    """Seconds of one call of each function: medians over rounds that run each of them, so disturbances affect all."""
    timers = [Timer("call()", globals={"call": f}, num_threads=torch.get_num_threads()) for f in functions]
    calls = [max(1, int(seconds / ROUNDS / timer.timeit(3).mean)) for timer in timers]
    rounds = [[timer.timeit(n).mean for timer, n in zip(timers, calls, strict=True)] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def main():
    """Prints a row for each implementation and size: microseconds of one call, and times as fast as eager."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", nargs=3, type=int, action="append", metavar=("B", "I", "S"))
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds for each number")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    implementations = {"eager": reference.cell, "lltm": lltm, "torch.compile": torch.compile(reference.cell)}
    print(f"torch {torch.__version__}, {options.device}, float32, {torch.get_num_threads()} threads")
    print("microseconds, and in brackets how many times as fast as eager")
    for size in map(tuple, options.size or SIZES):
        arguments = [*reference.arguments(*size, torch.float32, options.device).values()]
        timed = {name: steps(cell, arguments) for name, cell in implementations.items()}
        expected = {step: function() for step, function in timed["eager"].items()}
        for name, functions in timed.items():
            check(name, functions, expected)
        times = {step: medians([timed[name][step] for name in timed], options.seconds) for step in expected}
        print("\nB{} I{} S{}".format(*size))
        for k, name in enumerate(timed):
            row = [f"{step} {of[k] * 1e6:8.1f} ({of[0] / of[k]:.2f})" for step, of in times.items()]
            print(f"  {name:<14} {'   '.join(row)}")


if __name__ == "__main__":
    main()
