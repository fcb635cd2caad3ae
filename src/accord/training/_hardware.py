"""Choose the device, precision, and number of threads and processes for training."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import torch
from torch import nn

from accord.training._prepared_data import PreparedData
from accord.training._spec import Spec

# Up to this many multiply-adds in the forward pass of a step, one thread trains as fast as
# several: on two cores, the second gains less than a quarter, and beside another busy process
# two threads take ten times as long as one.
SMALL_STEP: Final = 1_000_000_000
THREAD_SETTINGS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")

# Measured on one core of a server for perceptrons, small convolutional and residual networks: a
# step takes a millisecond and 0.05 ns for each multiply-add, within a factor of three. An estimate
# is enough: it decides how long training takes, never which labels it gives.
STEP_SECONDS: Final = 1e-3
MULTIPLY_ADD_SECONDS: Final = 5e-11
WORKERS_PAY_SECONDS: Final = 20.0  # a worker takes about 5 s to import torch and read the data


def choose_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def uses_bfloat16(spec: Spec, device: torch.device) -> bool:
    if spec.train.precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return spec.train.precision == "bfloat16"


def count_threads(network: nn.Module, spec: Spec, data: PreparedData) -> int:
    """Choose the number of threads for training a network on a CPU.

    Threads that share little work wait for each other, and OpenMP's wait by spinning. The number
    follows from the spec, not from a measurement, because the bits of the weights follow from it.
    OMP_NUM_THREADS overrides it.
    """
    available = torch.get_num_threads()
    if threads_are_set():
        return available
    return 1 if multiply_adds(network, spec, data) <= SMALL_STEP else available


def threads_are_set() -> bool:
    return any(os.environ.get(name) for name in THREAD_SETTINGS)


def multiply_adds(network: nn.Module, spec: Spec, data: PreparedData) -> int:
    """Compute an upper bound on the multiply-adds in the forward pass of a step."""
    weights = sum(weight.numel() for weight in network.parameters())
    rows, columns = data.shape[1]
    # A weight is used at most once at each position of a sample.
    positions = spec.train.length if data.dataset.kind == "text" else rows * columns
    return spec.train.batch * positions * weights


def count_processes(
    sizes: Sequence[int],  # multiply-adds of each network
    spec: Spec,
    data: PreparedData,
) -> int:
    """Choose the number of processes for training networks on a CPU.

    One, unless every network trains in one thread and all of them together take long enough to
    pay for the start of worker processes.
    """
    available = torch.get_num_threads()
    if available == 1 or len(sizes) < 2 or threads_are_set() or max(sizes) > SMALL_STEP:
        return 1
    steps = spec.train.epochs * -(-len(data.splits["train"]) // spec.train.batch)
    seconds = sum(steps * (STEP_SECONDS + MULTIPLY_ADD_SECONDS * size) for size in sizes)
    return min(available, len(sizes)) if seconds >= WORKERS_PAY_SECONDS else 1


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
