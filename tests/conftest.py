def pytest_collection_modifyitems(items):
    """Begin with what takes long, lest one process is left with it in the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
