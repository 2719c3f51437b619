"""Shared helpers of the tests: made-up data, small programs, and sandboxes."""
