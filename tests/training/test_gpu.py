"""The same training on a GPU: close to the CPU's, and able to go on."""

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import accord
from accord.data.readers.digits import load_digits
from accord.errors import NotCapturable, TrainingError
from accord.training import OptimizerSpec, parse_spec, train
from accord.training._batches import ImageBatches, TableBatches
from accord.training._lockstep import LockstepNetwork, lockstep_obstacle, train_lockstep
from accord.training._loop import Recipe, predict_probabilities, train_loop
from accord.training._losses import CrossEntropy, build_loss
from accord.training.networks import build, to_batch_ensemble

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),  # its compiler's own
]

DIGITS = load_digits()
LABELS = torch.from_numpy(DIGITS.labels[:500].astype(np.int64))


def images_on(device, *, augment=("shift", "flip")):
    return ImageBatches(
        DIGITS.images[:500, np.newaxis],
        device=torch.device(device),
        mean=np.zeros(1, np.float32),
        spread=np.full(1, 16, np.float32),
        augment=augment,
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
    results = list(
        train_loop(network, CrossEntropy(), images, LABELS, recipe=recipe, seed=1, state=state)
    )
    return results, predict_probabilities(network, images)


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
    results, _ = train_on("cuda", epochs=3)
    first, _ = train_on("cuda", epochs=3)
    rest, _ = train_on("cuda", epochs=3, state=first[1].state)
    assert [moment.index for moment in rest] == [2]
    assert rest[0].loss == pytest.approx(results[2].loss, rel=0.2)


def entrants(*, epochs=3, loss="cross-entropy", states=(None, None, None), **changes):
    recipe = Recipe(
        **{
            "epochs": epochs,
            "batch": 64,
            "optimizer": OptimizerSpec(lr=0.02),
            "augment": ("shift", "flip"),
            **changes,
        }
    )
    return [
        LockstepNetwork(
            build("small-cnn", classes=10, channels=1, size=8, seed=seed),
            build_loss(loss, samples=500, classes=10),
            recipe,
            seed,
            state,
        )
        for seed, state in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("changes", "compiled"),
    [
        ({}, "never"),
        ({"loss": "elr"}, "never"),
        ({"optimizer": OptimizerSpec(kind="adamw", lr=1e-3)}, "never"),
        ({"every": 0.5}, "never"),
        ({"every": 2.0}, "never"),
        ({"augment": ("resized-crop",)}, "never"),
        ({}, "always"),
        ({"loss": "elr"}, "always"),
    ],
)
def test_the_lockstep_trains_as_the_loop_does(monkeypatch, changes, compiled):
    monkeypatch.setenv("ACCORD_COMPILE", compiled)
    together = entrants(**changes)
    images = images_on("cuda", augment=together[0].recipe.augment)
    results = list(train_lockstep(together, images, LABELS))
    assert lockstep_obstacle(images) is None
    for position, alone in enumerate(entrants(**changes)):
        expected = list(
            train_loop(
                alone.network,
                alone.loss,
                images,
                LABELS,
                recipe=alone.recipe,
                seed=alone.seed,
            )
        )
        found = [moment for at, moment in results if at == position]
        assert [m.loss for m in found] == pytest.approx([m.loss for m in expected], rel=1e-2)
        assert [m.index for m in found] == [m.index for m in expected]
        assert [m.progress for m in found] == [m.progress for m in expected]
        assert [m.lr for m in found] == pytest.approx([m.lr for m in expected])
        assert [m.state is None for m in found] == [m.state is None for m in expected]
        tables = [
            predict_probabilities(network, images)
            for network in (alone.network, together[position].network)
        ]
        np.testing.assert_allclose(*tables, atol=3e-2)


@pytest.mark.parametrize("compiled", ["never", "always"])
def test_a_network_alone_and_one_of_members_go_through_graphs_too(monkeypatch, compiled):
    monkeypatch.setenv("ACCORD_COMPILE", compiled)
    images = images_on("cuda")

    def enter():
        (plain,) = entrants(states=(None,))
        members = to_batch_ensemble(plain.network, members=3, seed=0)
        return plain, dataclasses.replace(plain, network=members)

    for by_graph, alone in zip(enter(), enter(), strict=True):
        found = [moment.loss for _, moment in train_lockstep([by_graph], images, LABELS)]
        expected = train_loop(
            alone.network, alone.loss, images, LABELS, recipe=alone.recipe, seed=alone.seed
        )
        assert found == pytest.approx([moment.loss for moment in expected], rel=1e-2)


def test_rows_of_numbers_train_in_lockstep_too():
    rows = DIGITS.images[:500].reshape(500, 64).astype(np.float32)
    scale = {"mean": np.zeros(64, np.float32), "spread": np.full(64, 16, np.float32)}
    table = TableBatches(rows, device=torch.device("cuda"), **scale)
    recipe = Recipe(epochs=3, batch=64, optimizer=OptimizerSpec(lr=0.02))

    def enter(seed):
        network = build("mlp", classes=10, channels=64, size=1, seed=seed)
        return LockstepNetwork(network, CrossEntropy(), recipe, seed)

    together = [enter(0), enter(1)]
    losses = [moment.loss for at, moment in train_lockstep(together, table, LABELS) if at == 1]
    alone = enter(1)
    results = train_loop(alone.network, alone.loss, table, LABELS, recipe=recipe, seed=1)
    assert losses == pytest.approx([moment.loss for moment in results], rel=1e-3)


def test_dropout_draws_anew_in_every_step_and_leaves_the_global_randomness():
    def losses():
        recipe = Recipe(epochs=3, batch=500, optimizer=OptimizerSpec(lr=1e-9))
        network = build("mlp", classes=10, channels=1, size=8, seed=0)
        dropping = nn.Sequential(nn.Dropout(0.5), network)
        both = [
            LockstepNetwork(copy.deepcopy(dropping), CrossEntropy(), recipe, 0) for _ in range(2)
        ]
        plain = images_on("cuda", augment=())
        return [moment.loss for _, moment in train_lockstep(both, plain, LABELS)]

    before = torch.cuda.get_rng_state()
    found = losses()
    assert torch.equal(torch.cuda.get_rng_state(), before)
    assert len({round(loss, 5) for loss in found}) == 6
    assert losses() == pytest.approx(found, rel=1e-5)


class Waiting(nn.Module):
    """A network that looks at a value in the middle of a step."""

    def __init__(self):
        super().__init__()
        self.inner = build("small-cnn", classes=10, channels=1, size=8, seed=0)

    def forward(self, images):
        if images.sum().item() == 0:
            return self.inner(images + 1)
        return self.inner(images)


def test_a_network_that_waits_for_the_gpu_is_refused_and_the_gpu_stays_usable():
    waiting = [dataclasses.replace(one, network=Waiting()) for one in entrants()]
    with pytest.raises(NotCapturable, match="cannot be captured in a CUDA graph"):
        list(train_lockstep(waiting, images_on("cuda"), LABELS))
    assert sum(1 for _ in train_lockstep(entrants(), images_on("cuda"), LABELS)) == 9


def test_a_run_whose_networks_cannot_be_captured_is_trained_by_the_loop(tmp_path, monkeypatch):
    own = """
from accord.training.networks import build, to_batch_ensemble


def waiting(**shape):
    network = build("small-cnn", seed=0, **shape)
    network.register_forward_pre_hook(lambda _, given: given[0].sum().item() and None)
    return network
"""
    Path(tmp_path, "own_waiting.py").write_text(own)
    monkeypatch.chdir(tmp_path)
    text = """
        name = "waiting"
        data = { kind = "digits" }
        [train]
        networks = 2
        network = "own_waiting:waiting"
        epochs = 1
    """
    result = train(parse_spec(text), tmp_path / "run", source=text)
    assert "cannot be captured in a CUDA graph" in result.notes[0]
    assert accord.open(tmp_path / "run" / "test").labels.shape[:2] == (2, 1)


def test_the_lockstep_goes_on_from_states_at_different_epochs():
    losses = {}
    kept = {}
    for at, moment in train_lockstep(entrants(), images_on("cuda"), LABELS):
        losses[at, moment.index] = moment.loss
        if (at, moment.index) in ((0, 0), (1, 1)):
            kept[at] = copy.deepcopy(moment.state)
    again = entrants(states=(kept[0], kept[1], None))
    for at, moment in train_lockstep(again, images_on("cuda"), LABELS):
        assert moment.loss == pytest.approx(losses[at, moment.index], rel=1e-3)


def test_a_network_that_diverges_leaves_the_lockstep_and_the_others_go_on():
    together = entrants()
    wild = dataclasses.replace(together[1].recipe, optimizer=OptimizerSpec(lr=1e30))
    together[1] = dataclasses.replace(together[1], recipe=wild)
    reached = list(train_lockstep(together, images_on("cuda"), LABELS))
    stopped = [at for at, moment in reached if isinstance(moment, TrainingError)]
    assert stopped == [1]
    assert sum(at == 2 for at, _ in reached) == 3
