"""Runs a learner's code in a separate process."""
