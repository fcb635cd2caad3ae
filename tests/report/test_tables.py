from accord.report.tables import score_json, score_text


def test_the_recommendation_is_told_even_if_that_rule_is_not_scored(record):
    scored = score_json(record, record.score(["majority"]))
    assert list(scored["rules"]) == ["majority"]
    assert scored["recommended"] == "before-overfit"
    assert "recommended" not in score_text(record, record.score(["majority"]))


def test_the_recommended_rule_is_marked_in_the_table(record):
    marked = [line for line in score_text(record, record.score()).splitlines() if "recomm" in line]
    assert len(marked) == 1
    assert marked[0].startswith("before-overfit")
    assert marked[0].endswith("  recommended; from the first 3 of 8 epochs")


def test_what_a_rule_has_to_say_of_its_prediction_is_passed_on(make_record):
    alone = make_record(1, 4, 60, 3)
    scores = alone.score(["max-agreement", "weighted-agreement"])
    fields = score_json(alone, scores)["rules"]
    assert "note" not in fields["max-agreement"]
    assert fields["weighted-agreement"]["note"].startswith("one network alone")
    agreed, weighted = score_text(alone, scores).splitlines()[-2:]
    assert agreed.endswith("  recommended")
    assert "  one network alone" in weighted
