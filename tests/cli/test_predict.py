import pytest
from recorded import votes_of, winners_by_definition


def test_predict_prints_one_class_per_line(accord, record):
    status, out, _ = accord("predict", record)
    assert status == 0
    assert [int(line) for line in out.splitlines()] == winners_by_definition(
        votes_of(range(3), range(4))
    )


def test_predict_takes_a_rule_networks_and_epochs(accord, record):
    _, out, _ = accord("predict", record, "--networks", "2,0", "--epochs", "1:3")
    expected = winners_by_definition(votes_of([2, 0], [1, 2]))
    assert [int(line) for line in out.splitlines()] == expected
    _, out, _ = accord("predict", record, "--rule", "majority", "--epochs", "2")
    assert [int(line) for line in out.splitlines()] == winners_by_definition(
        votes_of(range(3), [2])
    )


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_predict_writes_files(accord, record, tmp_path, suffix):
    out = tmp_path / f"labels.{suffix}"
    status, printed, err = accord("predict", record, "--out", out)
    assert (status, printed) == (0, "")
    assert "40 labels by max-agreement" in err
    assert out.stat().st_size > 40


def test_a_prediction_for_a_url_is_refused_before_the_record_is_read(accord):
    status, _, err = accord("predict", "nowhere", "--out", "s3://bucket/labels.csv")
    assert status == 2
    assert "labels.csv: is a URL" in err
