"""What `make check` calls. Do not change this file; edit checkpoint.py."""

from .checkpoint import load, save
from .disk import Disk, PowerFailure


def trial(files, data, fails_at, kept, names_survive):
    """What `load` finds after a power failure, whether `save` had returned, and the operations until then."""
    disk = Disk(files, fails_at, kept, names_survive)
    returned = True
    try:
        save(disk, data)
    except PowerFailure:
        returned = False
    return [load(disk.restart()), returned, disk.operations]
