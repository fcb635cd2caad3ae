"""Time lockstep training against a plain PyTorch loop on one GPU.

python benchmarks/training.py --network resnet18 --batches 32,128,512

Both train on random images of CIFAR-10's shape with crop and flip, and evaluate 10,000 test images
after every epoch. The plain loop trains one network at a time, in float32 with PyTorch's defaults,
and augments on the CPU in the workers of a DataLoader.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.flop_counter import FlopCounterMode

from accord.training import OptimizerSpec
from accord.training._batches import ImageBatches
from accord.training._lockstep import LockstepNetwork, train_lockstep
from accord.training._loop import Recipe, predict_probabilities
from accord.training._losses import CrossEntropy
from accord.training.networks import build

MEAN, SPREAD = np.full(3, 125, np.float32), np.full(3, 64, np.float32)
SGD = OptimizerSpec(lr=0.02, nesterov=True)
WARM_UP = 30  # batches before the plain loop is timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="resnet18")
    parser.add_argument("--batches", default="32,128,512")
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, labels = draw_images(options.samples + options.tests)
    peak = measure_peak(device)
    print(json.dumps({"device": name_of(device), "torch": torch.__version__, "bf16": peak}))
    for batch in map(int, options.batches.split(",")):
        peer = time_plain_loop(options, batch, images, labels, device)
        ours = time_lockstep(options, batch, images, labels, device)
        share = count_operations(options.network) * 50_000 / (ours["seconds"] * peak)
        found = {"network": options.network, "batch": batch, "plain": peer, **ours, "share": share}
        print(json.dumps({**found, "ratio": peer / ours["seconds"]}), flush=True)


def draw_images(count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
    return images, generator.integers(0, 10, count)


class Augmented(Dataset[tuple[torch.Tensor, int]]):
    """Images one by one, augmented on the CPU."""

    def __init__(
        self, images: NDArray[np.uint8], labels: NDArray[np.int64], *, training: bool
    ) -> None:
        self._images, self._labels, self._training = images, labels, training

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self._images[index]
        if self._training:
            padded = np.pad(image, ((0, 0), (4, 4), (4, 4)))
            top, left = torch.randint(0, 9, (2,)).tolist()
            image = padded[:, top : top + 32, left : left + 32]
            if torch.rand(()) < 0.5:
                image = image[:, :, ::-1]
        scaled = (image - MEAN[:, None, None]) / SPREAD[:, None, None]
        return torch.from_numpy(scaled), int(self._labels[index])


def time_plain_loop(
    options: argparse.Namespace,
    batch: int,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    device: torch.device,
) -> float:
    """Return the seconds per 50,000 training images, with one evaluation."""
    shared: dict[str, Any] = {
        "num_workers": options.workers,
        "pin_memory": device.type == "cuda",
        "persistent_workers": options.workers > 0,
    }
    train = Augmented(images[: options.samples], labels[: options.samples], training=True)
    test = Augmented(images[options.samples :], labels[options.samples :], training=False)
    loader = DataLoader(train, batch_size=batch, shuffle=True, **shared)
    evaluation = DataLoader(test, batch_size=1000, **shared)
    network = build(options.network, classes=10, channels=3, size=32, seed=0)
    network.to(device, memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(
        network.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    criterion = nn.CrossEntropyLoss()

    def train_on(batches: Iterator[Any], most: int | None = None) -> None:
        network.train()
        for step, (inputs, given) in enumerate(batches):
            if step == most:
                break
            inputs, given = inputs.to(device), given.to(device)
            optimizer.zero_grad()
            criterion(network(inputs), given).backward()
            optimizer.step()

    def predict() -> NDArray[np.int64]:
        network.eval()
        with torch.no_grad():
            predicted = [network(inputs.to(device)).argmax(1).cpu() for inputs, _ in evaluation]
        return torch.cat(predicted).numpy()

    train_on(iter(loader), WARM_UP)
    predict()
    synchronize(device)
    start = time.perf_counter()
    train_on(iter(loader))
    trained = time.perf_counter()
    predict()
    synchronize(device)
    training, evaluating = trained - start, time.perf_counter() - trained
    return training * (50_000 / int(options.samples)) + evaluating


def time_lockstep(
    options: argparse.Namespace,
    batch: int,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    device: torch.device,
) -> dict[str, float]:
    """Time the epochs after the first; the additional time of the first is set-up."""
    statistics = {"device": device, "mean": MEAN, "spread": SPREAD}
    augment = ("crop", "flip")
    train = ImageBatches(images[: options.samples], augment=augment, **statistics)  # type: ignore[arg-type]
    test = ImageBatches(images[options.samples :], **statistics)  # type: ignore[arg-type]
    recipe = Recipe(
        options.epochs, batch=batch, optimizer=SGD, augment=augment, bfloat16=device.type == "cuda"
    )
    networks = [
        LockstepNetwork(
            build(options.network, classes=10, channels=3, size=32, seed=seed),
            CrossEntropy(),
            recipe,
            seed,
        )
        for seed in range(options.networks)
    ]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    ends, evaluating, start = [], 0.0, time.perf_counter()
    given = torch.from_numpy(labels[: options.samples])
    for position, _ in train_lockstep(networks, train, given):
        before = time.perf_counter()
        predict_probabilities(networks[position].network, test, bfloat16=recipe.bfloat16)
        evaluating += time.perf_counter() - before
        if position == options.networks - 1:
            ends.append(time.perf_counter())
    evaluating /= options.epochs * options.networks
    epoch = (ends[-1] - ends[0]) / (options.epochs - 1) / options.networks
    seconds = (epoch - evaluating) * 50_000 / options.samples + evaluating
    return {
        "seconds": seconds,
        "evaluation": evaluating,
        "setup": ends[0] - start - epoch * options.networks,
        "memory": torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else 0.0,
    }


def measure_peak(device: torch.device) -> float:
    """Return the operations per second of a bf16 matrix product."""
    size = 8192 if device.type == "cuda" else 512
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        a @ b
    synchronize(device)
    start = time.perf_counter()
    for _ in range(20):
        a @ b
    synchronize(device)
    return 20 * 2 * float(size) ** 3 / (time.perf_counter() - start)


def count_operations(network: str) -> float:
    """Return the operations of one training step per image: three times the forward pass."""
    built = build(network, classes=10, channels=3, size=32, seed=0).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        built(torch.zeros(1, 3, 32, 32))
    return 3.0 * float(counter.get_total_flops())


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def name_of(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name()
    return f"{os.cpu_count()} cores"


if __name__ == "__main__":
    main()
