import built
import pytest


def pytest_configure():
    try:
        built.demand()
    except SystemExit as error:
        pytest.exit(str(error), returncode=1)
