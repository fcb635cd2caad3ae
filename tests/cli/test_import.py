import json

import numpy as np
from recorded import labels_of, votes_of, winners_by_definition


def test_import_then_score(accord, tmp_path):
    np.savez(tmp_path / "logs.npz", labels=votes_of(range(3), range(4)), truth=labels_of(9, 9))
    status, out, err = accord("import", tmp_path / "logs.npz", tmp_path / "made")
    assert (status, out) == (0, "")
    assert "Next: accord score" in err
    scored = json.loads(accord("score", tmp_path / "made", "--json")[1])
    assert scored["rules"]["max-agreement"]["accuracy"] == np.mean(
        winners_by_definition(votes_of(range(3), range(4))) == labels_of(9, 9)
    )


def test_a_path_with_a_space_is_quoted_in_a_printed_command(accord, tmp_path):
    np.savez(tmp_path / "logs.npz", labels=np.zeros((1, 2, 3), np.uint8))
    place = tmp_path / "my record"
    status, _, err = accord("import", tmp_path / "logs.npz", place, "--classes", "2")
    assert status == 0
    assert err.endswith(f"Next: accord score '{place}'\n")
