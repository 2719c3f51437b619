"""Shared setup of the tests."""

pytest_plugins = ["support.suite.plugins"]
