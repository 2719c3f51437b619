"""Commands that use several packages: the tour, one stage, the diff of two."""
