"""A training script in which one line replaces `torch.nn.LSTM` by `FastLSTM`: same losses, less time.

    pip install --no-build-isolation stages/stage7_sequence
    python -m lltm_stage7.example_fast_lstm

The network reads a sequence of numbers, some of them marked, and learns the sum of the marked ones. It is trained
twice from the same weights and the same data: with torch's LSTM, then with this stage's.
"""

import argparse
import time

import torch

from . import FastLSTM


class Adder(torch.nn.Module):
    """An LSTM over steps of (number, mark), and a linear layer on its last state."""

    def __init__(self, lstm_class, state_size):
        super().__init__()
        self.lstm = lstm_class(2, state_size)  # the line that changes
        self.head = torch.nn.Linear(state_size, 1)

    def forward(self, steps):
        """Shapes: steps (T, B, 2), result (B)."""
        _, (h, _) = self.lstm(steps)
        return self.head(h[-1]).squeeze(1)


def make_batch(T, B, generator):
    """Steps (T, B, 2), and for each row the sum of its two marked numbers (B)."""
    numbers = torch.rand(T, B, generator=generator)
    marks = torch.zeros(T, B)
    marks.scatter_(0, torch.rand(T, B, generator=generator).argsort(dim=0)[:2], 1.0)
    return torch.stack([numbers, marks], dim=2), (numbers * marks).sum(dim=0)


def train(lstm_class, *, updates=200, T=50, B=32, S=64, device="cpu"):
    """The losses of all updates, and the seconds that they took."""
    torch.manual_seed(0)
    model = Adder(lstm_class, S).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    generator = torch.Generator().manual_seed(1)
    losses = []
    start = time.perf_counter()
    for _ in range(updates):
        steps, sums = (tensor.to(device) for tensor in make_batch(T, B, generator))
        loss = torch.nn.functional.mse_loss(model(steps), sums)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, time.perf_counter() - start


def main():
    """Trains with both classes and prints the losses side by side."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    results = {}
    for lstm_class in (torch.nn.LSTM, FastLSTM):
        train(lstm_class, updates=2, device=options.device)  # the first calls take longer
        results[lstm_class.__name__] = train(lstm_class, updates=options.updates, device=options.device)
    print(f"{'update':>10}" + "".join(f"{name:>16}" for name in results))
    for update in [*range(0, options.updates, max(1, options.updates // 8)), options.updates - 1]:
        print(f"{update:>10}" + "".join(f"{losses[update]:>16.6f}" for losses, _ in results.values()))
    print(f"{'seconds':>10}" + "".join(f"{seconds:>16.2f}" for _, seconds in results.values()))


if __name__ == "__main__":
    main()
