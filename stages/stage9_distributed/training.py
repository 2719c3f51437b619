"""The training loop. It computes the same, in one process or in many, from the beginning or from a checkpoint."""

import time

import torch
from torch import nn
from torch.distributed.checkpoint import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel

from .checkpoint import reason_of
from .errors import TrainingError
from .sampler import Sampler, share
from .settings import compare_settings

LARGEST_NORM = 1.0  # of the gradient: longer ones are scaled down, because a recurrent cell sometimes has huge ones


class Training:
    """A network, its optimizer and the losses so far, in one of the processes that train it together."""

    def __init__(self, task, network, processes, device, *, batch_size, learning_rate, seed):
        self.task, self.processes, self.device = task, processes, device
        self.train, self.test = task.train.to(device), task.test.to(device)
        self.sampler = Sampler(len(self.train.inputs), batch_size, seed)
        self.network = network.to(device)
        # Averages the gradients of all processes during backward. Also copies the parameters of the first process.
        self.parallel = DistributedDataParallel(self.network, process_group=processes.group_for(device))
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=learning_rate)
        self.step = 0
        self.history = []  # of {"step", "loss", "test_loss", "accuracy"}
        # DistributedDataParallel averages gradients in buckets, and after its first pass it fills them in another
        # order. With three processes or more, the order decides how the sums are rounded. Without this pass, whose
        # gradients are not used, the first step after a restart would round differently.
        self.gradients(self.sampler.batch(0))
        self.optimizer.zero_grad()  # get_state_dict initialises the optimizer's state only if there are no gradients

    def run(self, steps, every, checkpoints=None, settings=None):
        """Trains up to a number of steps. Every `every` steps it evaluates, prints a line and saves a checkpoint.

        The checkpoint records `settings`, from `describe_settings`. Returns whether the last checkpoint was written.
        """
        loss, count, start = 0.0, 0, time.perf_counter()
        while self.step < steps:
            batch = self.sampler.batch(self.step)
            loss += self.update(batch)
            count += len(batch)
            self.step += 1
            if self.step % every == 0 or self.step == steps:
                loss = float(loss)  # waits for the GPU, if there is one
                self.report(loss, count, time.perf_counter() - start)
                if checkpoints:
                    checkpoints.save(self.step, self.state(), {"history": self.history, "settings": settings})
                loss, count, start = 0.0, 0, time.perf_counter()
        return checkpoints is None or checkpoints.wait()

    def gradients(self, batch):
        """Sets the gradients to those of the mean loss of a batch. Returns the sum of the losses of our share."""
        rows = share(batch, self.processes.rank, self.processes.world_size)
        samples = self.train[rows.to(self.device)]
        self.optimizer.zero_grad()
        loss = self.task.loss(self.parallel(samples.inputs), samples.targets)
        # DistributedDataParallel computes the mean over the processes, whose shares may differ in size. With this
        # factor, each sample counts once.
        (loss * (self.processes.world_size / len(batch))).backward()
        return loss.detach()

    def update(self, batch):
        """One step of the optimizer. Returns the sum of the losses of our share."""
        loss = self.gradients(batch)
        nn.utils.clip_grad_norm_(self.network.parameters(), LARGEST_NORM)
        self.optimizer.step()
        return loss

    @torch.no_grad()
    def evaluate(self):
        """The mean loss and the accuracy on the test samples: each process takes a share, and the sums are added."""
        rows = share(torch.arange(len(self.test.inputs)), self.processes.rank, self.processes.world_size)
        samples = self.test[rows.to(self.device)]
        outputs = self.network(samples.inputs)
        loss, correct = self.task.loss(outputs, samples.targets), self.task.is_correct(outputs, samples.targets).sum()
        loss, correct, count = self.processes.sum(float(loss), float(correct), len(rows))
        return loss / count, correct / count

    def report(self, loss, count, seconds):
        """Adds a row to the history and prints it. `loss` is the sum over our shares, `count` over whole batches."""
        (loss,) = self.processes.sum(loss)
        test_loss, accuracy = self.evaluate()
        row = {"step": self.step, "loss": loss / count, "test_loss": test_loss, "accuracy": accuracy}
        steps = self.step - (self.history[-1]["step"] if self.history else 0)
        self.history.append(row)
        if self.processes.rank == 0:
            print(
                f"step {self.step:>6}   loss {row['loss']:.4f}   test {test_loss:.4f}, {accuracy:7.2%} correct   "
                f"{seconds / steps * 1e3:.1f} ms a step",
                flush=True,
            )

    def state(self):
        """The tensors of a checkpoint, as a nested dictionary. All processes have the same."""
        network, optimizer = get_state_dict(self.network, self.optimizer)
        return {"network": network, "optimizer": optimizer}

    def resume(self, checkpoints, settings):
        """Continues with the newest checkpoint, if there is one. Returns whether there is.

        Raises `TrainingError` if it belongs to a training with other settings.
        """
        notes = checkpoints.newest()
        if notes is None:
            return False
        remark = compare_settings(notes.get("settings"), settings, checkpoints.folder)
        if remark and self.processes.rank == 0:
            print(remark, flush=True)
        state = self.state()
        try:
            checkpoints.load(notes["step"], state)
        except CheckpointException as error:
            place = f"step {notes['step']} of --checkpoint {checkpoints.folder}"
            raise TrainingError(f"{place} does not fit this network: {reason_of(error)}") from None
        set_state_dict(
            self.network, self.optimizer, model_state_dict=state["network"], optim_state_dict=state["optimizer"]
        )
        self.step, self.history = notes["step"], notes["history"]
        return True
