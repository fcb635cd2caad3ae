"""What was found where no network is trained, in a few lines."""

from collections.abc import Callable, Mapping
from typing import Any, Final

Numbers = Mapping[str, Any]
MORE: Final = "what that means: docs/explanation/theory.md"


def finding_of(target: str, numbers: Numbers) -> list[str]:
    """Say what a target's numbers show; nothing for a target that trains networks.

    >>> wrong = {"networks": [0.02, 0.05], "majority": 0.018, "max-agreement": 0.015}
    >>> finding_of("figure9", {"wrong": wrong, "epochs": 18, "false": {"agreement": 0.2}})[0]
    'wrong in % of the plane: the networks 2.0, 5.0; their majority 1.8; max agreement 1.5'
    """
    return FINDINGS[target](numbers) if target in FINDINGS else []


def _theory(numbers: Numbers) -> list[str]:
    lemmas = [_signs(numbers["signs"]), _contraction(numbers["contraction"])]
    lemmas.append(_limits(numbers["limits"]))
    shared, own = (numbers["outcomes"][name] for name in ("shared", "own-noise"))
    held = sum(holds for holds, _ in lemmas)
    first = "the lemmas hold" if held == len(lemmas) else f"{held} of {len(lemmas)} lemmas hold"
    does = "does too" if shared["rose"] == shared["overfit"] else "does not"
    return [
        f"{first}; the theorem's conclusion {does}, in its own setting",
        *(line for _, line in lemmas),
        f"theorem, one training set for all: disagreement rises in {_of(shared)} steps where all "
        f"networks overfit; each with label noise of its own: in {_of(own)}",
        MORE,
    ]


def _of(outcome: Numbers) -> str:
    return f"{outcome['rose']} of {outcome['overfit']}"


def _signs(found: list[Numbers]) -> tuple[bool, str]:
    smallest = min(found, key=lambda one: float(one["rate"]))
    exactly = sum(one["missed_exactly"] for one in found)
    return exactly == 0, (
        f"lemma 1, when a network overfits: misses {smallest['missed']} of {smallest['steps']} "
        f"steps at rate {smallest['rate']:g}, and with its term of second order {exactly} at any"
    )


def _contraction(found: list[Numbers]) -> tuple[bool, str]:
    below = [one for one in found if one["rate"] < 2]
    draws, contracting = (sum(one[key] for one in below) for key in ("draws", "contracting"))
    return draws == contracting, (
        f"lemma 2, training contracts: in {contracting} of {draws} draws at rates below 2"
    )


def _limits(found: list[Numbers]) -> tuple[bool, str]:
    draws, within = (sum(one[key] for one in found) for key in ("draws", "within_bound"))
    return draws == within, (
        f"lemma 3, the mean network tends to the closed form: within its bound in {within} of "
        f"{draws} draws"
    )


def _toy(numbers: Numbers) -> list[str]:
    wrong = {name: 100 * wrong for name, wrong in numbers["wrong"].items() if name != "networks"}
    networks = ", ".join(f"{100 * one:.1f}" for one in numbers["wrong"]["networks"])
    agreement = numbers["false"]["agreement"]
    answer = "right" if agreement < 0.5 else "wrong"
    return [
        f"wrong in % of the plane: the networks {networks}; their majority "
        f"{wrong['majority']:.1f}; max agreement {wrong['max-agreement']:.1f}",
        f"at the false label all networks are wrong in the end; {agreement:.0%} of their votes "
        f"over {numbers['epochs']} epochs are for it, so max agreement is {answer} there",
        MORE,
    ]


FINDINGS: Final[Mapping[str, Callable[[Numbers], list[str]]]] = {"theory": _theory, "figure9": _toy}
