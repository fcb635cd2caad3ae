"""Train a ResNet-18 on CIFAR-10 with wrong labels and record it: a plain loop for one GPU.

Start it once per network, one after the other or in parallel, on one GPU or several:

    for network in 0 1 2 3 4; do
        python examples/cifar10.py data/cifar-10-batches-bin runs/sym40 --network $network &
    done; wait
    accord score runs/sym40
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

import accord
from accord.data.noise import symmetric_noise
from accord.training.networks import ResNet18

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def read_batches(folder: Path, pattern: str) -> tuple[torch.Tensor, NDArray[np.uint8]]:
    files = sorted(folder.glob(pattern))
    rows = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])
    pixels = torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32)).to(DEVICE)
    mean = torch.tensor([0.4914, 0.4822, 0.4465], device=DEVICE).view(3, 1, 1)
    spread = torch.tensor([0.2023, 0.1994, 0.2010], device=DEVICE).view(3, 1, 1)
    return (pixels / 255 - mean) / spread, rows[:, 0]


def augment(batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    flip = torch.rand(len(batch), 1, 1, 1, generator=generator, device=DEVICE) < 0.5
    batch = torch.where(flip, batch.flip(3), batch)
    # Crop at random after padding by 4 pixels: the rows and columns of each sample.
    corners = torch.randint(0, 9, (2, len(batch), 1), generator=generator, device=DEVICE)
    rows, columns = corners + torch.arange(32, device=DEVICE)
    samples = torch.arange(len(batch), device=DEVICE)[:, None, None]
    padded = functional.pad(batch, [4] * 4)
    return padded[samples, :, rows[:, :, None], columns[:, None]].movedim(-1, 1)


@torch.inference_mode()
def predict(network: torch.nn.Module, images: torch.Tensor) -> NDArray[np.int64]:
    network.eval()
    with torch.autocast(DEVICE, torch.bfloat16):
        parts = [network(part).argmax(dim=1) for part in images.split(2000)]
    labels: NDArray[np.int64] = torch.cat(parts).cpu().numpy()
    return labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder cifar-10-batches-bin")
    parser.add_argument("record", help="path of the record")
    parser.add_argument("--network", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=75)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--noise", type=float, default=0.4)
    parser.add_argument("--width", type=int, default=64)
    options = parser.parse_args()

    images, clean = read_batches(options.data, "data_batch_*.bin")
    test_images, truth = read_batches(options.data, "test_batch.bin")
    noisy = symmetric_noise(clean, rate=options.noise, classes=10, seed=0)
    given = torch.from_numpy(noisy.astype(np.int64)).to(DEVICE)

    torch.manual_seed(options.network)
    generator = torch.Generator(DEVICE).manual_seed(options.network)
    network = ResNet18(classes=10, width=options.width).to(DEVICE)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(
        network.parameters(), lr=options.lr, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    metadata = {
        "data": "cifar10",
        "noise": {"kind": "symmetric", "rate": options.noise, "seed": 0},
        "architecture": {"kind": "resnet18", "width": options.width},
        "epochs": options.epochs,
        "batch": options.batch,
        "lr": options.lr,
        "seed": options.network,
    }

    with accord.Recorder(
        options.record,
        network=options.network,
        samples=len(truth),
        classes=10,
        truth=truth,
        class_names=NAMES,
        metadata=metadata,
    ) as recorder:
        for epoch in range(options.epochs):
            cosine = (1 + math.cos(math.pi * epoch / options.epochs)) / 2
            optimizer.param_groups[0]["lr"] = options.lr * cosine
            network.train()
            total = torch.zeros((), device=DEVICE)
            order = torch.randperm(len(images), generator=generator, device=DEVICE)
            for chosen in order.split(options.batch):
                batch = augment(images[chosen], generator)
                with torch.autocast(DEVICE, torch.bfloat16):
                    loss = functional.cross_entropy(network(batch), given[chosen])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach() * len(chosen)
            # There are no checkpoints: a restarted script trains again and records missing epochs.
            if epoch >= recorder.epochs:
                recorder.record(predict(network, test_images), loss=total.item() / len(images))


if __name__ == "__main__":
    main()
