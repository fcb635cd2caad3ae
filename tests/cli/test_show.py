import json


def test_show(accord, record):
    status, out, _ = accord("show", record)
    assert status == 0
    assert "3 networks, 4 epochs" in out
    assert "40 samples of the test split, 5 classes" in out
    shown = json.loads(accord("show", record, "--json")[1])
    assert shown["epochs"] == {"0": 4, "1": 4, "2": 4}
    assert shown["about"].keys() == shown["epochs"].keys()
    assert "metadata" not in shown
