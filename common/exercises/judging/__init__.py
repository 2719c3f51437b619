"""What checks are written with: a learner's folder while it is checked, and comparisons."""
