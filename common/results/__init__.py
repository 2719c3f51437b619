"""Results of measurements: the files that hold them, their rows, and whether they still fit the sources."""
