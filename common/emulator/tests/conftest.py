"""The setup that all tests of the workbook share."""

pytest_plugins = ["support.suite.plugins"]
