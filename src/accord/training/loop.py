"""The readable loop: one network, trained epoch by epoch, top to bottom."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional

from accord.errors import ChoiceError, PredictionError


@dataclass(frozen=True)
class Recipe:
    """How to train: stochastic gradient descent, the rate falling along a cosine."""

    epochs: int = 40
    batch: int = 64
    lr: float = 0.02  # in the first epoch; a half cosine takes it towards 0
    momentum: float = 0.9
    weight_decay: float = 0.0
    shift: int = 1  # pixels by which a training image may move, each way

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.shift < 0:
            raise ChoiceError(
                "a recipe needs at least 1 epoch, a batch of at least 1 and a shift of at least 0; "
                f"got epochs={self.epochs}, batch={self.batch}, shift={self.shift}."
            )


@dataclass(frozen=True)
class EpochReport:
    """What one epoch of training was like."""

    epoch: int
    loss: float  # mean over the training samples, as they passed
    lr: float


def train(
    network: nn.Module, images: ArrayLike, labels: ArrayLike, *, recipe: Recipe, seed: int
) -> Iterator[EpochReport]:
    """Train the network, stopping after each epoch so that the caller can record it.

    The network is changed in place; nothing happens until the first epoch is
    asked for. Order and shifts follow from the seed alone, and the global
    random states of torch and numpy are neither read nor changed.

    Args:
        network: takes (sample, channel, row, column), gives logits (sample, class).
        images: (sample, channel, row, column), on the scale the network is to see.
        labels: the given labels, (sample,).
        recipe: how to train.
        seed: on one machine and number of threads, the same seed from the same
            weights gives the same bits.

    Yields:
        A report after each epoch.

    Raises:
        PredictionError: images and labels do not match.

    >>> from accord.training.networks import build_small_cnn
    >>> network = build_small_cnn(classes=2, seed=0)
    >>> images, labels = np.zeros((4, 1, 8, 8)), [0, 1, 0, 1]
    >>> for report in train(network, images, labels, recipe=Recipe(epochs=2), seed=0):
    ...     print(report.epoch, report.lr, predict_probabilities(network, images).shape)
    0 0.02 (4, 2)
    1 0.01 (4, 2)
    """
    all_images = torch.tensor(np.asarray(images), dtype=torch.float32)
    all_labels = torch.tensor(np.asarray(labels), dtype=torch.int64)
    _check_samples(all_images, all_labels)
    samples = len(all_labels)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=recipe.lr,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
    )

    for epoch in range(recipe.epochs):
        lr = recipe.lr * (1 + math.cos(math.pi * epoch / recipe.epochs)) / 2
        for group in optimizer.param_groups:
            group["lr"] = lr

        network.train()
        total_loss = 0.0
        for chosen in torch.split(torch.randperm(samples, generator=generator), recipe.batch):
            batch = shift_randomly(all_images[chosen], pixels=recipe.shift, generator=generator)
            loss = functional.cross_entropy(network(batch), all_labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss.item() * len(chosen)

        yield EpochReport(epoch=epoch, loss=total_loss / samples, lr=lr)


def predict_probabilities(
    network: nn.Module, images: ArrayLike, *, batch: int = 1024
) -> NDArray[np.float32]:
    """Predict the probability of each class for each image, (sample, class).

    The network answers in evaluation mode and is left exactly as it was.
    """
    all_images = torch.tensor(np.asarray(images), dtype=torch.float32)
    with _evaluating(network), torch.inference_mode():
        logits = torch.cat([network(part) for part in torch.split(all_images, batch)])
        probabilities: NDArray[np.float32] = logits.softmax(dim=1).numpy()
    return probabilities


def shift_randomly(images: Tensor, *, pixels: int, generator: torch.Generator) -> Tensor:
    """Move each image by up to `pixels` each way, every shift with equal chance.

    The generator must live on the device of the images.
    """
    size = len(images), 2
    moves = torch.randint(-pixels, pixels + 1, size, generator=generator, device=images.device)
    return shift_images(images, moves, pixels=pixels)


def shift_images(images: Tensor, moves: Tensor, *, pixels: int) -> Tensor:
    """Move each image down and to the right by its own two numbers of pixels.

    What leaves the image is lost; what comes in is zero.

    Args:
        images: (sample, channel, row, column).
        moves: (sample, 2), whole numbers in -pixels..pixels.
        pixels: the furthest move there may be.

    >>> image = torch.tensor([[[[1, 2], [3, 4]]]])
    >>> shift_images(image, torch.tensor([[0, 1]]), pixels=1)
    tensor([[[[0, 1],
              [0, 3]]]])
    """
    rows, columns = images.shape[2:]
    padded = functional.pad(images, [pixels] * 4)
    # Every window of the image's size, as a view: (sample, channel, top, left, row, column).
    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)
    # Moving the content down means looking at it through a window further up.
    top, left = (pixels - moves).unbind(dim=1)
    return windows[torch.arange(len(images), device=images.device), :, top, left]


@contextmanager
def _evaluating(network: nn.Module) -> Iterator[None]:
    # Module by module: a caller may have frozen one batch norm and not the others.
    in_training = [module for module in network.modules() if module.training]
    network.eval()
    try:
        yield
    finally:
        for module in in_training:
            module.training = True


def _check_samples(images: Tensor, labels: Tensor) -> None:
    if images.ndim != 4 or labels.shape != images.shape[:1] or not len(labels):
        raise PredictionError(
            "images must be (sample, channel, row, column) with one label per sample; "
            f"got images {tuple(images.shape)} and labels {tuple(labels.shape)}. "
            "Is the channel axis missing?"
        )
