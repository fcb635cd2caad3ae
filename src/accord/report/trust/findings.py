"""What the report says of trust, of each network, and of what was forgotten."""

from collections.abc import Sequence
from typing import Any, Final

from accord.analysis import Member, good_networks
from accord.analysis.bad_members import chance_error
from accord.report.measured import FIRST, SECOND, Measured
from accord.report.trust.figures import RISKS, coverage_at

MOST_NETWORKS: Final = 30  # that are listed; above, those that agree least
RULES: Final = {SECOND: "max agreement", FIRST: "the majority vote"}
KINDS: Final = {
    "good": "",
    "random": "agrees with no other network beyond chance",
    "constant": "nearly all of its votes are for one class",
    "diverged": "agreed as well as the others once, and no more",
    "weak": "agrees with others, but less than half as much as they do",
}


def trust_finding(measured: Measured) -> dict[str, Any] | None:
    """Return how much can be answered at small risks; None where the truth is not known."""
    if measured.record.truth is None:
        return None
    curve = measured.risks[SECOND]
    return {
        "risks": [
            {"risk": f"{100 * risk:g} %", "answered": _answered(coverage_at(curve, risk))}
            for risk in RISKS
        ],
        "trained_on": measured.record.rows.facts.trained_on,
    }


def networks_finding(measured: Measured) -> dict[str, Any] | None:
    """Return each network as the others see it, and what leaving bad ones out changes.

    None of one network alone.
    """
    record = measured.record
    if record.networks < 2:
        return None
    found = measured.members
    shown = sorted(found, key=lambda one: (one.good, one.agreement))[:MOST_NETWORKS]
    bad = [one for one in found if not one.good]
    accuracies = _accuracies(measured)
    return {
        "rows": [
            _row(one, accuracies) for one in sorted(shown, key=lambda one: (one.good, one.network))
        ],
        "networks": len(found),
        "scored": bool(accuracies),
        "sentence": _sentence(measured, bad),
        "left_out": _left_out(measured) if bad else None,
    }


def forgotten_finding(measured: Measured) -> dict[str, Any] | None:
    """Return how much was forgotten; None of one epoch alone, or without the truth."""
    record = measured.record
    if record.truth is None or record.epochs < 2:
        return None
    found = measured.forgetting
    gone = len(found.forgotten)
    if not gone:
        return {"forgotten": None}
    return {
        "forgotten": f"{gone:,}",
        "samples": f"{record.samples:,}",
        "share": f"{100 * found.share:.1f} %",
        "remembered": f"{measured.remembered:,}",
        "lost": f"{gone - measured.remembered:,}",
        "rescued": f"{100 * measured.remembered / gone:.1f} %",
    }


def _answered(coverage: float | None) -> str:
    if coverage is None:
        return "none"
    return "all" if coverage == 1 else f"{100 * coverage:.1f} %"


def _accuracies(measured: Measured) -> dict[int, float]:
    """Return each network's accuracy at the last epoch by its number; nothing without truth."""
    if measured.record.truth is None:
        return {}
    single = next(one for one in measured.scores if one.per_network is not None)
    return dict(zip(measured.record.rows.numbers, single.per_network or (), strict=True))


def _row(one: Member, accuracies: dict[int, float]) -> dict[str, Any]:
    return {
        "network": one.network,
        "kind": one.kind,
        "good": one.good,
        "why": KINDS[one.kind],
        "agreement": one.agreement,
        "at": min(1.0, max(0.0, one.agreement)),
        "accuracy": accuracies.get(one.network),
    }


def _sentence(measured: Measured, bad: Sequence[Member]) -> str:
    record = measured.record
    if bad:
        named = ", ".join(f"network {one.network} ({one.kind})" for one in bad)
        does = "does" if len(bad) == 1 else "do"
        return f"{len(bad)} of {record.networks} {does} not vote with the rest: {named}."
    if max(one.agreement for one in measured.members) <= chance_error(record.rows):
        return (
            "No two networks agree beyond chance, so that none can be told from the rest: "
            "have they learnt anything yet?"
        )
    if record.networks == 2:
        return "They vote together. Of two that did not, it could not be told which is bad."
    return f"All {record.networks} vote with the others."


def _left_out(measured: Measured) -> dict[str, Any]:
    """Return what max agreement and the majority vote of the good networks alone would change."""
    record = measured.record
    good = good_networks(record.rows)
    kept = record.select(networks=good)
    now = {
        rule: (record.predict(rule).labels, kept.predict(rule).labels) for rule in (SECOND, FIRST)
    }
    before, after = now[SECOND]
    truth = record.truth
    return {
        "moved": f"{int((before != after).sum()):,}",
        "samples": f"{record.samples:,}",
        "keep": ",".join(map(str, good)),
        "accuracies": None
        if truth is None
        else [
            {
                "rule": RULES[rule],
                "before": f"{100 * float((first == truth).mean()):.1f} %",
                "after": f"{100 * float((second == truth).mean()):.1f} %",
            }
            for rule, (first, second) in now.items()
        ],
    }
