"""A fixture for tests that train."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tests run side by side: more threads than cores would only wait for each other."""
    torch.set_num_threads(1)
