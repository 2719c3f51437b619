"""Writes a model as a package that a program without Python can run.

With stage 7 installed: python -m lltm_stage8.export FOLDER [cuda]
"""

import hashlib
import shutil
import sys
from pathlib import Path

import torch
from torch.export import Dim

from .model import SequenceClassifier

FORMAT = "1"  # of the metadata; package.cpp reads this one
PACKAGE, OPERATORS, WEIGHTS = "model.pt2", "lltm_operators.so", "weights.pt"
CHECKSUMS = "SHA256SUMS"  # in the format of the command sha256sum
MAX_BATCH, MAX_LENGTH = 64, 1024


def export_model(model: SequenceClassifier, operators: Path, folder: Path) -> Path:
    """Writes the package, the library of its operators, and the weights for Python; returns the package's path.

    The package is for the kind of device that the model is on, CPUs or CUDA GPUs. `operators` is the library that
    Python imported for `lltm_sequence`. A program that runs the package loads it. The checksums of all files are
    written beside them; the program compares them before it loads a file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(operators, folder / OPERATORS)
    torch.save(model.state_dict(), folder / WEIGHTS)
    program = torch.export.export(model, example_inputs(model), dynamic_shapes=dynamic_shapes())
    torch._inductor.aoti_compile_and_package(
        program,
        package_path=str(folder / PACKAGE),
        inductor_configs={"aot_inductor.metadata": metadata(model)},
    )
    write_checksums(folder)
    return folder / PACKAGE


def write_checksums(folder: Path) -> None:
    """Writes the checksum of each file of a package. Call it again after you have replaced one of them."""
    hashes = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (PACKAGE, OPERATORS, WEIGHTS)
    }
    (folder / CHECKSUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in hashes.items()))


def example_inputs(model: SequenceClassifier) -> tuple[torch.Tensor, ...]:
    """Any sizes but 0 and 1, which torch.export would take for constants."""
    B, T = 2, 3
    steps, lengths = model.bias.new_zeros(B, T, model.features.in_features), model.bias.new_tensor([T, T]).long()
    return steps, lengths, *model.first_state(B)


def dynamic_shapes() -> tuple[dict, ...]:
    """The dimensions that may differ from those of the example: batch and length."""
    batch, length = Dim("batch", max=MAX_BATCH), Dim("length", max=MAX_LENGTH)
    return {0: batch, 1: length}, {0: batch}, {0: batch}, {0: batch}


def metadata(model: SequenceClassifier) -> dict[str, str]:
    """What the program must know, and AOTInductor does not write. The program refuses what does not fit it."""
    return {
        "format": FORMAT,
        "torch": torch.__version__.partition("+")[0],
        "operators": OPERATORS,
        "features": str(model.features.in_features),
        "state_size": str(model.head.in_features),
        "classes": str(model.head.out_features),
        "max_batch": str(MAX_BATCH),
        "max_length": str(MAX_LENGTH),
    }


def main(folder: str, device: str = "cpu") -> None:
    """Trains a model on the CPU and exports it for a device."""
    import lltm_stage7
    import lltm_stage7._C

    from .train import measure_accuracy, train_model

    model = train_model(lltm_stage7.lltm_sequence)
    print(f"accuracy on the test images: {measure_accuracy(model):.1%}")
    print(export_model(model.to(device), Path(lltm_stage7._C.__file__), Path(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
