"""The plugins of the suite, for the conftest.py of both of its folders."""

pytest_plugins = [
    "pytester",
    "support.suite.session",
    "support.suite.needs",
    "support.suite.scheduling",
    "support.proofs.plugin",
]
