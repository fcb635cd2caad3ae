import json


def test_networks_are_removed_and_shown_no_more(accord, record):
    assert accord("remove", record, "--networks", "2,0")[::2] == (
        0,
        f"{record}: 2 networks removed\n",
    )
    assert json.loads(accord("show", record, "--json")[1])["epochs"] == {"1": 4}
    status, _, err = accord("remove", record, "--networks", "2")
    assert (status, "no network 2; there are 1" in err) == (2, True)
    assert accord("remove", record)[0] == 2
