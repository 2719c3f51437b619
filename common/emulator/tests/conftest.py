"""The setup that all tests of the workbook share."""

pytest_plugins = [
    "pytester",
    "support.suite.session",
    "support.suite.needs",
    "support.suite.scheduling",
    "support.proofs.plugin",
]
