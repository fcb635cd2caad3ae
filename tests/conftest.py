def pytest_collection_modifyitems(items):
    """Start slow tests first, so that no worker is left with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
