"""Searches in a learner's source: removes comments first, so that text in a comment is not taken for code."""

from __future__ import annotations

import re

CPP = re.compile(
    r"""
    (?P<keep>\#[ \t]*include[^\n]*)
    | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<string>R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
    """,
    re.VERBOSE | re.DOTALL,
)
PYTHON = re.compile(
    r'''
    (?P<comment>\#[^\n]*)
    | (?P<string>""".*?(?:"""|\Z)|\'\'\'.*?(?:\'\'\'|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    ''',
    re.VERBOSE | re.DOTALL,
)
# A function for the GPU, with at most two blocks within each other.
ON_THE_GPU = r"__(?:global|device)__[^{;]*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"

# A parameter or variable of 32 bits, such as `int row`; blockIdx.y has 32 bits, too.
NARROW = r"(?<!long )\b(?:(?:unsigned\s+)?(?:int|u?int32_t)|unsigned|auto(?=\s+\w+\s*=\s*blockIdx\.y\s*;))\s+(\w+)"


def strip_comments(text: str, file: str, strings: bool = True) -> str:
    """The text without comments and, with `strings=False`, with empty string literals. `file` gives the language."""

    def shorten(found: re.Match[str]) -> str:
        if found.lastgroup == "comment":
            return " "
        return '""' if found["string"] and not strings else found[0]

    return (PYTHON if file.endswith(".py") else CPP).sub(shorten, text)


def find_host_calls(code: str, *names: str) -> list[str]:
    """Which functions, such as "exp" (and its float version "expf"), the host code of a CUDA source calls.

    `code` has no comments.
    """
    calls = re.findall(rf"\b(?:{'|'.join(names)})f?\b", re.sub(ON_THE_GPU, "", code))
    return list(dict.fromkeys(calls))


def find_narrow_products(code: str, *factors: str) -> list[str]:
    """The 32-bit variables, such as "at", that are set to a product with one of these factors, such as "row".

    `code` has no comments. Sizes at which such a product overflows do not fit into the memory of a test.
    """
    either = "|".join(factors)
    value = rf"[^;]*?(?:\b(?:{either})\b[^;,]*\*|\*[^;,]*\b(?:{either})\b)"
    return re.findall(rf"\b(?:int|unsigned|u?int32_t)\s+(\w+)\s*=\s*{value}", code)


def find_narrow_factors(code: str, kernel: str) -> list[str]:
    """The names in products of a row's number in a kernel, such as "row and S", that have 32-bit factors only.

    `code` has no comments. Such a product has 32 bits, too, even if it is stored in 64.
    """
    body = "".join(re.findall(rf"\b{kernel}\(.*?^}}", code, re.DOTALL | re.MULTILINE))
    rows = {"blockIdx.y", "gridDim.y", *re.findall(rf"{NARROW}\s*=[^;]*blockIdx\.y", body)}
    number = rf"(?:{'|'.join([*rows, *re.findall(NARROW, body), r'[0-9]+'])})\b"
    factor = rf"(?:{number}|\({number}(?:[-+*]{number})+\))"
    dense = re.sub(r"\s*([-+*/%()])\s*", r"\1", body)
    products = re.findall(rf"(?<![\w.)*/%]){factor}(?:\*{factor})+", dense)
    names = [dict.fromkeys(re.findall(r"[A-Za-z_][\w.]*", product)) for product in products]
    return [" and ".join(each) for each in names if len(each) > 1 and rows & each.keys()]
