"""What a caption claims holds for the record it stands under."""

import re

import pytest

from accord.report._cached_results import Measured
from accord.report._sentences import CAPTIONS

SHAPES = [(3, 8, 120, 4), (1, 8, 60, 2), (5, 1, 60, 3), (2, 3, 1, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", sorted(set(CAPTIONS) - {"agreement"}))
def test_a_caption_is_whole_sentences_for_any_record(make_record, name, shape):
    for wrong in (0, 0.4):
        caption = CAPTIONS[name](Measured(make_record(*shape, wrong=wrong)))
        assert re.fullmatch(r"[A-Z].*\.", caption)
        assert not re.search(r"nan|None|after 1 epochs|  ", caption)


def test_accuracy_caption_names_the_best_and_the_last_epoch(record):
    curve = record.curve("majority")
    best = int(curve.accuracy.argmax())
    caption = CAPTIONS["accuracy"](Measured(record)).replace("\N{NO-BREAK SPACE}", " ")
    assert f"best, {100 * curve.accuracy[best]:.1f} %, after {curve.progress[best]:g} " in caption
    assert f"ends at {100 * curve.accuracy[-1]:.1f} %;" in caption


def test_epochs_caption_names_the_fewest_epochs_that_suffice(record):
    sweep = record.by_epochs()
    enough = [
        k
        for k, share in zip(sweep.sizes, sweep.mean, strict=True)
        if share >= sweep.mean[-1] - 0.01
    ]
    assert f"With {enough[0]} of 8" in CAPTIONS["epochs"](Measured(record))


def test_final_margin_caption_counts_what_trails(record):
    right = record.predict("majority").labels == record.truth
    trails = record.final_margin() < 0
    caption = CAPTIONS["final-margin"](Measured(record)).replace("\N{NO-BREAK SPACE}", " ")
    wrong_share, right_share = 100 * trails[~right].mean(), 100 * trails[right].mean()
    assert f"{wrong_share:.1f} % of the wrong and {right_share:.1f} % of the right" in caption


def test_without_errors_there_is_no_error_consensus(make_record):
    perfect = Measured(make_record(3, 4, 20, 3, wrong=0))
    assert "nothing to share" in CAPTIONS["error-consensus"](perfect)


def test_agreement_caption_names_its_peak(record):
    measured = Measured(record)
    caption = CAPTIONS["agreement"](measured).replace("\N{NO-BREAK SPACE}", " ")
    assert f"highest, {100 * measured.watch.agreement.max():.1f} %" in caption
