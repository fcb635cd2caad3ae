"""Data are split and made noisy as the spec defines."""

import numpy as np
import pytest
from killing import kill_run_after
from small_run import changed, labels_of, train_text

import accord
from accord.data import ImageFiles, load_digits
from accord.errors import SourceError, SpecError
from accord.training import Run, parse_spec, plan_run, train
from accord.training._prepared_data import encode_targets, join_inputs, prepare_data


def write_table(path, train, test):
    labels = {"train": np.asarray(train), "test": np.asarray(test)}
    generator = np.random.default_rng(0)
    arrays = {f"{part}_inputs": generator.normal(size=(len(labels[part]), 3)) for part in labels}
    np.savez(path, **arrays, **{f"{part}_labels": labels[part] for part in labels})
    return f"""
name = "table"
[data]
kind = "npz"
path = "{path}"
[train]
networks = 1
network = "mlp"
epochs = 1
"""


def test_a_table_requires_a_network_for_tables(tmp_path):
    (tmp_path / "own.csv").write_text("size,label\n1,a\n2,b\n3,a\n4,b\n")
    data = f"kind = 'csv'\npath = '{tmp_path}/own.csv'\nheld_out = 0.5"
    pairs = (('kind = "digits"\nper_class = 20', data), ('augment = ["shift"]', ""))
    with pytest.raises(SpecError, match=r'small-cnn takes images, but csv is a table: .*"mlp"'):
        train_text(tmp_path / "run", changed(*pairs))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "truth", "given"),
    [
        ("", None, [1, 0, 1, 0]),
        ("verified = true", [1, 0, 1, 0], None),
        ('truth = "checked"', [1, 0, 0, 1], [1, 0, 1, 0]),
    ],
)
def test_held_out_labels_are_given_unless_they_are_verified(tmp_path, options, truth, given):
    rows = ("1,b,b", "2,a,a", "3,b,a", "4,a,b")
    (tmp_path / "test.csv").write_text("\n".join(["size,label,checked", *rows]))
    (tmp_path / "train.csv").write_text("size,label,checked\n1,a,a\n2,b,b\n")
    text = write_table(tmp_path / "train.npz", [0, 1], [1]).replace("npz", "csv")
    added = f"test = 'test.csv'\nfeatures = 'size'\n{options}\n[train]"
    text = text.replace("[train]", added)
    train(parse_spec(text), tmp_path / "run", source=text)
    record = accord.open(tmp_path / "run/test")
    assert record.reference == ("given" if truth is None else "truth")
    for labels, wanted in ((record.truth, truth), (record.given, given)):
        assert (None if labels is None else labels.tolist()) == wanted


@pytest.mark.parametrize(("options", "known"), [("", False), ("verified = true", True)])
def test_drawn_noise_does_not_make_the_labels_before_it_true(tmp_path, options, known):
    text = write_table(tmp_path / "own.npz", [0, 1, 0, 1], [1])
    noise = "[noise]\nkind = 'symmetric'\nrate = 0.5"
    spec = parse_spec(text.replace("[train]", f"{options}\n{noise}\n[train]"))
    found = prepare_data(spec).splits["train"]
    assert (found.labels != [0, 1, 0, 1]).sum() == 2
    assert (found.truth is not None) is known


@pytest.mark.parametrize(("options", "known"), [("", False), ("verified = true", True)])
def test_corrections_from_a_file_do_not_make_the_former_labels_true(tmp_path, options, known):
    np.save(tmp_path / "corrected.npy", np.array([0, 1, 1, 1]))
    text = write_table(tmp_path / "own.npz", [0, 1, 0, 1], [1])
    text = text.replace("[train]", f"{options}\n[noise]\nkind = 'file'\npath = 'PATH'\n[train]")
    spec = parse_spec(text.replace("PATH", str(tmp_path / "corrected.npy")))
    found = prepare_data(spec).splits["train"]
    assert found.labels.tolist() == [0, 1, 1, 1]
    assert (None if found.truth is None else found.truth.tolist()) == (
        [0, 1, 0, 1] if known else None
    )


def test_clean_only_requires_two_classes(tmp_path):
    text = changed(("rate = 0.4", "rate = 1.0"), ('augment = ["shift"]', "clean_only = true"))
    with pytest.raises(SpecError, match="clean_only leaves 0 samples of fewer than two classes"):
        train_text(tmp_path / "run", text)


def test_the_validation_split_has_label_noise(tmp_path):
    text = changed(
        ("per_class = 20", "per_class = 20\nvalidation = 0.2"),
        ('["test", "train"]', '["validation", "train"]'),
        ("epochs = 4", "epochs = 1"),
    )
    train_text(tmp_path / "run", text)
    held, train = accord.open(tmp_path / "run/validation"), accord.open(tmp_path / "run/train")
    assert (held.samples, train.samples) == (40, 160)
    wrong = (held.given != held.truth).sum() + (train.given != train.truth).sum()
    assert wrong == 80


def test_clean_only_keeps_the_correct_labels(tmp_path):
    text = changed(("epochs = 4", "epochs = 1\nclean_only = true"))
    train_text(tmp_path / "run", text)
    train = accord.open(tmp_path / "run/train")
    assert train.samples == 120
    np.testing.assert_array_equal(train.given, train.truth)


def test_clean_only_requires_true_labels(tmp_path):
    text = changed(
        ("epochs = 4", "epochs = 1\nclean_only = true"),
        ('[noise]\nkind = "symmetric"\nrate = 0.4\n', ""),
    )
    with pytest.raises(SpecError, match=r"small: train\.clean_only .* true labels.*Set noise"):
        train_text(tmp_path / "run", text)
    assert not (tmp_path / "run").exists()


def test_clean_only_uses_the_true_labels_of_the_data(tmp_path):
    rows = "".join(f"{n},{n % 2},{0 if n < 4 else n % 2}\n" for n in range(40))
    (tmp_path / "own.csv").write_text("size,clean,label\n" + rows)  # rows 1 and 3 are wrong
    data = f"kind = 'csv'\npath = '{tmp_path}/own.csv'\ntruth = 'clean'\nheld_out = 0.5"
    text = changed(
        ('kind = "digits"\nper_class = 20', data),
        ('[noise]\nkind = "symmetric"\nrate = 0.4\n', ""),
        ('augment = ["shift"]', "clean_only = true"),
        ('network = "small-cnn"\noptions = { width = 4 }', 'network = "mlp"'),
    )
    own = parse_spec(text)
    train, everything = (
        prepare_data(own.model_copy(update={"train": requested})).splits["train"]
        for requested in (own.train, own.train.model_copy(update={"clean_only": False}))
    )
    np.testing.assert_array_equal(train.labels, train.truth)
    assert len(train) == (everything.labels == everything.truth).sum() < len(everything)


@pytest.mark.parametrize(
    ("test", "note"),
    [
        ([0, 1, 2], None),
        ([0, 1], None),
        ([7, 7, 0], "has the class 7, but 2 of 3 test samples do: no network can predict"),
        ([3, 4, 5, 6, 7, 9], "has the classes 3, 4, 5, 6, 7 and 1 more, but 6 of 6 test"),
        ([3, 4, 5, 6, 7], "has the classes 3, 4, 5, 6, 7, but 5 of 5 test samples do"),
    ],
)
def test_classes_without_training_samples_are_noted(tmp_path, test, note):
    spec = parse_spec(write_table(tmp_path / "mine.npz", [0, 1, 2, 0], test))
    plan = plan_run(spec, tmp_path / "run")
    assert [note in one for one in plan.notes] == ([] if note is None else [True])
    assert train(spec, tmp_path / "run", source="").notes == plan.notes


def test_classes_lost_to_label_noise_are_noted(tmp_path):
    text = write_table(tmp_path / "mine.npz", [0, 1, 2, 0], [0, 1, 2])
    noise = '[noise]\nkind = "map"\nrate = 1\nmapping = [1, 2, 1]\n'
    (note,) = prepare_data(parse_spec(text + noise)).notes
    assert "has the class 0" in note


def test_texts_require_a_network_of_transformers(tmp_path):
    (tmp_path / "train.tsv").write_text("sentence\tlabel\ngood\t1\nbad\t0\n")
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\nfine\t1\npoor\t0\n")
    text = changed(
        ('kind = "digits"\nper_class = 20', f'kind = "sst2"\npath = "{tmp_path}"\ncomplete = false')
    )
    with pytest.raises(SpecError, match="texts require a network of transformers"):
        train_text(tmp_path / "run", text)


def test_a_run_may_hold_out_no_sample(tmp_path):
    text = write_table(tmp_path / "own.npz", [], [])
    np.savez(tmp_path / "own.npz", inputs=np.eye(4), labels=np.array([0, 1, 0, 1]))
    text = text.replace("[train]", "held_out = 0\n[train]")
    with pytest.raises(SpecError, match=r"no test samples to record. Hold out some.*held_out"):
        train(parse_spec(text), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    text += '[record]\nsplits = ["train"]\n'
    result = train(parse_spec(text), tmp_path / "run")
    assert (result.failed, result.notes) == ({}, ())
    assert accord.open(tmp_path / "run").samples == 4


# -- targets -------------------------------------------------------------------------------------

SAMPLES, CLASSES = 200, 10


def shifted_targets(labels, *, by=1):
    """Return certain targets, of the class that follows each label."""
    return np.eye(CLASSES, dtype=np.float32)[(labels + by) % CLASSES]


def save_targets(path, targets):
    content, digest = encode_targets(targets)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return digest


def text_with(digest, *pairs):
    return changed(("epochs = 4", f'epochs = 4\ntargets = "{digest}"'), *pairs)


@pytest.fixture
def labels(whole):
    return Run.open(whole).data.splits["train"].truth


def test_networks_learn_targets_and_record_given_labels(whole, labels, tmp_path):
    digest = save_targets(tmp_path / "run/targets.npy", shifted_targets(labels))
    text = text_with(digest, ("epochs = 4\n", "epochs = 12\n"), ("width = 4", "width = 16"))
    assert train_text(tmp_path / "run", text).failed == {}
    predicted = labels_of(tmp_path / "run", "train")[:, -1]
    assert (predicted == (labels + 1) % CLASSES).mean() > 0.5
    given = Run.open(whole).data.splits["train"].labels
    np.testing.assert_array_equal(Run.open(tmp_path / "run").data.splits["train"].labels, given)


@pytest.mark.slow
def test_a_killed_run_with_targets_resumes_to_the_same_bits(labels, tmp_path):
    targets = np.random.default_rng(0).dirichlet(np.ones(CLASSES), len(labels))
    text = text_with(save_targets(tmp_path / "killed/targets.npy", targets))
    save_targets(tmp_path / "whole/targets.npy", targets)
    kill_run_after(2, text, tmp_path / "killed")
    for out in ("killed", "whole"):
        train_text(tmp_path / out, text)
    for split in ("test", "train"):
        np.testing.assert_array_equal(
            labels_of(tmp_path / "killed", split), labels_of(tmp_path / "whole", split)
        )


def test_samples_with_rows_of_zeros_are_left_out(labels, tmp_path):
    targets = shifted_targets(labels)
    targets[:50] = 0
    spec = parse_spec(text_with(save_targets(tmp_path / "targets.npy", targets)))
    data = Run(tmp_path, spec).data
    assert len(data.splits["train"]) == len(data.targets) == len(labels) - 50
    np.testing.assert_array_equal(data.splits["train"].truth, labels[50:])


def test_extra_samples_follow_the_training_samples(labels, tmp_path):
    images = load_digits().images[:30, np.newaxis]
    np.savez(tmp_path / "extra.npz", inputs=images)
    targets = np.concatenate([shifted_targets(labels), np.full((30, CLASSES), 0.1)])
    digest = save_targets(tmp_path / "targets.npy", targets)
    extra = f'{digest}"\nextra = "{tmp_path / "extra.npz"}'
    spec = parse_spec(text_with(extra, ('splits = ["test", "train"]', "")))
    data = Run(tmp_path, spec).data
    assert len(data.splits["train"]) == len(data.targets) == len(labels) + 30
    np.testing.assert_array_equal(data.splits["train"].inputs[len(labels) :], images)


def test_inputs_of_each_kind_are_joined(tmp_path):
    assert join_inputs(("a",), ("b", "c")) == ("a", "b", "c")
    rows = np.ones((2, 3), np.float32)
    assert join_inputs(rows, rows[:1]).shape == (3, 3)
    first, second = (ImageFiles(tmp_path / name, (f"{name}.png",)) for name in "ab")
    joined = join_inputs(first, second)
    assert [joined.root / name for name in joined.names] == [
        tmp_path / "a/a.png",
        tmp_path / "b/b.png",
    ]
    with pytest.raises(SourceError, match=r"images are files.*give a folder of images"):
        join_inputs(first, np.zeros((1, 3, 256, 256), np.uint8))


@pytest.mark.parametrize(
    ("targets", "match"),
    [
        (np.ones((3, CLASSES)) / CLASSES, r"expected targets of shape \(200, 10\).*got \(3, 10\)"),
        (np.full((SAMPLES, CLASSES), 0.5), "each row must hold probabilities that sum to 1, or ze"),
        (np.full((SAMPLES, CLASSES), np.nan), "each row must hold probabilities"),
        (np.tile([1.5, -0.5, *[0] * 8], (SAMPLES, 1)), "each row must hold probabilities"),
    ],
)
def test_targets_that_do_not_fit_are_refused(tmp_path, targets, match):
    spec = parse_spec(text_with(save_targets(tmp_path / "targets.npy", targets)))
    with pytest.raises(SourceError, match=rf"targets\.npy: {match}"):
        _ = Run(tmp_path, spec).data


def test_missing_and_changed_files_are_refused(tmp_path):
    spec = parse_spec(text_with("0" * 64))
    with pytest.raises(SourceError, match=r"targets cannot be read: .* copy both, or distil again"):
        _ = Run(tmp_path, spec).data
    save_targets(tmp_path / "targets.npy", np.zeros((SAMPLES, CLASSES)))
    with pytest.raises(SourceError, match=r"is not the file that train\.targets of the spec names"):
        _ = Run(tmp_path, spec).data
