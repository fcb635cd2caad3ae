"""What a spec leaves to the machine: the device, the precision, the threads, and so the recipe."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch
from torch import nn

from accord.training._loop import Recipe
from accord.training._prepared_data import PreparedData
from accord.training.spec import NetworkSpec, Spec

# Multiply-adds of a step's forward pass, at most, that one thread does as well as several: on two
# cores, two gain less than a quarter, and beside another busy process take ten times as long.
SMALL_STEP: Final = 1_000_000_000
THREAD_SETTINGS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def choose_device() -> torch.device:
    """Return a GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def recipe_for(spec: Spec, member: NetworkSpec, device: torch.device) -> Recipe:
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


def count_threads(network: nn.Module, spec: Spec, material: PreparedData) -> int:
    """Return in how many threads to train a network on a CPU: in one, if its steps are small.

    Threads that share little work wait for each other, and OpenMP's do so by spinning, for
    milliseconds if another process has the core that one of them needs. It follows from the spec
    and not from a measurement, as the bits follow from it. Whoever sets OMP_NUM_THREADS decides.
    """
    asked = torch.get_num_threads()
    if any(os.environ.get(name) for name in THREAD_SETTINGS):
        return asked
    weights = sum(weight.numel() for weight in network.parameters())
    rows, columns = material.shape[1]
    # A weight is used at most once at each position of a sample.
    positions = spec.train.length if material.dataset.kind == "text" else rows * columns
    return 1 if spec.train.batch * positions * weights <= SMALL_STEP else asked


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Have torch compute in so many threads for as long as the context lives."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
