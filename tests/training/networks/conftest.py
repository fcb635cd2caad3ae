from one_thread import one_thread  # noqa: F401 -- for every test here
