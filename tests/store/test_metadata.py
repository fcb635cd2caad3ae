"""A run folder stands for one of its records."""

import pytest
from recorded import write_record

import accord
from accord.errors import ChoiceError, NotARecord
from accord.store import describe, open_reader, pack_record, record_paths


@pytest.fixture
def run(tmp_path):
    for split in ("test", "train"):
        write_record(tmp_path / "run" / split, split=split)
    write_record(tmp_path / "run" / "test-ema")
    (tmp_path / "run" / "spec.toml").write_text("")
    (tmp_path / "run" / "notes.zip").write_text("no zip file")
    return tmp_path / "run"


def test_a_run_stands_for_its_test_split(run):
    assert open_reader(run).name == str(run / "test")
    assert accord.open(run).split == "test"
    assert describe(run).path == str(run / "test")


def test_another_split_can_be_named_or_preferred(run):
    assert accord.open(run, split="train").split == "train"
    assert open_reader(run, split="test-ema").name == str(run / "test-ema")
    assert open_reader(run, first="train").name == str(run / "train")
    assert open_reader(run, first="validation").name == str(run / "test")


def test_a_missing_split_is_refused_with_those_there_are(run):
    with pytest.raises(ChoiceError, match=r"records test, test-ema, train; there is no validation"):
        accord.open(run, split="validation")


def test_the_split_of_a_record_itself_is_checked(run):
    assert accord.open(run / "test", split="test").split == "test"
    with pytest.raises(ChoiceError, match="holds the split test, not train"):
        accord.open(run / "test", split="train")


def test_the_only_record_is_used_and_several_are_not_guessed(tmp_path):
    write_record(tmp_path / "run" / "validation", split="validation")
    assert accord.open(tmp_path / "run").split == "validation"
    write_record(tmp_path / "run" / "train", split="train")
    with pytest.raises(
        ChoiceError, match=r"choose one: --split train, or open\(…, split='train'\)"
    ):
        accord.open(tmp_path / "run")


def test_a_packed_split_is_found(run, tmp_path):
    (tmp_path / "packed").mkdir()
    pack_record(run, tmp_path / "packed" / "train.zip", split="train")
    assert accord.open(tmp_path / "packed").split == "train"


def test_a_folder_of_unrelated_records_is_no_run(tmp_path):
    write_record(tmp_path / "runs" / "mine")
    assert record_paths(tmp_path / "runs") == {}
    with pytest.raises(NotARecord, match=r"it has no zarr\.json"):
        accord.open(tmp_path / "runs")
