from common.exercises.judge import Failure, agree, cases, require

# Runs setup.py up to the point where it would start to build.
READER = """
import os, platform, setuptools, distutils.core, torch
from importlib.metadata import PackageNotFoundError, version
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from torch.utils.cpp_extension import BuildExtension

def is_met(requirement):
    try:
        return requirement.specifier.contains(version(requirement.name), prereleases=True)
    except PackageNotFoundError:
        return False

setup = distutils.core.run_setup("setup.py", ["build_ext"], stop_after="init")
command = setup.cmdclass.get("build_ext")
tell({
    "python": str(setup.python_requires or ""),
    "takes_this_python": platform.python_version() in SpecifierSet(str(setup.python_requires or "")),
    "not_met": [text for text in setup.install_requires or [] if not is_met(Requirement(text))],
    "name": setup.metadata.name, "version": setup.metadata.version, "packages": setup.packages or [],
    "modules": setup.py_modules or [],
    "folders": dict(setup.package_dir or {}),
    "extensions": [f"{setup.ext_package or ''}.{one.name}".lstrip(".") for one in setup.ext_modules or []],
    "missing": [str(path) for one in setup.ext_modules or [] for path in one.sources if not os.path.exists(path)],
    "torch": any("torch" in path for one in setup.ext_modules or [] for path in one.include_dirs),
    "command": bool(command) and (command is BuildExtension or getattr(command, "cmd_class", None) is BuildExtension
                                  or (isinstance(command, type) and issubclass(command, BuildExtension))),
})
"""
PACKAGE = "lltm_stage2"


def check(work):
    ran = work.observe(READER, TORCH_CPP_LOG_LEVEL="ERROR")
    if ran.told is None:
        raise Failure("\n".join(["setup.py cannot be run:", *ran.output.splitlines()[-4:]]))
    described(ran.told)
    agree(work.cell(), cases(work, [(3, 5, 70)]))


def described(told):
    """Raises `Failure` for a wrong argument that setup.py passes to setup."""
    require(told["name"] == PACKAGE, f"the name is {told['name']}, expected {PACKAGE}")
    require(told["version"] == "1.0", f"the version is {told['version']}, expected 1.0")
    require(
        PACKAGE in told["packages"],
        f"packages is {told['packages']}: without {PACKAGE} in it, no Python file is installed",
    )
    require(
        told["takes_this_python"],
        f"python_requires is {told['python']!r}, so pip refuses to install the package for the Python that runs here",
    )
    not_met = ", ".join(told["not_met"])
    require(
        not not_met,
        f"install_requires asks for {not_met}, which is not installed here, so pip looks for it on PyPI, and fails "
        "or installs something that nothing imports. The distribution of `import torch` is called torch",
    )
    beside = ", ".join(told["modules"])
    require(not beside, f"py_modules installs {beside} beside the package, where its relative import fails")
    folder = told["folders"].get(PACKAGE, PACKAGE)
    require(folder in (".", "./", ""), f"package_dir says that {PACKAGE} is in {folder!r}, expected this folder, '.'")
    require(bool(told["extensions"]), "there are no ext_modules, so nothing is compiled")
    require(
        told["extensions"] == [f"{PACKAGE}._C"],
        f"the extension is called {told['extensions'][0]}, so it is installed outside the package, and "
        f"`from . import _C` does not find it; expected {PACKAGE}._C",
    )
    missing = ", ".join(told["missing"])
    require(not missing, f"there is no source {missing}: paths are relative to the folder of setup.py")
    require(told["torch"], "the extension has no include_dirs of torch: use CppExtension, which adds them")
    require(
        told["command"],
        "cmdclass has no BuildExtension as build_ext, which passes TORCH_EXTENSION_NAME and torch's flags",
    )
