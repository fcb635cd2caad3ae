"""What a spec leaves to the machine: the device, the precision, and so the recipe."""

import torch

from accord.training.loop import Recipe
from accord.training.spec import Member, Spec


def choose_device() -> torch.device:
    """Return a GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def recipe_for(spec: Spec, member: Member, device: torch.device) -> Recipe:
    """Return how to train one network of a spec on a device."""
    asked = spec.train.precision
    able = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return Recipe(
        epochs=spec.train.epochs,
        batch=spec.train.batch,
        optimizer=member.optimizer,
        schedule=member.schedule,
        augment=spec.train.augment,
        every=spec.record.every,
        bfloat16=asked == "bfloat16" or (asked == "auto" and able),
    )
