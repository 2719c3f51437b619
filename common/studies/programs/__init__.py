"""The programs that belong to the emulator, read as data: those of its features, and those with mistakes."""
