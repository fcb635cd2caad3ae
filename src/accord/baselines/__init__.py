"""Baseline methods RoG and NPC.

`rog` and `npc` hold one method each and share `_features`, which reads the outputs of a network's
layers. All need torch, so names are loaded when first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.baselines.npc import Npc, fit_npc, predict_npc
    from accord.baselines.rog import Rog, RogHead, fit_head, fit_rog, predict_rog

__all__ = ["Npc", "Rog", "RogHead", "fit_head", "fit_npc", "fit_rog", "predict_npc", "predict_rog"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'accord.baselines' has no attribute {name!r}")
    home = "npc" if "npc" in name.lower() else "rog"
    return getattr(importlib.import_module(f"accord.baselines.{home}"), name)
