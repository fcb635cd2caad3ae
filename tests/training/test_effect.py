"""The effect itself, on a small real case: max agreement undoes what the majority forgot."""

from pathlib import Path

import pytest

import accord
from accord.training import parse_spec, train

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.toml"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_max_agreement_beats_the_majority_by_three_points(seed, tmp_path):
    text = EXAMPLE.read_text()
    text = text.replace('kind = "digits"', f'kind = "digits"\nseed = {seed}')
    text = text.replace("networks = 5", f"networks = 5\nseed = {seed}")
    text = text.replace('splits = ["test", "train"]', 'splits = ["test"]')
    three = [0, 1, 2]  # of the example's five: enough to disagree
    train(parse_spec(text), tmp_path / "run", source=text, networks=three)
    scores = {one.rule: one.accuracy for one in accord.open(tmp_path / "run/test").score()}
    assert scores["max-agreement"] >= scores["majority"] + 0.03, scores
    assert scores["single"] < scores["majority"]
