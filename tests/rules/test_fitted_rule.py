"""A fitted rule is kept in a file, and used on the same networks and epochs alone."""

import numpy as np
import pytest
from voting import draw_rows

from accord.errors import ChoiceError, RecordMismatch, SourceError
from accord.rules import find_rule, load_rule
from accord.rules._fitted_rule import UNNAMED, Voters
from accord.store import ArrayReader, NetworkInfo

RULES = ["before-overfit", "dawid-skene", "weighted-agreement"]


class Numbered(ArrayReader):
    """A reader with given numbers and progress."""

    def __init__(self, rows, numbers, progress):
        labels = rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))
        super().__init__(labels, rows.sample_info, name=rows.name)
        self.numbers = tuple(numbers)
        self._progress = tuple(progress)

    def networks_info(self):
        return tuple(
            NetworkInfo(number, self._progress, ({},) * self.epochs) for number in self.numbers
        )


def numbered(numbers=(0, 1, 2, 3), progress=(1, 2, 3, 4, 5, 6), **options):
    return Numbered(draw_rows(**options), numbers, progress)


@pytest.fixture(params=RULES)
def fitted(request):
    return find_rule(request.param).fit(numbered())


@pytest.fixture
def through_a_file(fitted, tmp_path):
    fitted.save(tmp_path / "rule.npz")
    return load_rule(tmp_path / "rule.npz")


def arrays_of(rule, path):
    rule.save(path)
    with np.load(path) as opened:
        return {name: opened[name] for name in opened.files}


def test_a_file_names_networks_and_epochs(fitted, tmp_path):
    rule = find_rule(fitted.name).fit(numbered((7, 3, 4, 5), (0.1, 0.2, 0.5, 1, 2, 3)))
    found = arrays_of(rule, tmp_path / "rule.npz")
    assert found["networks"].tolist() == [7, 3, 4, 5]
    assert found["progress"].tolist() == [0.1, 0.2, 0.5, 1, 2, 3]
    loaded = load_rule(tmp_path / "rule.npz")
    assert loaded.voters == rule.voters == Voters((7, 3, 4, 5), (0.1, 0.2, 0.5, 1, 2, 3))
    assert loaded.caution == ""


def test_other_samples_of_the_same_voters_are_predicted_without_a_note(fitted, through_a_file):
    other = numbered(seed=1, samples=50)
    np.testing.assert_array_equal(through_a_file(other).labels, fitted(other).labels)
    assert through_a_file(other).note == ""


def test_other_epochs_are_refused_and_named(fitted, through_a_file):
    later = numbered(progress=(11, 12, 13, 14, 15, 16.5))
    for rule in (fitted, through_a_file):
        with pytest.raises(
            RecordMismatch,
            match=r"drawn: .* fitted on epochs of progress 1, 2, 3, 4, 5, 6; this record has "
            r"11, 12, 13, 14, 15, 16\.5\. .*only of the same networks and epochs",
        ):
            rule(later)


def test_epochs_that_differ_by_rounding_are_the_same(fitted):
    tenths = tuple(np.cumsum([0.1] * 6))
    rule = find_rule(fitted.name).fit(numbered(progress=tenths))
    rule(numbered(progress=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)))
    with pytest.raises(RecordMismatch, match="epochs of progress"):
        rule(numbered(progress=(0.1, 0.2, 0.3, 0.4, 0.5, 0.601)))


def test_a_file_with_another_number_of_epochs_than_weights_fits_no_record(fitted, tmp_path):
    path = tmp_path / "rule.npz"
    np.savez(path, **(arrays_of(fitted, path) | {"progress": np.array([1.0, 2, 3])}))
    with pytest.raises(RecordMismatch, match="of progress 1, 2, 3; this record has 1, 2, 3, 4"):
        load_rule(path)(numbered())


@pytest.mark.parametrize("numbers", [(4, 5, 6, 7), (1, 0, 2, 3)])
def test_other_networks_or_another_order_are_refused_by_a_rule_that_knows_them(numbers):
    rule = find_rule("dawid-skene").fit(numbered())
    listed = ", ".join(map(str, numbers))
    with pytest.raises(
        RecordMismatch,
        match=f"on networks 0, 1, 2, 3; this record has {listed}. It predicts",
    ):
        rule(numbered(numbers))


def test_weights_of_epochs_are_for_any_networks():
    rule = find_rule("weighted-agreement").fit(numbered())
    assert len(rule(numbered((4, 5, 6, 7)))) == 600
    assert len(rule(numbered((8, 9), networks=2))) == 600


def test_many_epochs_are_named_by_the_first_and_the_last():
    options = {"accuracies": (0.9,) * 9}
    rule = find_rule("weighted-agreement").fit(numbered(progress=range(1, 10), **options))
    with pytest.raises(RecordMismatch, match="this record has 3, 4, 5, 6, …, 11"):
        rule(numbered(progress=range(3, 12), **options))


def test_one_epoch_is_in_the_singular():
    rule = find_rule("weighted-agreement").fit(draw_rows(accuracies=(0.9,)))
    with pytest.raises(RecordMismatch, match="fitted on 1 epoch; this record has 6"):
        rule(draw_rows())


def test_an_older_file_has_a_note(fitted, tmp_path):
    kept = arrays_of(fitted, tmp_path / "rule.npz")
    old = {name: kept[name] for name in kept if name not in ("networks", "progress")}
    np.savez(tmp_path / "old.npz", **old)
    loaded = load_rule(tmp_path / "old.npz")
    predicted = loaded(numbered((4, 5, 6, 7), progress=range(11, 17)))
    assert predicted.note == UNNAMED
    assert loaded.voters is None
    with pytest.raises(RecordMismatch, match="fitted on 6 epochs; this record has 7"):
        loaded(draw_rows(accuracies=(0.9,) * 7))


DAMAGED = {
    "a version that is a word": (
        {"version": np.array("x")},
        "in format x; this Accord reads",
    ),
    "two versions": ({"version": np.array([1, 1])}, "this Accord reads format 1"),
    "no weights": ({"weights": np.zeros(0)}, r"weights must be numbers of shape \(any\)"),
    "a table of weights": ({"weights": np.ones((2, 3))}, r"float64 of shape \(2, 3\)"),
    "one weight": ({"weights": np.array(1.0)}, r"of shape \(any\); got float64 of shape \(\)"),
    "words": ({"weights": np.array(["a"] * 6)}, r"weights must be numbers.*got <U1"),
    "nan": ({"weights": np.full(6, np.nan)}, r"weights must be finite and at least 0"),
    "infinity": ({"weights": np.full(6, np.inf)}, "weights must be finite"),
    "negative": ({"weights": -np.ones(6)}, "at least 0; got -1.0..-1.0"),
    "networks that are words": ({"networks": np.array(["a"] * 4)}, "networks must be whole"),
    "networks with parts": ({"networks": np.ones(4)}, "networks must be whole numbers"),
    "a table of networks": ({"networks": np.ones((2, 2), int)}, r"whole numbers \(network,\)"),
    "progress that is nan": ({"progress": np.full(6, np.nan)}, "progress must be finite"),
    "progress that is words": ({"progress": np.array(["a"] * 6)}, "progress must be finite"),
    "a table of progress": ({"progress": np.ones((2, 3))}, r"progress must be finite .*\(epoch,\)"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_refused_by_name(fitted, tmp_path, damage):
    changed, words = DAMAGED[damage]
    path = tmp_path / "rule.npz"
    np.savez(path, **(arrays_of(fitted, path) | changed))
    with pytest.raises(SourceError, match=rf"rule\.npz: .*{words}.*(accord fit|Fit it again)"):
        load_rule(path)


def test_weights_that_are_all_zero_are_refused(tmp_path):
    path = tmp_path / "rule.npz"
    kept = arrays_of(find_rule("weighted-agreement").fit(numbered()), path)
    np.savez(path, **(kept | {"weights": np.zeros(6)}))
    with pytest.raises(SourceError, match="must not all be 0"):
        load_rule(path)


ANNOTATORS = {
    "prior of another length": ({"prior": np.full(3, 1 / 3)}, r"confusion .*\(any, any, 3, 3\)"),
    "a prior of 0": ({"prior": np.array([0, 0.5, 0.25, 0.25])}, "must be above 0"),
    "a prior that is nan": ({"prior": np.full(4, np.nan)}, "prior must be finite"),
    "a prior of words": ({"prior": np.array(["a"] * 4)}, "prior must be numbers"),
    "matrices of three axes": ({"confusion": np.ones((4, 4, 4))}, r"\(any, any, 4, 4\); got"),
    "matrices of nan": ({"confusion": np.full((4, 6, 4, 4), np.nan)}, "confusion must be finite"),
    "matrices of 0": ({"confusion": np.zeros((4, 6, 4, 4))}, "must be above 0"),
    "fewer groups": ({"confusion": np.ones((4, 2, 4, 4))}, r"whole numbers in 0\.\.1"),
    "one group too few": ({"confusion": np.ones((4, 5, 4, 4))}, r"whole numbers in 0\.\.4"),
    "other groups": ({"groups": np.zeros(5, int)}, r"groups must be numbers of shape \(6\)"),
    "groups with parts": ({"groups": np.full(6, 0.5)}, "groups must be whole numbers"),
    "negative groups": ({"groups": np.full(6, -1)}, "groups must be finite and at least 0"),
}  # fmt: skip


@pytest.mark.parametrize("damage", ANNOTATORS)
def test_annotators_that_are_none_are_refused(tmp_path, damage):
    changed, words = ANNOTATORS[damage]
    path = tmp_path / "rule.npz"
    kept = arrays_of(find_rule("dawid-skene").fit(numbered()), path)
    np.savez(path, **(kept | changed))
    with pytest.raises(SourceError, match=words):
        load_rule(path)


@pytest.mark.parametrize("text", ["no archive", "sample,label\n0,1\n"])
def test_the_message_never_advises_to_unpickle(tmp_path, text):
    path = tmp_path / "rule.npz"
    path.write_text(text)
    with pytest.raises(SourceError, match=r"not a readable \.npz file: .* `accord fit`") as caught:
        load_rule(path)
    assert "pickle" not in str(caught.value)


def test_a_missing_file_raises(tmp_path):
    with pytest.raises(SourceError, match=r"not a readable \.npz file: No such file or directory"):
        load_rule(tmp_path / "rule.npz")


def test_a_rule_is_kept_in_the_home_folder_and_not_at_a_url(fitted, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    fitted.save("~/rule.npz")
    assert load_rule("~/rule.npz").name == fitted.name
    with pytest.raises(ChoiceError, match=r"rule\.npz: is a URL.*only be written locally"):
        fitted.save("s3://bucket/rule.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["rule.npz"]
