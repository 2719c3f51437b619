"""The disk after a save without a power failure. It runs in the learner's process."""

from .checkpoint import save
from .disk import Disk


def files_after(data):
    """The files that are certainly on a disk after `data` was saved as its first checkpoint."""
    disk = Disk({}, names_survive=False)
    save(disk, data)
    found = disk.restart()
    return {name: found.read(name) for name in found.names}
