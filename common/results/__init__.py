"""Results of measurements: their files, their rows, and whether they are still up to date with the sources."""
