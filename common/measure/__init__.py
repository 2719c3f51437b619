"""Times the stages and counts the accesses of their kernels; every timed result is checked first."""
