"""The same training on a GPU: close to the CPU's, and able to go on."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

from accord.data.digits import load_digits
from accord.errors import TrainingError
from accord.training.batches import ImageBatches
from accord.training.lockstep import Entrant, train_side_by_side, why_not
from accord.training.loop import Recipe, predict_probabilities, train
from accord.training.losses import CrossEntropy, build_loss
from accord.training.networks import build
from accord.training.spec import OptimizerSpec

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
]

DIGITS = load_digits()
LABELS = torch.from_numpy(DIGITS.labels[:500].astype(np.int64))


def images_on(device):
    return ImageBatches(
        DIGITS.images[:500, np.newaxis],
        device=torch.device(device),
        mean=np.zeros(1, np.float32),
        spread=np.full(1, 16, np.float32),
        augment=("shift", "flip"),
    )


def train_on(device, *, epochs=3, bfloat16=False, state=None):
    images = images_on(device)
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


def entrants(*, epochs=3, loss="cross-entropy", states=(None, None, None)):
    recipe = Recipe(
        epochs=epochs, batch=64, optimizer=OptimizerSpec(lr=0.02), augment=("shift", "flip")
    )
    return [
        Entrant(
            build("small-cnn", classes=10, channels=1, size=8, seed=seed),
            build_loss(loss, samples=500, classes=10),
            recipe,
            seed,
            state,
        )
        for seed, state in enumerate(states)
    ]


@pytest.mark.parametrize("loss", ["cross-entropy", "elr"])
def test_the_lockstep_trains_as_the_loop_does(loss):
    together = entrants(loss=loss)
    moments = list(train_side_by_side(together, images_on("cuda"), LABELS))
    assert why_not(images_on("cuda"), together) is None
    for position, alone in enumerate(entrants(loss=loss)):
        expected = list(
            train(
                alone.network,
                alone.loss,
                images_on("cuda"),
                LABELS,
                recipe=alone.recipe,
                seed=alone.seed,
            )
        )
        found = [moment for at, moment in moments if at == position]
        assert [m.loss for m in found] == pytest.approx([m.loss for m in expected], rel=1e-3)
        assert [m.number for m in found] == [m.number for m in expected]
        tables = [
            predict_probabilities(network, images_on("cuda"))
            for network in (alone.network, together[position].network)
        ]
        np.testing.assert_allclose(*tables, atol=1e-2)


def test_the_lockstep_goes_on_from_states_at_different_epochs():
    losses = {}
    kept = {}
    for at, moment in train_side_by_side(entrants(), images_on("cuda"), LABELS):
        losses[at, moment.number] = moment.loss
        if (at, moment.number) in ((0, 0), (1, 1)):
            kept[at] = copy.deepcopy(moment.state)
    again = entrants(states=(kept[0], kept[1], None))
    for at, moment in train_side_by_side(again, images_on("cuda"), LABELS):
        assert moment.loss == pytest.approx(losses[at, moment.number], rel=1e-3)


def test_a_network_that_diverges_leaves_the_lockstep_and_the_others_go_on():
    together = entrants()
    wild = dataclasses.replace(together[1].recipe, optimizer=OptimizerSpec(lr=1e30))
    together[1] = dataclasses.replace(together[1], recipe=wild)
    reached = list(train_side_by_side(together, images_on("cuda"), LABELS))
    stopped = [at for at, moment in reached if isinstance(moment, TrainingError)]
    assert stopped == [1]
    assert sum(at == 2 for at, _ in reached) == 3
