"""Targets replace the labels of the training samples."""

import numpy as np
import pytest
from killing import kill_run_after
from small_run import changed, labels_of, train_text

from accord.data import ImageFiles, load_digits
from accord.errors import SourceError
from accord.training import Run, parse_spec
from accord.training._soft_targets import encode_targets, join_inputs

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
