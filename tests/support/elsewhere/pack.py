"""Writes the archive to stdout: see the package's docstring."""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

VENV = Path(sys.prefix).resolve()
PYTHON = Path(sys.base_prefix).resolve()
SYSTEM = (
    *("etc", "usr/bin", "usr/sbin", "usr/include", "usr/lib", "usr/lib64", "usr/libexec", "usr/share/git-core"),
    *("usr/share/perl", "usr/share/mime", "usr/share/zoneinfo", "usr/share/fonts", "usr/share/cmake*"),
)
LINKS = ("/bin", "/lib", "/lib32", "/lib64", "/sbin")
EMPTY = ("tmp", "proc", "dev", "sys", "var/tmp", "root", "run", "home")
MOST = 25_000_000  # bytes of a file of the system, other than g++
STUB_ARCHIVES = ("libpthread.a", "libdl.a", "librt.a", "libutil.a")  # without members; g++ asks for them

NOT_PACKED = re.compile(
    r"/(__pycache__|triton|jvm|llvm-\d+|google-cloud-sdk|postgresql|node_modules|valgrind|locale|lib/debug|fpc|dri)$"
)
OTHER_PACKAGES = re.compile(rf"^{re.escape(str(PYTHON))}/lib/python[\d.]+/(site-packages|test|config-\S+)$")
ARCHIVES = re.compile(r"^/usr/lib/.*\.a$")
NEEDED_ARCHIVES = re.compile(r"nonshared|libgcc|libstdc|supc|gtest|gmock")
LAZY = re.compile(r"/nvidia/.*lib(cudnn_\w+|nvrtc-\w+|cufftw|nvblas|cusolverMg|nvperf\w*)\.so")  # opened by name
STUBS = re.compile(
    r"/nvidia/.*lib(cublas|cublasLt|cudnn|cufft|cusparse|cusparseLt|cusolver|nccl|nvshmem_host|nvrtc|nvJitLink)\.so"
)
# A line of readelf for a symbol that a library defines: its size, its kind, its name and its version.
SYMBOL = re.compile(r"(\w+) +(FUNC|OBJECT) +(?:GLOBAL|WEAK) +\S+ +\d+ ([^\s@]+)@{0,2}(\S*)$", re.MULTILINE)
NOT_RUN = re.compile(r"fatbin|^\.(cask_resource|strtab|symtab|debug)")  # sections that no code on a CPU reads


def files_to_pack() -> Iterator[Path]:
    """The path of each file, link and folder."""
    yield from filter(Path.is_symlink, map(Path, LINKS))
    system = [path for pattern in SYSTEM for path in Path("/").glob(pattern)]
    for top in (*system, PYTHON, VENV):
        for name, folders, files in os.walk(top):
            folder = Path(name)
            yield folder
            yield from (folder / name for name in folders if (folder / name).is_symlink())
            folders[:] = [name for name in folders if is_walked(folder / name)]
            yield from (folder / name for name in files if is_packed(folder / name))


def is_walked(folder: Path) -> bool:
    """Whether the files of a folder may be part of the archive."""
    return not (folder.is_symlink() or NOT_PACKED.search(str(folder)) or OTHER_PACKAGES.search(str(folder)))


def is_packed(path: Path) -> bool:
    """Whether a file is part of the archive: not if it is large and no part of Python, g++ or cmake."""
    name = str(path)
    if path.is_symlink():
        return True
    if LAZY.search(name) or (ARCHIVES.search(name) and not NEEDED_ARCHIVES.search(name)):
        return False
    is_large = name.startswith("/usr/") and path.stat().st_size > MOST
    return path.is_file() and not (is_large and not re.search(r"/cc1|python|libicudata", name))


def content_of(path: Path) -> bytes:
    """What the archive has of a file."""
    if STUBS.search(str(path)):
        return make_stub(path)
    data = path.read_bytes()
    return without_device_code(data) if len(data) > 5_000_000 and data[:4] == b"\x7fELF" else data


def without_device_code(data: bytes) -> bytes:
    """A library with zeros in the sections that match `NOT_RUN`."""
    (headers,) = struct.unpack_from("<Q", data, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, headers + k * size) for k in range(count)]
    names, changed = sections[of_names][4], bytearray(data)
    for name, kind, _, _, offset, length, *_ in sections:
        text = data[names + name : data.index(0, names + name)].decode()
        if kind != 8 and NOT_RUN.search(text):  # 8: a section without content
            changed[offset : offset + length] = bytes(length)
    return bytes(changed)


def make_stub(path: Path) -> bytes:
    """A library with the same name, symbols and versions, whose functions end the program."""
    readelf = ["readelf", "--dynamic", "--dyn-syms", "--wide", path]
    listed = subprocess.run(readelf, capture_output=True, text=True, check=True).stdout
    own_name = re.search(r"SONAME.*\[(.*)\]", listed)[1]
    source, versions = [], {}
    for size, kind, name, version in SYMBOL.findall(listed):
        body = f".data\n{name}: .zero {max(8, int(size, 0))}" if kind == "OBJECT" else f".text\n{name}: ud2"
        source.append(f".globl {name}\n.type {name},@{'object' if kind == 'OBJECT' else 'function'}\n{body}\n")
        versions.setdefault(version, []).append(name)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        (folder / "stub.s").write_text("".join(source))
        (folder / "versions").write_text(
            "".join(
                f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in versions.items() if version
            )
        )
        scripts = [f"-Wl,--version-script={folder / 'versions'}"] if set(versions) - {""} else []
        files = [folder / "stub.s", "-o", folder / "stub.so"]
        subprocess.run(["gcc", "-shared", "-nostdlib", *files, f"-Wl,-soname,{own_name}", *scripts], check=True)
        return (folder / "stub.so").read_bytes()


def add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    """Adds a file that this machine does not have."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def main() -> None:
    """The command."""
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for path in files_to_pack():
            entry = archive.gettarinfo(str(path))
            if entry is None:  # a socket
                continue
            entry.name = str(path).lstrip("/")
            data = content_of(path) if entry.islnk() or entry.isreg() else b""
            if data:
                entry.type, entry.size = tarfile.REGTYPE, len(data)
            archive.addfile(entry, io.BytesIO(data))
        for folder in EMPTY:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if "tmp" in folder else 0o755
            archive.addfile(entry)
        for name in STUB_ARCHIVES:
            add(archive, f"usr/lib/x86_64-linux-gnu/{name}", b"!<arch>\n")
        version = subprocess.run(["nvcc", "--version"], capture_output=True).stdout  # is a part of the keys
        add(archive, "usr/local/bin/nvcc", b"#!/bin/sh\ncat <<'END'\n" + version + b"END\n", 0o755)


if __name__ == "__main__":
    main()
