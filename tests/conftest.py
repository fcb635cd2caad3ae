"""Settings of all tests."""

from hypothesis import settings

# No deadline: a test must not depend on the speed of the machine.
settings.register_profile("accord", deadline=None)
settings.load_profile("accord")


def pytest_collection_modifyitems(items):
    """Start slow tests first, so that no worker is left with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
