import json


def test_every_second_epoch_can_be_packed(accord, record, tmp_path):
    half = tmp_path / "half.zip"
    assert accord("pack", record, half, "--epochs", "1::2")[0] == 0
    selected = accord("predict", record, "--epochs", "1::2")
    assert accord("predict", half) == selected
    shown = json.loads(accord("show", half, "--json")[1])
    assert shown["epochs"] == {"0": 2, "1": 2, "2": 2}
    status, _, message = accord("pack", record, tmp_path / "back.zip", "--epochs", "::-1")
    assert (status, "must ascend" in message) == (2, True)
    assert accord("pack", record, tmp_path / "none.zip", "--epochs", "9:")[0] == 2


def test_networks_can_be_chosen_to_be_packed_and_reported(accord, record, tmp_path):
    one, page = tmp_path / "one.zip", tmp_path / "one.html"
    assert accord("pack", record, one, "--networks", "1")[0] == 0
    assert list(json.loads(accord("show", one, "--json")[1])["epochs"]) == ["1"]
    assert accord("report", record, "--networks", "1", "--out", page)[0] == 0
    assert "<dt>networks</dt><dd>1</dd>" in "".join(page.read_text().split())
    assert accord("pack", record, tmp_path / "none.zip", "--networks", "7")[0] == 2
