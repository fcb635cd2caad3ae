"""Make a recorder a callback of its framework when it is built, not when it is imported."""

import functools
import importlib
import sys
from typing import Any, ClassVar, Self

from accord.errors import ExtraMissing


class FrameworkCallback:
    """A callback whose framework is imported with the first one that is built.

    So importing it does not load the framework; and where one framework goes by two names, the
    name that a script has imported is taken.
    """

    modules: ClassVar[tuple[str, ...]]  # where the framework's own class of callbacks may be
    base: ClassVar[str]  # what it is called there
    extra: ClassVar[str]

    def __new__(cls, *_: Any, **__: Any) -> Self:  # noqa: D102
        module = import_framework(cls.modules, cls.extra)
        mine: Any = cls
        joined: type[Self] = _join(mine, getattr(module, cls.base))
        return super().__new__(joined)

    def __reduce__(self) -> tuple[Any, ...]:
        # The joined class is made at run time, where pickle cannot find it.
        mine = next(one for one in type(self).__mro__ if one.__module__ != _JOINED)
        return _build, (mine,), self.__dict__


def import_framework(modules: tuple[str, ...], extra: str) -> Any:
    """Return the first of some modules that is loaded already, or else that can be."""
    for name in (*(name for name in modules if name in sys.modules), *modules):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            failure = error
    raise ExtraMissing(
        f"accord.{extra} needs {modules[-1].partition('.')[0]}, which cannot be imported here: "
        f"{failure}. To install it: pip install 'accord[{extra}]'"
    ) from failure


_JOINED = f"{__name__}.joined"


@functools.cache
def _join(mine: Any, base: Any) -> Any:
    if issubclass(mine, base):
        return mine
    return type(mine.__name__, (mine, base), {"__module__": _JOINED, "__doc__": mine.__doc__})


def _build(mine: type[FrameworkCallback]) -> FrameworkCallback:
    return mine.__new__(mine)
