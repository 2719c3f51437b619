"""Training with the cell of any stage, in one process or in many that average their gradients."""

from . import checkpoint, lock, train
from .checkpoint import Checkpoints
from .errors import FolderInUse, TrainingError
from .model import LLTM, Network, make_network
from .processes import Processes
from .sampler import Sampler, share
from .tasks import Samples, Task, make_task
from .training import Training

__all__ = [
    "LLTM",
    "Checkpoints",
    "FolderInUse",
    "Network",
    "Processes",
    "Sampler",
    "Samples",
    "Task",
    "Training",
    "TrainingError",
    "checkpoint",
    "lock",
    "make_network",
    "make_task",
    "share",
    "train",
]
