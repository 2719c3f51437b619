"""The building blocks of checks: the learner's folder during a check, and what compares its results."""
