"""Ask a torch network in the middle of its training and leave no trace."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn


@contextmanager
def undisturbed(network: nn.Module, loader: object = None) -> Iterator[None]:
    """Evaluate within this, and training goes on as if nothing had been.

    Kept: the mode of every module, gradients, and the random states of Python, numpy and torch,
    on the CPU, on the network's CUDA devices and in the loader's own generators. Autocast stays
    as it is.
    """
    with (
        _modes_kept(network),
        _randomness_kept(_devices(network), _generators(loader)),
        _autocast_cache_unused(),
        # Not inference_mode: what a network computes once and keeps, such as a table of
        # positions, could then never take part in training.
        torch.no_grad(),
    ):
        yield


@contextmanager
def _modes_kept(network: nn.Module) -> Iterator[None]:
    # Module by module: a caller may have frozen one batch norm and not the others. And by the
    # network's own `train`, since some swap weights there.
    modes = [(module, module.training) for module in network.modules()]
    in_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(in_training)
        for module, mode in modes:
            module.training = mode


@contextmanager
def _randomness_kept(
    devices: set[torch.device], generators: list[torch.Generator]
) -> Iterator[None]:
    python, legacy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    gpus = [(device, torch.cuda.get_rng_state(device)) for device in devices]
    own = [(generator, generator.get_state()) for generator in generators]
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        torch.set_rng_state(cpu)
        for device, state in gpus:
            torch.cuda.set_rng_state(state, device)
        for generator, state in own:
            generator.set_state(state)


@contextmanager
def _autocast_cache_unused() -> Iterator[None]:
    # Inside a caller's autocast, weights that are cast here would be kept for training without
    # the way back to their gradients; so it is with older torch (2.13 sees to it itself).
    enabled = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(enabled)


def _devices(network: nn.Module) -> set[torch.device]:
    return {tensor.device for tensor in network.parameters() if tensor.device.type == "cuda"}


def _generators(loader: Any) -> list[torch.Generator]:
    owners = (loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None))
    found = (getattr(owner, "generator", None) for owner in owners)
    return [generator for generator in found if isinstance(generator, torch.Generator)]
