"""Builds a learner's code for a target, and runs it in a separate process."""
