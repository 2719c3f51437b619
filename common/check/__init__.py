"""The checks that a stage must pass, on every target, device and dtype."""
