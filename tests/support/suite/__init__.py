"""How the test suite runs: where tests belong, what is built before them, and which process runs which."""
