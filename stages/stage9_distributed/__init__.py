"""Training with the cell of any stage, in one process or in many that average their gradients."""

from . import checkpoint, train
from .checkpoint import Checkpoints
from .errors import TrainingError
from .model import LLTM, Network, make_network
from .processes import Processes
from .sampler import Sampler, share
from .tasks import Samples, Task, make_task
from .training import Training

__all__ = [
    "LLTM",
    "Checkpoints",
    "Network",
    "Processes",
    "Sampler",
    "Samples",
    "Task",
    "Training",
    "TrainingError",
    "checkpoint",
    "make_network",
    "make_task",
    "share",
    "train",
]
