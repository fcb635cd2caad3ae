"""Folders of files are imported: by a pattern, of the paper's code, of Dataset Cartography."""

import itertools
import json

import numpy as np
import pytest

import accord
from accord.errors import ChoiceError, SourceError
from accord.store import import_record, open_reader

LABELS = np.random.default_rng(0).integers(0, 4, (2, 3, 10))
LABELS[0, 0, 0] = 3
LOGITS = np.random.default_rng(1).normal(0, 3, (2, 3, 10, 4))
WHOLE = range(2), range(3), slice(None)


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def write_npy(folder, values, *, kind="resnet", first=0, test=True, start=0):
    for network, epochs in enumerate(values, start=first):
        (folder / f"{kind}{network}").mkdir(parents=True, exist_ok=True)
        for epoch, row in enumerate(epochs, start=start):
            name = f"{'test_' if test else ''}{kind}_{network}_{epoch}.npy"
            np.save(folder / f"{kind}{network}" / name, row)
    return folder


def write_dynamics(folder, logits, *, gold=None, guids=None, start=0, key=None):
    folder.mkdir(parents=True)
    gold = range(len(logits[0])) if gold is None else gold
    for epoch, rows in enumerate(logits, start=start):
        lines = [
            json.dumps({"guid": guid, key or f"logits_epoch_{epoch}": row.tolist(), "gold": int(g)})
            for guid, row, g in zip(guids or range(len(rows)), rows, gold, strict=True)
        ]
        np.random.default_rng(epoch).shuffle(lines)  # the order of a shuffling loader
        (folder / f"dynamics_epoch_{epoch}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def imported(source, tmp_path, **options):
    import_record(source, tmp_path / "record", **options)
    return open_reader(tmp_path / "record")


def opened(source, tmp_path, **options):
    imported(source, tmp_path, **options)
    return accord.open(tmp_path / "record")


def refused(source, tmp_path, words, kind=SourceError, **options):
    with pytest.raises(kind, match=words):
        import_record(source, tmp_path / "record", **options)
    assert not (tmp_path / "record").exists()


# Files named by a pattern


def write_files(tmp_path, pattern, *, networks=(0, 1), epochs=(0, 1, 2), values=LABELS):
    for (i, network), (j, epoch) in itertools.product(enumerate(networks), enumerate(epochs)):
        path = tmp_path / "logs" / pattern.format(network=network, epoch=epoch)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, values[i, j])
    return tmp_path / "logs"


@pytest.mark.parametrize(
    ("epochs", "progress"),
    [
        ((0, 1, 2), (1, 2, 3)),
        ((1, 2, 3), (1, 2, 3)),
        ((2, 10, 100), (2, 10, 100)),
        ((0, 5, 9), (0, 5, 9)),
    ],
)
def test_files_are_sorted_by_number(tmp_path, epochs, progress):
    source = write_files(
        tmp_path, "seed{network}/epoch_{epoch}.npy", networks=(9, 10), epochs=epochs
    )
    np.save(source / "truth.npy", LABELS[0, 0])
    np.save(source / "seed9/epoch_x.npy", LABELS[0, 0])
    found = opened(source, tmp_path, pattern="seed{network}/epoch_{epoch}.npy")
    np.testing.assert_array_equal(found.labels[:], LABELS)
    assert found.reader.numbers == (9, 10)
    assert found.progress == progress
    np.testing.assert_array_equal(found.truth, LABELS[0, 0])


def test_networks_may_have_names_and_files_no_epoch(tmp_path):
    (tmp_path / "logs").mkdir()
    for name, values in zip(("resnet", "densenet"), LABELS, strict=True):
        np.savez(tmp_path / f"logs/{name}.npz", preds=values.T)
    found = opened(tmp_path / "logs", tmp_path, pattern="./{network}.npz", axes="sample,epoch")
    np.testing.assert_array_equal(found.labels[:], LABELS[::-1])
    assert [info.metadata["name"] for info in found.networks_info] == ["densenet", "resnet"]


def test_logits_in_files_become_probabilities(tmp_path):
    source = write_files(tmp_path, "e{epoch}-n{network}-a.npy", values=LOGITS)
    found = opened(source, tmp_path, pattern="e{epoch}-n{network}-*.npy")
    np.testing.assert_array_equal(found.labels[:], LOGITS.argmax(axis=-1))


@pytest.mark.parametrize(
    ("pattern", "words", "kind"),
    [
        (
            "seed{network}/{epoch}.npy",
            r"logs: no file is named 'seed.*it has s0/e0\.npy",
            SourceError,
        ),
        (
            "s{seed}/e{epoch}.npy",
            r"contain \{network\} and \{epoch\} and \*; got \{seed\}",
            ChoiceError,
        ),
        ("s0/e0.npy", r"must contain \{network\} or \{epoch\}", ChoiceError),
        ("s{network}/*{epoch}.npy", "same network 0 and epoch 1 as", SourceError),
    ],
)
def test_patterns_that_do_not_fit_are_refused(tmp_path, pattern, words, kind):
    source = write_files(tmp_path, "s{network}/e{epoch}.npy", epochs=(0, 1, 11))
    if "*" not in pattern:
        (source / "s0/e11.npy").unlink()
    refused(source, tmp_path, words, kind, pattern=pattern)


def test_a_missing_file_of_a_network_is_named(tmp_path):
    source = write_files(tmp_path, "s{network}/e{epoch}.npy")
    (source / "s1/e2.npy").unlink()
    words = r"network 1 lacks epoch 2 of 0\.\.2 \(.*s1/e0\.npy is there\)\. Was the run interrupted"
    refused(source, tmp_path, words, pattern="s{network}/e{epoch}.npy")
    refused(source / "s0/e0.npy", tmp_path, "this is a file", pattern="s{network}.npy")


# Folders of npy files


@pytest.mark.parametrize("step", ["", "step1"])
@pytest.mark.parametrize("start", [0, 1])
def test_a_folder_of_labels_is_imported_whole(tmp_path, step, start):
    write_npy(tmp_path / "source" / step, LABELS, first=40, start=start)
    np.save(tmp_path / "source/truth.npy", LABELS[0, 0])
    rows = imported(tmp_path / "source", tmp_path)
    np.testing.assert_array_equal(rows.read_labels(*WHOLE), LABELS)
    np.testing.assert_array_equal(rows.sample_info.truth, LABELS[0, 0])
    assert rows.numbers == (40, 41)
    assert (rows.classes, rows.sample_info.split, rows.has_probabilities) == (4, "test", False)


def test_epochs_are_sorted_by_number(tmp_path):
    labels = np.arange(12)[None, :, None].repeat(3, axis=2)
    rows = imported(write_npy(tmp_path / "source", labels), tmp_path)
    np.testing.assert_array_equal(rows.read_labels(range(1), range(12), slice(None)), labels)


@pytest.mark.parametrize("turn", [softmax, lambda logits: logits])
def test_a_folder_of_probabilities_or_logits_keeps_probabilities(tmp_path, turn):
    rows = imported(write_npy(tmp_path / "source", turn(LOGITS)), tmp_path)
    np.testing.assert_array_equal(rows.read_labels(*WHOLE), LOGITS.argmax(axis=-1))
    np.testing.assert_allclose(rows.read_probabilities(*WHOLE), softmax(LOGITS), atol=1e-3)


def test_a_folder_with_test_and_training_files_requires_a_format(tmp_path):
    source = write_npy(tmp_path / "source", LABELS)
    write_npy(source, LABELS[:, :, :5], test=False)
    np.save(source / "given.npy", LABELS[0, 0, :5])
    refused(source, tmp_path, "could be read as npy-folder or npy-folder-train", ChoiceError)
    rows = imported(source, tmp_path, format="npy-folder-train")
    assert (rows.samples, rows.sample_info.split) == (5, "train")
    np.testing.assert_array_equal(rows.sample_info.given, LABELS[0, 0, :5])


def test_a_missing_epoch_is_named(tmp_path):
    source = write_npy(tmp_path / "source", LABELS)
    (source / "resnet1/test_resnet_1_1.npy").unlink()
    refused(source, tmp_path, r"network 1 lacks epoch 1 of 0\.\.2 \(.*/test_resnet_1_0\.npy is")
    (source / "resnet1/test_resnet_1_2.npy").unlink()
    refused(source, tmp_path, r"network 1 lacks epoch 1, and 1 more, of 0\.\.2 \(.*Was the run")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("resnet0/test_resnet_0_0", "vgg0/test_vgg_0_0"),
        ("resnet0/test_resnet_0_0", "resnet00/test_resnet_00_0"),
        ("resnet0/test_resnet_0_0", "resnet0/test_resnet_0_00"),
    ],
)
def test_two_files_of_one_network_and_epoch_are_named(tmp_path, one, other):
    for name in (one, other):
        file = tmp_path / f"source/{name}.npy"
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, LABELS[0, 0])
    words = rf"{other}\.npy: has the same network 0 and epoch 0 as .*{one}\.npy\. Rename"
    refused(tmp_path / "source", tmp_path, words)


def test_a_folder_that_starts_at_a_later_epoch_is_refused(tmp_path):
    source = write_npy(tmp_path / "source", LABELS, start=2)
    refused(source, tmp_path, "the first epoch is 2; epochs must start at 0 or 1")


def test_a_file_with_other_samples_is_named(tmp_path):
    source = write_npy(tmp_path / "source", LABELS)
    np.save(source / "resnet1/test_resnet_1_2.npy", LABELS[0, 0, :9])
    refused(source, tmp_path, r"_1_2\.npy: has shape \(9,\), but .*_0_0\.npy has \(10,\)")


def test_a_file_of_another_kind_is_named(tmp_path):
    source = write_npy(tmp_path / "source", softmax(LOGITS))
    np.save(source / "resnet0/test_resnet_0_1.npy", LOGITS[0, 1])
    refused(source, tmp_path, r"_0_1\.npy: has logits, but .*_0_0\.npy has probabilities")


@pytest.mark.parametrize("content", [b"", b"not npy", b"\x93NUMPY\x01\x00v\x00 cut off"])
def test_a_damaged_file_is_named(tmp_path, content):
    source = write_npy(tmp_path / "source", LABELS)
    (source / "resnet1/test_resnet_1_2.npy").write_bytes(content)
    refused(source, tmp_path, r"test_resnet_1_2\.npy: cannot be read as npy")


def test_a_truncated_file_is_named(tmp_path):
    source = write_npy(tmp_path / "source", LABELS)
    file = source / "resnet1/test_resnet_1_2.npy"
    file.write_bytes(file.read_bytes()[:-8])
    refused(source, tmp_path, r"test_resnet_1_2\.npy: cannot be read as npy")


def test_pickled_files_are_never_loaded(tmp_path):
    source = write_npy(tmp_path / "source", LABELS)
    np.save(source / "resnet1/test_resnet_1_2.npy", np.array([{"a": 1}], dtype=object))
    refused(source, tmp_path, "pickled objects, which are never loaded")


def test_a_folder_with_several_steps_is_refused(tmp_path):
    for step in ("step1", "step2"):
        write_npy(tmp_path / "source" / step, LABELS)
    refused(
        tmp_path / "source",
        tmp_path,
        "has several steps, step1, step2; import one .*step2",
    )
    assert imported(tmp_path / "source/step2", tmp_path).epochs == 3


def test_labels_out_of_range_are_refused_with_the_folder_named(tmp_path):
    source = write_npy(tmp_path / "source", LABELS + 1)
    refused(source, tmp_path, r"source: labels must lie in 0\.\.3 for 4.*1\.\.4", classes=4)


def test_a_folder_of_unknown_files_is_refused(tmp_path):
    (tmp_path / "source").mkdir()
    refused(tmp_path / "source", tmp_path, "no known files; choose one", ChoiceError)
    refused(tmp_path / "nothing", tmp_path, "no such file or folder")
    for name in ("npy-folder", "npy-folder-train", "cartography"):
        refused(tmp_path / "source", tmp_path, "no files such as", format=name)
    refused(tmp_path / "source", tmp_path, "has no full_aum_records.csv", format="aum")


# Dataset Cartography


@pytest.mark.parametrize("inner", ["", "training_dynamics"])
@pytest.mark.parametrize("start", [0, 1])
def test_dynamics_are_put_in_one_order(tmp_path, inner, start):
    gold = np.arange(10) % 4
    write_dynamics(tmp_path / "source" / inner, LOGITS[0], gold=gold, start=start)
    rows = imported(tmp_path / "source", tmp_path)
    order = rows.sample_info.ids  # guids start at 0, so they are positions
    assert sorted(order) == list(range(10))
    np.testing.assert_array_equal(rows.sample_info.given, gold[order])
    labels = rows.read_labels(range(1), range(3), slice(None))
    np.testing.assert_array_equal(labels[0], LOGITS[0].argmax(axis=-1)[:, order])
    probabilities = rows.read_probabilities(range(1), range(3), slice(None))
    np.testing.assert_allclose(probabilities[0], softmax(LOGITS[0])[:, order], atol=1e-3)
    assert rows.sample_info.split == "train"


def test_logits_that_look_like_probabilities_are_still_logits(tmp_path):
    logits = np.full((1, 4, 2), 0.5)
    logits[0, :, 1] = 0.2
    rows = imported(write_dynamics(tmp_path / "source", logits, gold=[0, 1, 0, 1]), tmp_path)
    probabilities = rows.read_probabilities(range(1), range(1), slice(None))
    np.testing.assert_allclose(probabilities[0], softmax(logits), atol=1e-3)


def test_one_folder_per_network_makes_several_networks(tmp_path):
    guids = [f"sample-{number}" for number in range(10)]
    for network in range(2):
        folder = tmp_path / f"source/seed-{network}/training_dynamics"
        write_dynamics(folder, LOGITS[network], guids=guids, gold=np.zeros(10))
    rows = imported(tmp_path / "source", tmp_path)
    order = [guids.index(name) for name in rows.sample_info.ids]
    np.testing.assert_array_equal(rows.read_labels(*WHOLE), LOGITS.argmax(axis=-1)[:, :, order])
    names = [info.metadata["name"] for info in rows.networks_info()]
    assert names == ["seed-0", "seed-1"]


def test_a_class_that_is_only_given_is_refused(tmp_path):
    source = write_dynamics(tmp_path / "source", LOGITS[0], gold=np.full(10, 4))
    refused(source, tmp_path, r"given must lie in 0\.\.3 for 4 classes; got 4\.\.4")


def rewrite(folder, epoch, change):
    file = folder / f"dynamics_epoch_{epoch}.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in change(lines)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda lines: [*lines[:-1], {**lines[-1], "guid": 77}],
            r"epoch_1\.jsonl: guid 77 is in dynamics_epoch_1\.jsonl but not in .*_0\.jsonl.*1 unkn",
        ),
        (
            lambda lines: lines[:-1],
            r"epoch_1\.jsonl: guid \d is in .*_0\.jsonl but not in .*_1\.jsonl.*0 unk.*1 missing",
        ),
        (lambda lines: [*lines, lines[0]], r"epoch_1\.jsonl, line 11: guid \d occurs twice"),
        (lambda lines: [{**lines[0], "gold": 3}, *lines[1:]], r"_1\.jsonl: the gold of guid \d"),
        (
            lambda lines: [{**lines[0], "logits_epoch_1": [1.0]}, *lines[1:]],
            "samples have different numbers of logits",
        ),
        (
            lambda lines: [{**line, "logits_epoch_1": [1.0, 2.0]} for line in lines],
            r"_1\.jsonl: has shape \(10, 2\), but .*_0\.jsonl has \(10, 4\)",
        ),
        (
            lambda lines: [{**lines[0], "logits_epoch_1": [float("nan")] * 4}, *lines[1:]],
            r"_1\.jsonl: logits must be finite",
        ),
        (
            lambda lines: [{**lines[0], "logits_epoch_1": "1 2"}, *lines[1:]],
            r"line 1: logits_epoch_1 must be a list of numbers.*got '1 2'",
        ),
        (
            lambda lines: [{**lines[0], "logits_epoch_1": [1.0, "2"]}, *lines[1:]],
            "line 1: logits_epoch_1 must be a list of numbers",
        ),
        (
            lambda lines: [{**lines[0], "logits_epoch_1": [True, 2]}, *lines[1:]],
            "line 1: logits_epoch_1 must be a list of numbers",
        ),
        (lambda lines: [{**lines[0], "gold": "cat"}], r"gold a class, a whole number; got .*'cat'"),
        (lambda lines: [{**lines[0], "gold": True}], "gold a class, a whole number; got .*True"),
        (lambda lines: [{"guid": 0, "gold": 0}], "line 1: .*KeyError: 'logits_epoch_1'"),
        (lambda lines: [[1, 2]], "line 1: .*TypeError"),
        (lambda lines: [], r"_1\.jsonl: is empty"),
        (
            lambda lines: [{**lines[0], "guid": ["a"]}],
            r"guid must be text or a number; got \['a'\]",
        ),
        (
            lambda lines: [{**lines[0], "logits_epoch_1": [10**400, 0]}],
            "none too large for a float",
        ),
        (
            lambda lines: [{**line, "logits_epoch_1": []} for line in lines],
            r"line 1: logits_epoch_1 must be a list of numbers, one per class.*got \[\]",
        ),
    ],
)
def test_invalid_lines_are_named(tmp_path, change, words):
    source = write_dynamics(tmp_path / "source", LOGITS[0], gold=np.zeros(10))
    rewrite(source, 1, change)
    refused(source, tmp_path, words)


def test_a_truncated_line_is_named(tmp_path):
    source = write_dynamics(tmp_path / "source", LOGITS[0])
    file = source / "dynamics_epoch_2.jsonl"
    file.write_text(file.read_text()[:-20])
    refused(source, tmp_path, r"_2\.jsonl, line 10: .*Was the file truncated\?")
    file.write_bytes(b"\xff\xfe")
    refused(source, tmp_path, r"_2\.jsonl: cannot be read")


def test_a_missing_file_of_lines_is_named(tmp_path):
    source = write_dynamics(tmp_path / "source", LOGITS[0])
    (source / "dynamics_epoch_1.jsonl").unlink()
    refused(source, tmp_path, r"network 0 lacks epoch 1 of 0\.\.2 \(.*_0\.jsonl is there\)")
    (source / "dynamics_epoch_0.jsonl").unlink()
    refused(source, tmp_path, "the first epoch is 2; epochs must start at 0 or 1")


@pytest.mark.parametrize(("start", "words"), [(0, "2 .*interrupted"), (1, "0 .*count from 1")])
def test_networks_with_different_epochs_are_refused(tmp_path, start, words):
    dynamics = tmp_path / "source/a/training_dynamics", tmp_path / "source/b/training_dynamics"
    write_dynamics(dynamics[0], LOGITS[0], gold=np.zeros(10))
    write_dynamics(dynamics[1], LOGITS[1, :2], gold=np.zeros(10), start=start)
    refused(tmp_path / "source", tmp_path, f"source: network b lacks epoch {words}")


def test_two_files_of_lines_of_one_epoch_are_named(tmp_path):
    source = write_dynamics(tmp_path / "source", LOGITS[0])
    (source / "dynamics_epoch_00.jsonl").touch()
    refused(source, tmp_path, r"_epoch_00\.jsonl: has the same .*epoch 0 as .*_epoch_0\.jsonl")


def test_other_jsonl_files_are_ignored(tmp_path):
    (tmp_path / "dynamics_epoch_last.jsonl").touch()
    refused(tmp_path, tmp_path, "no files such as", format="cartography")


def test_only_newlines_end_lines(tmp_path):
    line = '{"guid": "a\u2028b", "logits_epoch_0": [1, 2], "gold": 0}\n'
    (tmp_path / "dynamics_epoch_0.jsonl").write_text(line, encoding="utf-8")
    assert imported(tmp_path, tmp_path).sample_info.ids.tolist() == ["a\u2028b"]


def test_large_guids_are_kept_exactly(tmp_path):
    guids = [2**63 + 1, 5]
    write_dynamics(tmp_path / "source", LOGITS[0, :, :2], guids=guids)
    assert sorted(imported(tmp_path / "source", tmp_path).sample_info.ids.tolist()) == [
        5,
        2**63 + 1,
    ]
