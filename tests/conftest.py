"""Shared setup of the tests."""

pytest_plugins = [
    "pytester",
    "support.suite.session",
    "support.suite.needs",
    "support.suite.scheduling",
    "support.proofs.plugin",
]
