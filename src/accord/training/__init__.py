"""Train the networks of a spec and record every epoch.

A spec (`_spec`, `_spec_toml`) names data, networks, losses and the recording schedule. `train`
(`_train_run`) opens the run folder (`_run_folder`) and gives its unfinished networks to an
executor: `_lockstep` on a GPU, `_workers` on several cores, or one after the other. Each of them
trains a network as `_network_run` does, with the readable loop of `_loop`. Names are loaded when
first used, so that reading a spec needs no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from accord.errors import missing_extra

if TYPE_CHECKING:
    from accord.training._network_run import Progress
    from accord.training._plan import plan_run
    from accord.training._run_folder import Run
    from accord.training._spec import (
        NetworkSpec,
        OptimizerSpec,
        RecordSpec,
        Spec,
        network_specs,
        registered_names,
    )
    from accord.training._spec_from_data import spec_from_data
    from accord.training._spec_toml import dump_spec, load_spec, parse_spec
    from accord.training._train_run import OnProgress, RunResult, default_out, train

__all__ = [
    "NetworkSpec",
    "OnProgress",
    "OptimizerSpec",
    "Progress",
    "RecordSpec",
    "Run",
    "RunResult",
    "Spec",
    "default_out",
    "dump_spec",
    "load_spec",
    "network_specs",
    "parse_spec",
    "plan_run",
    "registered_names",
    "spec_from_data",
    "train",
]

_EXPORTS = {
    "_network_run": ("Progress",),
    "_plan": ("plan_run",),
    "_run_folder": ("Run",),
    "_spec": (
        "NetworkSpec",
        "OptimizerSpec",
        "RecordSpec",
        "Spec",
        "network_specs",
        "registered_names",
    ),
    "_spec_from_data": ("spec_from_data",),
    "_spec_toml": ("dump_spec", "load_spec", "parse_spec"),
    "_train_run": ("OnProgress", "RunResult", "default_out", "train"),
}
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'accord.training' has no attribute {name!r}")
    try:
        module = importlib.import_module(f"accord.training.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        raise missing_extra(
            f"accord.training.{name}", str(error.name), extra="train", cause=error
        ) from error
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
