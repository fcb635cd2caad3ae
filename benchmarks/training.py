"""Time the lockstep against a plain PyTorch loop on one GPU, as docs/benchmarks.md shows it.

python benchmarks/training.py --network resnet18 --batches 32,128,512

Both sides train on random images of CIFAR-10's form with crop and flip and evaluate 10,000 test
images after every epoch. The peer is what PyTorch gives without further thought: one network at a
time, float32 with its defaults, and a DataLoader with workers that augments on the CPU.
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

from accord.training._batches import ImageBatches
from accord.training._lockstep import LockstepNetwork, train_lockstep
from accord.training._loop import Recipe, predict_probabilities
from accord.training._losses import CrossEntropy
from accord.training.networks import build
from accord.training.spec import OptimizerSpec

MEAN, SPREAD = np.full(3, 125, np.float32), np.full(3, 64, np.float32)
SGD = OptimizerSpec(lr=0.02, nesterov=True)
WARM_UP = 30  # batches before the peer is timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="resnet18")
    parser.add_argument("--batches", default="32,128,512")
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    asked = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, labels = draw_images(asked.samples + asked.tests)
    peak = measure_peak(device)
    print(json.dumps({"device": name_of(device), "torch": torch.__version__, "bf16": peak}))
    for batch in map(int, asked.batches.split(",")):
        peer = time_plain_loop(asked, batch, images, labels, device)
        ours = time_lockstep(asked, batch, images, labels, device)
        share = count_operations(asked.network) * 50_000 / (ours["seconds"] * peak)
        found = {"network": asked.network, "batch": batch, "plain": peer, **ours, "share": share}
        print(json.dumps({**found, "ratio": peer / ours["seconds"]}), flush=True)


def draw_images(count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
    return images, generator.integers(0, 10, count)


class Augmented(Dataset[tuple[torch.Tensor, int]]):
    """Images as a plain script serves them: one by one, augmented on the CPU."""

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
    asked: argparse.Namespace,
    batch: int,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    device: torch.device,
) -> float:
    """Return seconds per 50,000 images of training, with one evaluation."""
    shared: dict[str, Any] = {
        "num_workers": asked.workers,
        "pin_memory": device.type == "cuda",
        "persistent_workers": asked.workers > 0,
    }
    train = Augmented(images[: asked.samples], labels[: asked.samples], training=True)
    test = Augmented(images[asked.samples :], labels[asked.samples :], training=False)
    loader = DataLoader(train, batch_size=batch, shuffle=True, **shared)
    evaluation = DataLoader(test, batch_size=1000, **shared)
    network = build(asked.network, classes=10, channels=3, size=32, seed=0)
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
            said = [network(inputs.to(device)).argmax(1).cpu() for inputs, _ in evaluation]
        return torch.cat(said).numpy()

    train_on(iter(loader), WARM_UP)
    predict()
    synchronize(device)
    start = time.perf_counter()
    train_on(iter(loader))
    trained = time.perf_counter()
    predict()
    synchronize(device)
    training, evaluating = trained - start, time.perf_counter() - trained
    return training * (50_000 / int(asked.samples)) + evaluating


def time_lockstep(
    asked: argparse.Namespace,
    batch: int,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    device: torch.device,
) -> dict[str, float]:
    """Time the epochs after the first; what the first takes longer is set-up."""
    statistics = {"device": device, "mean": MEAN, "spread": SPREAD}
    augment = ("crop", "flip")
    train = ImageBatches(images[: asked.samples], augment=augment, **statistics)  # type: ignore[arg-type]
    test = ImageBatches(images[asked.samples :], **statistics)  # type: ignore[arg-type]
    recipe = Recipe(
        asked.epochs, batch=batch, optimizer=SGD, augment=augment, bfloat16=device.type == "cuda"
    )
    entrants = [
        LockstepNetwork(
            build(asked.network, classes=10, channels=3, size=32, seed=seed),
            CrossEntropy(),
            recipe,
            seed,
        )
        for seed in range(asked.networks)
    ]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    ends, evaluating, start = [], 0.0, time.perf_counter()
    given = torch.from_numpy(labels[: asked.samples])
    for position, _ in train_lockstep(entrants, train, given):
        before = time.perf_counter()
        predict_probabilities(entrants[position].network, test, bfloat16=recipe.bfloat16)
        evaluating += time.perf_counter() - before
        if position == asked.networks - 1:
            ends.append(time.perf_counter())
    evaluating /= asked.epochs * asked.networks
    epoch = (ends[-1] - ends[0]) / (asked.epochs - 1) / asked.networks
    seconds = (epoch - evaluating) * 50_000 / asked.samples + evaluating
    return {
        "seconds": seconds,
        "evaluation": evaluating,
        "setup": ends[0] - start - epoch * asked.networks,
        "memory": torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else 0.0,
    }


def measure_peak(device: torch.device) -> float:
    """Return the bf16 matrix product's operations per second."""
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
