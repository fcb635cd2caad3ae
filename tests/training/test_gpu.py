"""The same training on a GPU: close to the CPU's, and able to go on."""

import numpy as np
import pytest
import torch

from accord.data.digits import load_digits
from accord.training.batches import ImageBatches
from accord.training.loop import Recipe, predict_probabilities, train
from accord.training.losses import CrossEntropy
from accord.training.networks import build
from accord.training.spec import OptimizerSpec

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
]

DIGITS = load_digits()
LABELS = torch.from_numpy(DIGITS.labels[:500].astype(np.int64))


def train_on(device, *, epochs=3, bfloat16=False, state=None):
    images = ImageBatches(
        DIGITS.images[:500, np.newaxis],
        device=torch.device(device),
        mean=np.zeros(1, np.float32),
        spread=np.full(1, 16, np.float32),
        augment=("shift", "flip"),
    )
    network = build("small-cnn", classes=10, channels=1, size=8, seed=0)
    recipe = Recipe(
        epochs=epochs,
        batch=64,
        optimizer=OptimizerSpec(lr=0.02),
        augment=("shift", "flip"),
        bfloat16=bfloat16,
    )
    moments = list(
        train(network, CrossEntropy(), images, LABELS, recipe=recipe, seed=1, state=state)
    )
    return moments, predict_probabilities(network, images)


def test_a_gpu_sees_the_same_batches_as_the_cpu():
    (on_cpu, cpu_table), (on_gpu, gpu_table) = train_on("cpu"), train_on("cuda")
    assert [m.loss for m in on_gpu] == pytest.approx([m.loss for m in on_cpu], rel=2e-2)
    assert np.abs(cpu_table - gpu_table).max() < 0.1


def test_bfloat16_learns_as_well():
    full, _ = train_on("cuda", epochs=6)
    half, _ = train_on("cuda", epochs=6, bfloat16=True)
    assert half[-1].loss < half[0].loss
    assert half[-1].loss == pytest.approx(full[-1].loss, rel=0.05)


def test_a_gpu_goes_on_from_a_state():
    moments, _ = train_on("cuda", epochs=3)
    first, _ = train_on("cuda", epochs=3)
    rest, _ = train_on("cuda", epochs=3, state=first[1].state)
    assert [moment.number for moment in rest] == [2]
    assert rest[0].loss == pytest.approx(moments[2].loss, rel=0.2)
