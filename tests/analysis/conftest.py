from record_fixtures import hard, make_hard, make_record, record  # noqa: F401 -- fixtures
