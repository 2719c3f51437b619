"""Keeps what setuptools writes while it builds out of this folder; pyproject.toml says the rest."""

import tempfile

from setuptools import setup

with tempfile.TemporaryDirectory() as folder:
    # The name, so that this file is no module of the package.
    setup(script_name="setup.py", options={"build": {"build_base": folder}, "egg_info": {"egg_base": folder}})
