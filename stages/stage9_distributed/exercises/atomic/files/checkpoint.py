"""A checkpoint that survives a power failure."""


def save(disk, data):
    """Replaces the checkpoint by `data`, a text. The disk may hold an older checkpoint."""
    # BEGIN SOLUTION: the power may fail between any two operations.
    disk.write("checkpoint.new", data)
    disk.sync("checkpoint.new")
    disk.rename("checkpoint.new", "checkpoint")
    disk.sync_folder()
    # BEGIN STARTER
    # disk.write("checkpoint", data)
    # disk.sync("checkpoint")
    # END STARTER
    # END SOLUTION


def load(disk):
    """The checkpoint; None if there is none."""
    return disk.read("checkpoint") if disk.exists("checkpoint") else None
