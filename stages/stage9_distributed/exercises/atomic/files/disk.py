"""A disk whose power fails. Do not change this file; edit checkpoint.py."""


class PowerFailure(Exception):
    """Ends the program in the middle of an operation."""


class Disk:
    """A folder of texts in memory, and what of it is certainly on the disk.

    The power fails before operation `fails_at`. Then a file keeps what was synchronised, or the share `kept` of the
    text that was written since. The names are those of the last `sync_folder`, or all if `names_survive`.
    """

    def __init__(self, files, fails_at=None, kept=0.0, names_survive=True):
        self.names = {name: [text, text] for name, text in files.items()}  # a file: its text, and that on the disk
        self.safe_names = dict(self.names)
        self.fails_at, self.kept, self.names_survive = fails_at, kept, names_survive
        self.operations = []

    def begin(self, *operation):
        """Counts an operation. Raises `PowerFailure` if the power fails before it."""
        if len(self.operations) == self.fails_at:
            raise PowerFailure
        self.operations.append(" ".join(operation))

    def write(self, name, text):
        """Replaces a file's text, or makes a file. The old text of a file is lost at once."""
        self.begin("write", name)
        if name in self.names:
            self.names[name][:] = [text, None]
        else:
            self.names[name] = [text, None]

    def sync(self, name):
        """Returns when the text of a file is on the disk."""
        self.begin("sync", name)
        self.names[name][1] = self.names[name][0]

    def rename(self, old, new):
        """Gives a file another name, at once or not at all. A file that had this name is replaced."""
        self.begin("rename", old, new)
        self.names[new] = self.names.pop(old)

    def remove(self, name):
        """Removes a file."""
        self.begin("remove", name)
        del self.names[name]

    def sync_folder(self):
        """Returns when all names are on the disk."""
        self.begin("sync_folder")
        self.safe_names = dict(self.names)

    def exists(self, name):
        """Whether there is a file of this name."""
        return name in self.names

    def read(self, name):
        """The text of a file."""
        return self.names[name][0]

    def restart(self):
        """The disk after a power failure."""
        names = self.names if self.names_survive else self.safe_names
        left = {}
        for name, (text, safe) in names.items():
            left[name] = text[: int(len(text) * self.kept)] if safe is None else safe
        return Disk(left)
