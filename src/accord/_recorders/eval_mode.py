"""Context manager for evaluating torch networks."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn


@contextmanager
def eval_mode(network: nn.Module, loader: object = None) -> Iterator[None]:
    """Context manager that sets a network to evaluation mode.

    Restored on exit: the mode of every module, gradients, and the random states of Python, numpy
    and torch, on the CPU, on the network's CUDA devices and in the loader's generators. Autocast
    is unchanged.
    """
    with (
        _restore_modes(network),
        _restore_randomness(network, loader),
        _without_autocast_cache(),
        # Not inference_mode: tensors that a network computes once and caches, such as a table of
        # positions, could then never take part in training.
        torch.no_grad(),
    ):
        yield


@contextmanager
def _restore_modes(network: nn.Module) -> Iterator[None]:
    # Module by module, since a caller may have frozen one batch norm and not the others; and by
    # the network's own `train`, since some networks swap weights there.
    modes = [(module, module.training) for module in network.modules()]
    training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(training)
        for module, mode in modes:
            module.training = mode


@contextmanager
def _restore_randomness(network: nn.Module, loader: Any) -> Iterator[None]:
    devices = {tensor.device for tensor in network.parameters() if tensor.device.type == "cuda"}
    owners = (loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None))
    found = [getattr(owner, "generator", None) for owner in owners]
    generators = [one for one in found if isinstance(one, torch.Generator)]
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
def _without_autocast_cache() -> Iterator[None]:
    # Inside a caller's autocast, older torch would cache weights that are cast here, without a
    # graph, and training would then use them without gradients (2.13 handles this itself).
    enabled = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(enabled)
