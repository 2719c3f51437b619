import subprocess
from pathlib import Path

from torch.utils.cpp_extension import include_paths, library_paths

Path("built").mkdir(exist_ok=True)
flags = [f"-I{path}" for path in include_paths()]
flags += [flag for path in library_paths() for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
libraries = ["-lc10", "-ltorch_cpu", "-Wl,--no-as-needed", "-ltorch"]
subprocess.run(["g++", "-std=c++20", "total.cpp", "-o", "built/total", *flags, *libraries], check=True)
print("built/total")
