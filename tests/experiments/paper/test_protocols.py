"""Training settings of every cell, and the files that its data need."""

import contextlib
import json
import runpy
from pathlib import Path

import pytest
import torch

from accord.errors import ChoiceError, SourceError
from accord.experiments.paper import SCALES, Cell, all_targets, build_spec
from accord.experiments.paper._protocols import (
    check_data,
    missing_data,
    missing_file,
    protocols,
    resolve_data,
    weights_origin,
)
from accord.training import network_specs
from accord.training._losses import build_loss
from accord.training.networks import build, to_batch_ensemble

READERS = Path(__file__).parents[2] / "data" / "readers" / "conftest.py"
TREES = runpy.run_path(str(READERS))["TREES"]  # that their readers are tested on
USED = sorted({one["read"]["kind"] for one in protocols()["data"].values()})
EVERY = [
    (target.name, scale, cell)
    for target in all_targets().values()
    for scale in SCALES
    for cell in target.cells.values()
]
CLOTHING = ("noisy_train_key_list", "noisy_label_kv", "clean_test_key_list", "clean_label_kv")


def touch(path, size):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


TOOLS = {"python2_pickle": lambda _: b"", "legacy_torch": lambda _: b"", "picture": touch}
PARTS = {
    "cifar10": ["data_batch_1.bin", "data_batch_5.bin", "test_batch.bin"],
    "cifar100": ["train", "test"],
    "cifar10n": ["data_batch_3.bin", "../CIFAR-10_human.pt"],
    "tinyimagenet": ["wnids.txt", "words.txt", "train", "val/val_annotations.txt", "val/images"],
    "imagenet": ["train", "val", "imagenet_2.txt"],
    "clothing1m": [
        "noisy_train_key_list.txt",
        "noisy_label_kv.txt",
        "clean_test_key_list.txt",
        "clean_label_kv.txt",
    ],
    "animal10n": ["training", "testing"],
    "webvision50": [
        "info/train_filelist_google.txt",
        "info/train_filelist_flickr.txt",
        "info/val_filelist.txt",
        "val_images_256",
    ],
    "mnli": ["train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"],
    "qnli": ["train.tsv", "dev.tsv"],
    "qqp": ["train.tsv", "dev.tsv"],
    "sst2": ["train.tsv", "dev.tsv"],
    "fashion-mnist": ["train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"],
}


def grown(kind, root):
    path, options = TREES[kind](root, TOOLS)
    return path, {name: value for name, value in options.items() if name == "class_list"}


def distinct_members():
    """Return every distinct network and loss of all targets and scales."""
    found = {}
    for target in all_targets().values():
        for cell in target.cells.values():
            for scale in SCALES:
                try:
                    members = network_specs(build_spec(cell, scale))
                except ChoiceError:  # the target has no such scale
                    continue
                for network in members:
                    values = network.model_dump(
                        mode="json", exclude={"number", "seed", "schedule", "optimizer"}
                    )
                    found[json.dumps(values, sort_keys=True)] = network
    return [one for one in found.values() if not one.network.startswith("transformers:")]


def test_every_cell_has_a_spec_or_an_error_at_every_scale():
    without = set()
    for name, scale, cell in EVERY:
        try:
            spec = build_spec(cell, scale)
        except ChoiceError:
            without.add((name, scale))
        else:
            assert spec.data.kind == "digits" if scale == "stand-in" else spec.data.path
    texts = {name for name, _, cell in EVERY if protocols()["data"][cell.data].get("text")}
    pretrained = {name for name, _, cell in EVERY if cell.variant == "transfer-learning"}
    assert without == {(name, "medium") for name in texts} | {
        (name, "stand-in") for name in pretrained
    }


@pytest.mark.parametrize("data", ["cifar10", "cifar100", "tinyimagenet", "imagenet100"])
def test_paper_scale_trains_densenets_for_200_epochs(data):
    train = build_spec(Cell(data, "sym", 20), "paper").train
    assert (train.network, train.networks, train.epochs, train.batch) == ("densenet121", 5, 200, 32)
    optimizer = train.optimizer
    assert (optimizer.kind, optimizer.lr, optimizer.momentum) == ("sgd", 0.01, 0.9)
    assert (optimizer.weight_decay, optimizer.nesterov) == (5e-4, False)
    assert train.schedule.kind == "cosine"
    crop = "resized-crop" if data == "imagenet100" else "crop"
    assert train.augment == (crop, "flip")


def test_paper_scale_of_clothing_and_animals():
    clothing = build_spec(Cell("clothing1m", "native", 38), "paper")
    assert (clothing.train.network, clothing.train.epochs) == ("resnet50", 80)
    assert clothing.train.pretrained is not None
    assert clothing.noise.kind == "none"
    animals = build_spec(Cell("animal10n", "native", 8), "paper").train
    assert (animals.network, animals.pretrained, animals.epochs) == ("resnet50", None, 200)


def test_paper_scale_of_texts():
    spec = build_spec(Cell("qnli", "sym", 40), "paper")
    assert spec.train.network == "transformers:bert-base-cased"
    assert (spec.train.epochs, spec.train.batch, spec.train.length) == (4, 32, 128)
    assert (spec.train.optimizer.kind, spec.train.optimizer.lr) == ("adamw", 2e-5)
    assert (spec.record.every, spec.train.augment) == (0.1, ())
    with pytest.raises(ChoiceError, match="texts have the scales paper and quick, not medium"):
        build_spec(Cell("qnli", "sym", 40), "medium")


def test_paper_scale_of_other_ensembles():
    shared = build_spec(Cell("cifar100", "sym", 20, "batch-ensemble"), "paper").train
    assert (shared.network, shared.networks, shared.batch_ensemble) == ("wideresnet28-10", 1, 4)
    assert (shared.epochs, shared.batch, shared.optimizer.lr) == (250, 128, 0.1)
    assert (shared.optimizer.weight_decay, shared.optimizer.nesterov) == (6e-4, True)
    assert shared.schedule.milestones == (100, 200, 225)
    assert (shared.schedule.factor, shared.schedule.warmup) == (0.2, 1)
    hyper = build_spec(Cell("cifar100", "sym", 20, "hyper-ensemble"), "paper").train
    assert [one.lr for one in hyper.networks] == [0.01, 0.04, 0.07, 0.1]


@pytest.mark.parametrize("scale", ["quick", "stand-in"])
def test_elr_uses_its_authors_settings_where_published(scale):
    for data, setting in {"cifar10": (0.7, 3), "tinyimagenet": (0.9, 7)}.items():
        cell = Cell(data, "sym", 40, "elr")
        loss = build_spec(cell, scale).train.loss
        assert (loss.kind, loss.beta, loss.strength) == ("elr", *setting)
        assert ("with its authors' settings" in cell.description) == (data == "cifar10")


def test_variants_change_nothing_else():
    plain = build_spec(Cell("cifar100", "sym", 40), "quick")
    constant = build_spec(Cell("cifar100", "sym", 40, "constant-rate"), "quick")
    changed = constant.train.model_copy(update={"schedule": plain.train.schedule})
    assert constant.train.schedule.kind == "constant"
    assert changed == plain.train
    clean = build_spec(Cell("cifar100", "sym", 40, "clean-subset"), "quick")
    assert clean.train == plain.train.model_copy(update={"clean_only": True})


@pytest.mark.parametrize(
    ("noise", "rate", "expected"),
    [
        ("sym", 20, ("symmetric", 0.2)),
        ("asym", 40, ("asymmetric", 0.4)),
        ("native", 38, ("none", None)),
        ("clean", 0, ("none", None)),
    ],
)
def test_noise_follows_the_cell(noise, rate, expected):
    spec = build_spec(Cell("cifar10", noise, rate), "quick")
    assert (spec.noise.kind, spec.noise.rate) == expected


def test_per_class_follows_the_cell():
    spec = build_spec(Cell("cifar100", "clean", 0, per_class=50), "quick")
    assert spec.data.per_class == 50
    assert build_spec(Cell("cifar100", "clean", 0), "quick").data.per_class is None


@pytest.mark.parametrize("scale", ["paper", "medium", "quick"])
def test_few_samples_use_the_papers_batch_size(scale):
    few = build_spec(Cell("cifar10", "clean", 0, per_class=50), scale).train
    assert few.batch == 32
    many = build_spec(Cell("cifar10", "clean", 0), scale).train
    assert few.optimizer.lr / few.batch == pytest.approx(many.optimizer.lr / many.batch)


def test_stand_in_replaces_native_noise_by_symmetric_noise():
    spec = build_spec(Cell("clothing1m", "native", 38), "stand-in")
    assert (spec.noise.kind, spec.noise.rate, spec.data.kind) == ("symmetric", 0.38, "digits")
    with pytest.raises(ChoiceError, match="not available at the scale stand-in"):
        build_spec(Cell("cifar100", "sym", 40, "transfer-learning"), "stand-in")


def test_paths_resolve_to_the_data_folder(tmp_path):
    spec = build_spec(Cell("clothing1m", "native", 38), "paper")
    placed = resolve_data(spec, tmp_path)
    assert placed.resolve_path(placed.data.path) == tmp_path / "clothing1m"
    assert (
        placed.resolve_path(placed.train.pretrained) == tmp_path / "resnet50-imagenet.safetensors"
    )
    assert placed.digest() == spec.digest()
    digits = build_spec(Cell("cifar10", "sym", 40), "stand-in")
    assert resolve_data(digits, tmp_path).root is None
    text = resolve_data(build_spec(Cell("sst2", "sym", 20), "quick"), tmp_path)
    assert text.resolve_network(text.train.network) == "transformers:all-MiniLM-L6-v2"
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    there = text.resolve_network(text.train.network)
    assert there == f"transformers:{tmp_path / 'all-MiniLM-L6-v2'}"


def test_error_names_missing_data_and_their_source(tmp_path):
    cell = Cell("clothing1m", "native", 38)
    spec = build_spec(cell, "paper")
    with pytest.raises(SourceError, match=r"clothing1m: Clothing1M is missing\. Source:"):
        check_data(cell, spec, tmp_path)
    (tmp_path / "clothing1m").mkdir()
    with pytest.raises(
        SourceError, match=r"noisy_train_key_list\.txt: a part of Clothing1M is missing\. Source"
    ):
        check_data(cell, spec, tmp_path)
    for name in CLOTHING:
        (tmp_path / "clothing1m" / f"{name}.txt").touch()
    assert missing_data(spec, tmp_path) == "resnet50-imagenet.safetensors"
    with pytest.raises(SourceError, match=r"resnet50-imagenet.*: the weights that .*are missing"):
        check_data(cell, spec, tmp_path)
    (tmp_path / "resnet50-imagenet.safetensors").touch()
    check_data(cell, spec, tmp_path)


def test_class_list_is_part_of_the_data(tmp_path):
    for part in ("train/n01", "val/n01"):
        (tmp_path / "imagenet" / part).mkdir(parents=True)
    spec = build_spec(Cell("imagenet100", "sym", 20), "quick")
    assert missing_data(spec, tmp_path) == "imagenet/imagenet_100.txt"


def test_texts_need_their_encoder(tmp_path):
    cell = Cell("qnli", "sym", 20)
    quick, paper = build_spec(cell, "quick"), build_spec(cell, "paper")
    (tmp_path / "glue/QNLI").mkdir(parents=True)
    assert missing_data(quick, tmp_path) == "glue/QNLI/train.tsv"
    for name in ("train", "dev"):
        (tmp_path / "glue/QNLI" / f"{name}.tsv").touch()
    assert missing_data(paper, tmp_path) is None  # transformers knows where bert-base-cased is
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    assert missing_data(quick, tmp_path) == "all-MiniLM-L6-v2"
    with pytest.raises(SourceError, match="all-MiniLM-L6-v2: the weights that"):
        check_data(cell, quick, tmp_path)
    (tmp_path / "all-MiniLM-L6-v2/config.json").touch()
    assert missing_data(quick, tmp_path) is None


def test_paper_scale_of_elr():
    tiny = build_spec(Cell("tinyimagenet", "sym", 20, "elr"), "paper").train
    ten = build_spec(Cell("cifar10", "sym", 40, "elr"), "paper").train
    for one in (tiny, ten):
        assert (one.epochs, one.batch) == (150, 128)
        assert (one.optimizer.lr, one.optimizer.weight_decay) == (0.02, 1e-3)
    assert (tiny.schedule.kind, tiny.schedule.milestones) == ("step", (80, 120))
    assert (ten.schedule.kind, ten.schedule.cycle) == ("cosine", 10)
    assert build_spec(Cell("cifar10", "sym", 40, "elr"), "quick").train.schedule.cycle is None


def test_error_names_missing_weights_and_their_source(tmp_path):
    cell = Cell("cifar10", "sym", 40, "transfer-learning")
    spec = build_spec(cell, "quick")
    folder = tmp_path / spec.data.path
    folder.mkdir()
    for name in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
        (folder / name).touch()
    with pytest.raises(SourceError, match=r"imagenet\.pth: .* Source: torchvision's mobile"):
        check_data(cell, spec, tmp_path)


def test_all_weights_have_a_source():
    for target in all_targets().values():
        for cell in target.cells.values():
            for scale in SCALES:
                with contextlib.suppress(ChoiceError):
                    spec = build_spec(cell, scale)
                    missing = spec.train.pretrained
                    assert missing is None or weights_origin(missing)


def test_every_kind_of_data_lists_its_files():
    assert PARTS.keys() == set(USED)


@pytest.mark.parametrize("kind", sorted(TREES))
def test_published_tree_misses_no_file(kind, tmp_path):
    path, options = grown(kind, tmp_path)
    assert missing_file(kind, path, options) is None


@pytest.mark.parametrize("kind", ["cifar10", "cifar100", "tinyimagenet"])
def test_parent_folder_is_accepted(kind, tmp_path):
    grown(kind, tmp_path)
    assert missing_file(kind, tmp_path, {}) is None


@pytest.mark.parametrize(("kind", "part"), [(kind, one) for kind in PARTS for one in PARTS[kind]])
def test_missing_part_is_named_as_published(kind, part, tmp_path):
    path, options = grown(kind, tmp_path)
    (path / part).resolve().rename(tmp_path.parent / f"{tmp_path.name}-aside")
    published = f"{part}.bin" if kind == "cifar100" else part.removeprefix("../")
    assert missing_file(kind, path, options) == published


@pytest.mark.parametrize("kind", ["animal10n", "imagenet", "tinyimagenet"])
def test_empty_image_folder_is_missing(kind, tmp_path):
    path, options = grown(kind, tmp_path)
    part = PARTS[kind][0] if kind != "tinyimagenet" else "val/images"
    (path / part).rename(tmp_path.parent / f"{tmp_path.name}-aside")
    (path / part).mkdir()
    assert missing_file(kind, path, options) == part


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("qnli", ["train.parquet", "validation-00000-of-00001.parquet"]),
        ("mnli", ["MNLI/train.tsv", "MNLI/dev_matched.tsv", "mnli/validation_mismatched.tsv"]),
        (
            "fashion-mnist",
            [
                f"raw/{part}-{what}.gz"
                for part in ("train", "t10k")
                for what in ("images.idx3-ubyte", "labels-idx1-ubyte")
            ],
        ),
        ("clothing1m", [f"annotations/{name}" for name in PARTS["clothing1m"]]),
    ],
)
def test_other_spellings_are_accepted(kind, names, tmp_path):
    for name in names:
        touch(tmp_path / name, None)
    assert missing_file(kind, tmp_path, {}) is None


def test_siblings_of_a_linked_folder_are_those_of_the_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").mkdir()
    path, _ = grown("cifar10", tmp_path / "elsewhere")
    linked = tmp_path / "data" / path.name
    linked.symlink_to(path, target_is_directory=True)
    assert missing_file("cifar10n", linked, {}) == "CIFAR-10_human.pt"
    touch(tmp_path / "data" / "CIFAR-10_human.pt", None)
    assert missing_file("cifar10n", linked, {}) is None


def test_class_list_in_the_working_directory_is_found(tmp_path, monkeypatch):
    path, options = grown("imagenet", tmp_path)
    (path / "imagenet_2.txt").rename(tmp_path.parent / "imagenet_2.txt")
    monkeypatch.chdir(tmp_path.parent)
    assert missing_file("imagenet", path, options) is None


def test_embedded_data_need_no_files(tmp_path):
    assert missing_file("digits", tmp_path, {}) is None


@pytest.mark.parametrize("spec", distinct_members(), ids=lambda one: one.network)
def test_every_network_takes_a_step(spec):
    channels, size = (1, 8) if spec.network in ("small-cnn", "mlp") else (3, 32)
    network = build(
        spec.network, classes=10, channels=channels, size=(size, size), seed=0, **spec.options
    )
    if not getattr(network, "trainable", True):
        assert network(torch.zeros(2, channels, size, size)).shape == (2, 10)
        return
    if spec.members > 1:
        network = to_batch_ensemble(network, members=spec.members, seed=0)
    loss = build_loss(spec.loss.kind, samples=2, classes=10, **spec.loss.options)
    logits = network(torch.randn(2, channels, size, size))
    assert logits.shape == ((spec.members,) if spec.members > 1 else ()) + (2, 10)
    logits = logits if spec.members == 1 else logits[0]
    value = loss(logits, torch.tensor([0, 1]), torch.tensor([0, 1]))
    value.backward()
    assert all(one.grad is not None for one in network.parameters() if one.requires_grad)
