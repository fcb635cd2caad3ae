import numpy as np
from memorised import memorised_rows

from accord.analysis._audit._audit import audit, never_predicted, suspect_unpredicted
from accord.store import ArrayReader, SampleInfo
from accord.store import _record_reader as rows

GIVEN = np.array([2, 2, 0, 3, 2])


def votes():
    """Two networks, three epochs; class 2 is predicted at the last two, class 3 never."""
    return np.array(
        [
            [[0, 0, 0, 0, 0], [2, 0, 0, 0, 0], [2, 0, 0, 1, 0]],
            [[0, 0, 0, 0, 0], [2, 2, 0, 0, 0], [2, 0, 0, 1, 2]],
        ]
    )


def test_labels_are_suspicious_by_the_votes_since_their_class_is_predicted():
    found = suspect_unpredicted(
        ArrayReader(votes(), SampleInfo(5, 4)), GIVEN, np.array([2, 3]), rate=0.1
    )
    against = np.array([0, 3 / 4, 3 / 4])  # of the votes at two epochs
    np.testing.assert_allclose(found[[0, 1, 4]], 0.1 * against / against.mean())
    assert np.isnan(found[[2, 3]]).all()
    assert never_predicted(GIVEN, found, np.array([2, 3])) == (3,)


def test_no_such_label_is_flagged():
    found = suspect_unpredicted(
        ArrayReader(votes(), SampleInfo(5, 4)), GIVEN, np.array([2]), rate=0.9
    )
    assert found[[0, 1, 4]].tolist() == [0, 0.5, 0.5]


def test_labels_that_nobody_contradicts_are_not_suspicious():
    labels = np.full((2, 3, 5), 2)
    found = suspect_unpredicted(
        ArrayReader(labels, SampleInfo(5, 4)), GIVEN, np.array([2]), rate=0.9
    )
    assert found[[0, 1, 4]].tolist() == [0, 0, 0]


def test_blocks_make_no_difference(monkeypatch):
    record = memorised_rows().select()
    given, classes = record.sample_info.given, np.array([1, 3])
    whole = suspect_unpredicted(record, given, classes, rate=0.2)
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows, "LEAST_BLOCK", 70)
    np.testing.assert_array_equal(whole, suspect_unpredicted(record, given, classes, rate=0.2))


def late_class_rows():
    """Class 4 is said for the first time when all other labels are known by heart."""
    record = memorised_rows(samples=2000)
    labels = record.read_labels(range(4), range(12), slice(None)).copy()
    labels[:, :11][labels[:, :11] == 4] = 0
    generator = np.random.default_rng(0)
    given, truth = record.sample_info.given, record.truth()
    taught = (given == 4) & ((truth == 4) | (generator.random(2000) < 0.2))
    labels[:, 11] = np.where((given == 4) & ~taught, 0, given)
    return ArrayReader(labels, record.sample_info)


def test_a_class_that_is_learnt_late_is_ranked_by_later_votes():
    record = late_class_rows()
    found, given = audit(record), record.sample_info.given
    assert (found.unpredicted, found.never_predicted) == ((4,), ())
    of_class = given == 4
    assert not found.flagged[of_class].any()
    wrong = (given != record.truth())[of_class]
    suspicion = found.suspicion[of_class]
    assert suspicion[wrong].mean() > 2 * suspicion[~wrong].mean()
    assert 0 < suspicion.mean() < found.flagged.mean()


def test_such_labels_are_as_often_wrong_as_all_others(monkeypatch):
    rates = []

    def remember(*args, rate):
        rates.append(rate)
        return suspect_unpredicted(*args, rate=rate)

    monkeypatch.setattr("accord.analysis._audit._audit.suspect_unpredicted", remember)
    record = late_class_rows()
    found = audit(record)
    assert rates == [found.flagged[record.sample_info.given != 4].mean()]


def test_where_there_are_no_others_nothing_is_suspected():
    """All say class 0, which no label is, until all are known by heart."""
    given = np.arange(40) % 2 + 1
    labels = np.zeros((2, 3, 40), int)
    labels[:, 1:] = given
    found = audit(ArrayReader(labels, SampleInfo(40, 3, split="train", given=given)))
    assert found.unpredicted == (1, 2)
    assert not found.suspicion.any()
