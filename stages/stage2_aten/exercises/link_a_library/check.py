import zlib
from pathlib import Path

import torch

from common.exercises.judge import Failure, LearnerError, require

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8)


def check(work):
    checksum = work.load("_C").checksum
    numbers = work.numbers()
    for dtype in DTYPES:
        x, wide = random(5, 33, dtype, numbers), random(7, 66, dtype, numbers)
        layouts = {"contiguous": x, "transposed": x.t(), "a slice": wide[1:-1, 3:40], "every other": wide[:, ::2]}
        layouts["two rows of a larger tensor"] = wide[1:3]
        images = random(6, 20, dtype, numbers).view(2, 3, 4, 5)
        layouts["channels_last"] = images.to(memory_format=torch.channels_last)
        for name, tensor in layouts.items():
            compare(checksum, tensor, f"x {name}, {dtype}")
    compare(checksum, torch.empty(0, 3), "x without elements")
    compare(checksum, torch.randn((), generator=numbers).expand(4, 5), "x expanded")
    library = work.library().read_bytes()
    # The name of an undefined symbol; crc32_z is the same function for longer arrays.
    require(any(name in library for name in (b"\0crc32\0", b"\0crc32_z\0")), "the library does not call zlib's crc32")
    require(
        b"libz.so" in library,
        "crc32 is found only by chance, in an already loaded library: setup.py does not link zlib",
    )
    marked(checksum, numbers)
    rare_dtypes(work, numbers)


def marked(checksum, numbers):
    """Views of which torch stores no numbers of their own: it conjugates or negates those of z when they are read."""
    z = torch.randn(5, 33, dtype=torch.complex64, generator=numbers)
    one = z[0, :1]  # so that the view is contiguous: contiguous() copies others, and what it copies has no mark
    for name, x, stored in (("z.conj()", z.conj(), z), ("z[0, :1].conj().imag", one.conj().imag, one.imag)):
        got = checksum(x)
        require(
            got != crc(stored),
            f"checksum({name}) is that of {name.replace('.conj()', '')}: this view is only marked, and its bytes are "
            "those of z. resolve_conj() and resolve_neg() return a tensor with bytes of its own",
        )
        require(got == crc(x), f"checksum({name}) is {got}, expected {crc(x)}")


def rare_dtypes(work, numbers):
    """Dtypes that macros such as AT_DISPATCH_ALL_TYPES leave out."""
    checksum_as = work.beside(Path(__file__).with_name("dtypes.py")).checksum_as
    x = torch.randint(0, 2, (5, 32), generator=numbers, dtype=torch.uint8)  # bytes that are numbers in each dtype
    for dtype in (torch.bool, torch.bfloat16, torch.uint16, torch.float8_e5m2):
        want = crc(x.view(dtype).t().contiguous().view(torch.uint8))  # NumPy does not have all of these dtypes
        try:
            got = checksum_as(x, str(dtype).removeprefix("torch."))
        except LearnerError as error:
            raise Failure(
                f"checksum(x) fails for {dtype}: {str(error).splitlines()[0]}\nThe bytes of x and their number, "
                "nbytes(), are enough, whatever the dtype: const_data_ptr() without a type gives their address"
            ) from None
        require(got == want, f"checksum(x) is {got}, expected {want} (x transposed, {dtype})")


def random(rows, columns, dtype, numbers):
    """Random elements; converting those of 8 bytes to a smaller dtype and back changes them."""
    if dtype.is_floating_point:
        return torch.randn(rows, columns, generator=numbers, dtype=torch.float64).to(dtype)
    largest = min(torch.iinfo(dtype).max, 2**62)
    return torch.randint(0, largest, (rows, columns), generator=numbers, dtype=dtype)


def compare(checksum, x, name):
    got, want = checksum(x), crc(x)
    require(isinstance(got, int), f"checksum(x) is {got!r}, expected a whole number")
    suspects = {
        crc(in_memory_order(x)): "the bytes were read in memory order, not in row order: x is not contiguous",
        zlib.crc32(x.contiguous().numpy().tobytes()[: x.numel()]): "this is the checksum of only the first bytes: "
        "an element of this dtype has more than one byte",
        0: "this is the start value 0: no bytes were added to it",
        zlib.crc32(x.contiguous().numpy().tobytes(), 1): "the checksum starts with 1, expected 0",
        crc(x.float().to(x.dtype)): "the elements were converted to torch.float32 and back, which loses digits: read "
        "the bytes of x itself, or of a copy with x's dtype",
    }
    why = suspects.get(got, "")
    require(got == want, f"checksum(x) is {got}, expected {want} ({name})" + (f"\n{why}" if why else ""))


def crc(x):
    return zlib.crc32(x.resolve_conj().resolve_neg().contiguous().numpy().tobytes())


def in_memory_order(x):
    """The elements in memory order, from x's first element up to the end of x's storage."""
    count = min(x.numel(), x.untyped_storage().nbytes() // x.element_size() - x.storage_offset())
    return x.as_strided((count,), (1,))
