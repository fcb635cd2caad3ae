"""Every cell is trained as the paper says, or as the scale says."""

import contextlib

import pytest

from accord.errors import ChoiceError, SourceError
from accord.experiments.paper import SCALES, Cell, all_targets, build_spec
from accord.experiments.paper._protocols import (
    check_data,
    missing_data,
    place_spec,
    sources,
    weights_from,
)

EVERY = [
    (target.name, scale, cell)
    for target in all_targets().values()
    for scale in SCALES
    for cell in target.cells.values()
]


def test_every_cell_has_a_spec_at_every_scale_or_says_why_not():
    without = set()
    for name, scale, cell in EVERY:
        try:
            spec = build_spec(cell, scale)
        except ChoiceError:
            without.add((name, scale))
        else:
            assert spec.data.kind == "digits" if scale == "stand-in" else spec.data.path
    texts = {name for name, _, cell in EVERY if sources()[cell.data].text}
    pretrained = {name for name, _, cell in EVERY if cell.variant == "transfer-learning"}
    assert without == {(name, "medium") for name in texts} | {
        (name, "stand-in") for name in pretrained
    }


@pytest.mark.parametrize("data", ["cifar10", "cifar100", "tinyimagenet", "imagenet100"])
def test_the_paper_trains_dense_networks_for_200_epochs(data):
    train = build_spec(Cell(data, "sym", 20), "paper").train
    assert (train.network, train.networks, train.epochs, train.batch) == ("densenet121", 5, 200, 32)
    optimizer = train.optimizer
    assert (optimizer.kind, optimizer.lr, optimizer.momentum) == ("sgd", 0.01, 0.9)
    assert (optimizer.weight_decay, optimizer.nesterov) == (5e-4, False)
    assert train.schedule.kind == "cosine"
    crop = "resized-crop" if data == "imagenet100" else "crop"
    assert train.augment == (crop, "flip")


def test_clothing_and_animals_are_trained_as_the_paper_says():
    clothing = build_spec(Cell("clothing1m", "native", 38), "paper")
    assert (clothing.train.network, clothing.train.epochs) == ("resnet50", 80)
    assert clothing.train.pretrained is not None
    assert clothing.noise.kind == "none"
    animals = build_spec(Cell("animal10n", "native", 8), "paper").train
    assert (animals.network, animals.pretrained, animals.epochs) == ("resnet50", None, 200)


def test_texts_are_read_by_bert_every_tenth_of_four_epochs():
    spec = build_spec(Cell("qnli", "sym", 40), "paper")
    assert spec.train.network == "transformers:bert-base-cased"
    assert (spec.train.epochs, spec.train.batch, spec.train.length) == (4, 32, 128)
    assert (spec.train.optimizer.kind, spec.train.optimizer.lr) == ("adamw", 2e-5)
    assert (spec.record.every, spec.train.augment) == (0.1, ())
    with pytest.raises(ChoiceError, match="texts have the scales paper and quick, not medium"):
        build_spec(Cell("qnli", "sym", 40), "medium")


def test_other_ensembles_are_trained_as_their_authors_say():
    shared = build_spec(Cell("cifar100", "sym", 20, "batch-ensemble"), "paper").train
    assert (shared.network, shared.networks, shared.batch_ensemble) == ("wideresnet28-10", 1, 4)
    assert (shared.epochs, shared.batch, shared.optimizer.lr) == (250, 128, 0.1)
    assert (shared.optimizer.weight_decay, shared.optimizer.nesterov) == (6e-4, True)
    assert shared.schedule.milestones == (100, 200, 225)
    assert (shared.schedule.factor, shared.schedule.warmup) == (0.2, 1)
    hyper = build_spec(Cell("cifar100", "sym", 20, "hyper-ensemble"), "paper").train
    assert [one.lr for one in hyper.networks] == [0.01, 0.04, 0.07, 0.1]


@pytest.mark.parametrize("scale", ["quick", "stand-in"])
def test_elr_is_set_as_its_authors_say_where_they_do(scale):
    for data, setting in {"cifar10": (0.7, 3), "tinyimagenet": (0.9, 7)}.items():
        cell = Cell(data, "sym", 40, "elr")
        loss = build_spec(cell, scale).train.loss
        assert (loss.kind, loss.beta, loss.strength) == ("elr", *setting)
        assert ("as its authors set it" in cell.says) == (data == "cifar10")


def test_variants_change_what_they_name_and_nothing_else():
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
def test_noise_is_what_the_cell_says(noise, rate, expected):
    spec = build_spec(Cell("cifar10", noise, rate), "quick")
    assert (spec.noise.kind, spec.noise.rate) == expected


def test_few_samples_of_each_class_are_asked_for():
    spec = build_spec(Cell("cifar100", "clean", 0, per_class=50), "quick")
    assert spec.data.per_class == 50
    assert build_spec(Cell("cifar100", "clean", 0), "quick").data.per_class is None


@pytest.mark.parametrize("scale", ["paper", "medium", "quick"])
def test_few_samples_are_trained_in_the_papers_batches(scale):
    few = build_spec(Cell("cifar10", "clean", 0, per_class=50), scale).train
    assert few.batch == 32
    many = build_spec(Cell("cifar10", "clean", 0), scale).train
    assert few.optimizer.lr / few.batch == pytest.approx(many.optimizer.lr / many.batch)


def test_stand_ins_get_noise_where_the_data_have_their_own():
    spec = build_spec(Cell("clothing1m", "native", 38), "stand-in")
    assert (spec.noise.kind, spec.noise.rate, spec.data.kind) == ("symmetric", 0.38, "digits")
    with pytest.raises(ChoiceError, match="no stand-in"):
        build_spec(Cell("cifar100", "sym", 40, "transfer-learning"), "stand-in")


def test_paths_lead_into_the_folder_of_the_data(tmp_path):
    spec = build_spec(Cell("clothing1m", "native", 38), "paper")
    placed = place_spec(spec, tmp_path)
    assert placed.resolve_path(placed.data.path) == tmp_path / "clothing1m"
    assert (
        placed.resolve_path(placed.train.pretrained) == tmp_path / "resnet50-imagenet.safetensors"
    )
    assert placed.digest() == spec.digest()
    digits = build_spec(Cell("cifar10", "sym", 40), "stand-in")
    assert place_spec(digits, tmp_path).root is None
    text = place_spec(build_spec(Cell("sst2", "sym", 20), "quick"), tmp_path)
    assert text.resolve_network(text.train.network) == "transformers:all-MiniLM-L6-v2"
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    there = text.resolve_network(text.train.network)
    assert there == f"transformers:{tmp_path / 'all-MiniLM-L6-v2'}"


CLOTHING = ("noisy_train_key_list", "noisy_label_kv", "clean_test_key_list", "clean_label_kv")


def test_missing_data_are_named_with_where_they_come_from(tmp_path):
    cell = Cell("clothing1m", "native", 38)
    spec = build_spec(cell, "paper")
    with pytest.raises(SourceError, match=r"clothing1m: Clothing1M is not there\. It comes from"):
        check_data(cell, spec, tmp_path)
    (tmp_path / "clothing1m").mkdir()
    with pytest.raises(
        SourceError, match=r"noisy_train_key_list\.txt: this part of Clothing1M is not there\. It"
    ):
        check_data(cell, spec, tmp_path)
    for name in CLOTHING:
        (tmp_path / "clothing1m" / f"{name}.txt").touch()
    assert missing_data(spec, tmp_path) == "resnet50-imagenet.safetensors"
    with pytest.raises(SourceError, match=r"resnet50-imagenet.*starts from these weights"):
        check_data(cell, spec, tmp_path)
    (tmp_path / "resnet50-imagenet.safetensors").touch()
    check_data(cell, spec, tmp_path)


def test_a_class_list_is_a_part_of_the_data(tmp_path):
    for part in ("train/n01", "val/n01"):
        (tmp_path / "imagenet" / part).mkdir(parents=True)
    spec = build_spec(Cell("imagenet100", "sym", 20), "quick")
    assert missing_data(spec, tmp_path) == "imagenet/imagenet_100.txt"


def test_texts_need_the_network_that_reads_them(tmp_path):
    cell = Cell("qnli", "sym", 20)
    quick, paper = build_spec(cell, "quick"), build_spec(cell, "paper")
    (tmp_path / "glue/QNLI").mkdir(parents=True)
    assert missing_data(quick, tmp_path) == "glue/QNLI/train.tsv"
    for name in ("train", "dev"):
        (tmp_path / "glue/QNLI" / f"{name}.tsv").touch()
    assert missing_data(paper, tmp_path) is None  # transformers knows where bert-base-cased is
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    assert missing_data(quick, tmp_path) == "all-MiniLM-L6-v2"
    with pytest.raises(SourceError, match=r"all-MiniLM-L6-v2: .* starts from these weights"):
        check_data(cell, quick, tmp_path)
    (tmp_path / "all-MiniLM-L6-v2/config.json").touch()
    assert missing_data(quick, tmp_path) is None


def test_elr_is_trained_as_its_authors_did():
    tiny = build_spec(Cell("tinyimagenet", "sym", 20, "elr"), "paper").train
    ten = build_spec(Cell("cifar10", "sym", 40, "elr"), "paper").train
    for one in (tiny, ten):
        assert (one.epochs, one.batch) == (150, 128)
        assert (one.optimizer.lr, one.optimizer.weight_decay) == (0.02, 1e-3)
    assert (tiny.schedule.kind, tiny.schedule.milestones) == ("step", (80, 120))
    assert (ten.schedule.kind, ten.schedule.cycle) == ("cosine", 10)
    assert build_spec(Cell("cifar10", "sym", 40, "elr"), "quick").train.schedule.cycle is None


def test_weights_that_are_missing_are_named_with_their_origin(tmp_path):
    cell = Cell("cifar10", "sym", 40, "transfer-learning")
    spec = build_spec(cell, "quick")
    folder = tmp_path / spec.data.path
    folder.mkdir()
    for name in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
        (folder / name).touch()
    with pytest.raises(SourceError, match=r"imagenet\.pth: .* They come from torchvision's mobile"):
        check_data(cell, spec, tmp_path)


def test_all_weights_have_an_origin():
    for target in all_targets().values():
        for cell in target.cells.values():
            for scale in SCALES:
                with contextlib.suppress(ChoiceError):
                    spec = build_spec(cell, scale)
                    missing = spec.train.pretrained
                    assert missing is None or weights_from(missing)
