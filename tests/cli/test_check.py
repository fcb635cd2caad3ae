def test_pack_and_check(accord, record, tmp_path):
    assert accord("pack", record, tmp_path / "packed.zip")[0] == 0
    status, out, _ = accord("check", tmp_path / "packed.zip")
    assert (status, out.strip()) == (0, f"{tmp_path}/packed.zip: 12 rows, all can be read")


def test_check_names_a_damaged_row(accord, record, tmp_path):
    (tmp_path / "record/network-001/labels/c.2.0").write_bytes(b"")
    status, out, _ = accord("check", record)
    assert status == 1
    assert "damaged: " in out
    assert "network 1, epoch 2" in out
    assert out.splitlines()[-1].endswith("12 rows, 1 damaged")
