"""Keeps the files that setuptools writes during a build out of this folder. All else is in pyproject.toml."""

import tempfile

from setuptools import setup

with tempfile.TemporaryDirectory() as folder:
    # script_name, so that this file is not a module of the package.
    setup(script_name="setup.py", options={"build": {"build_base": folder}, "egg_info": {"egg_base": folder}})
