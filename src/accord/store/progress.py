"""How a caller is told how far some work is."""

from collections.abc import Callable
from typing import TypeAlias

CountProgress: TypeAlias = Callable[[int, int], None]  # how much is done, of how much
