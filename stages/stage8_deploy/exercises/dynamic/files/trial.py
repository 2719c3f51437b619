"""What `make check` calls. Do not change this file; edit export.py."""

import torch
from torch.export import ExportedProgram

from .classifier import RunningClassifier
from .export import export_classifier


def trial(sizes, parameters, calls, training):
    """For each call, the results of the exported program or the first line of its error.

    A text instead, if there is no exported program: the reason. The model is in training mode if `training` is set.
    """
    model = RunningClassifier(*sizes).train(training)
    model.load_state_dict(parameters)
    try:
        program = export_classifier(model)
    except Exception as error:
        return "\n".join(str(error).strip().splitlines()[:2])
    if not isinstance(program, ExportedProgram):
        return f"it returns {type(program).__name__}, expected an ExportedProgram of torch.export.export"
    if any(part.training != training for part in model.modules()):
        return f"it changes the model: afterwards model.training is {model.training}, and was {training}"
    frozen = [name for name, one in model.named_parameters() if not one.requires_grad]
    if frozen:
        return f"it changes the model: afterwards {frozen[0]} has requires_grad=False, and training cannot go on"
    return [run(program.module(), arguments) for arguments in calls]


@torch.no_grad()
def run(module, arguments):
    """The results of a call, or the first line of its error."""
    try:
        return list(module(*arguments))
    except Exception as error:
        return str(error).strip().partition("\n")[0]
