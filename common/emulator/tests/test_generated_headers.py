"""The generated headers of CUDA's names and numbers are those of the toolkit."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.build import nvcc
from common.emulator import generate_headers


@pytest.mark.needs("nvcc", "g++")
def test_the_generated_headers_are_those_of_the_toolkit():
    toolkit = Path(nvcc.find_nvcc()).resolve().parents[1]
    if generate_headers.version_of(toolkit) != "13.0":
        pytest.skip("the headers in the repository are those of CUDA 13.0")
    for name, text in generate_headers.generate_headers(toolkit).items():
        assert (generate_headers.INCLUDE / name).read_text() == text, f"run generate_headers.py: {name} has changed"
