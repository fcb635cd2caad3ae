"""Text and JSON output of the commands on records."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from accord.analysis import TRAINED_ON, NetworkHealth, Overview, Score, Scores, Watch
from accord.errors import counted
from accord.report._text_table import one_line, text_table
from accord.store import Description

MOST_NAMES: Final = 20  # classes, listed by `show`
MOST_EPOCHS: Final = 25  # lines of an agreement curve
AGAINST_GIVEN: Final = (
    "No true labels are known. Agreement is that of the predicted labels with the given ones, some "
    "of which may be wrong: it is not accuracy."
)
ESTIMATED: Final = (
    "Corrected is the accuracy estimated from the votes and these labels, with its 95 % interval. "
    "It assumes that labels are wrong at random; where classes overlap, it is too high."
)
BAR: Final = 40  # characters of an agreement of 1


def description_text(description: Description) -> str:
    """Describe a record in a few lines."""
    lengths = description.epochs
    counts = sorted(set(lengths.values()))
    if len(counts) == 1:
        epochs = counted(counts[0], "epoch")
    else:
        each = ", ".join(f"network {number}: {length}" for number, length in lengths.items())
        epochs = f"unequal numbers of epochs ({each})" if lengths else "no epochs yet"
    made_with = ", ".join(f"{name} {version}" for name, version in description.made_with.items())
    lines = [
        description.path,
        f"  {counted(len(lengths), 'network')}, {epochs}",
        f"  {counted(description.samples, 'sample')} of the {description.split} split, "
        f"{counted(description.classes, 'class')}",
        f"  holds: labels{''.join(f', {name}' for name in description.has)}",
        f"  form: {'packed' if description.packed else 'one object per row'}, "
        f"format {description.format}{_size(description.size)}",
        f"  {'packed' if description.packed else 'begun'}: {description.created or 'unknown'}",
        f"  recorded with: {made_with or 'unknown'}",
    ]
    if description.missing:
        lines.append(f"  missing votes: {100 * description.missing:.2g} %")
    if description.class_names and len(description.class_names) <= MOST_NAMES:
        lines.append(f"  classes: {', '.join(map(one_line, description.class_names))}")
    first = next((one for one in description.metadata.values() if one), None)
    if first:
        lines.append(f"  metadata: {', '.join(f'{key} {value}' for key, value in first.items())}")
    return "\n".join(lines)


def _size(size: int | None) -> str:
    if size is None:
        return ""
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f", {size:.0f} {unit}"
        size = round(size / 1000)
    return f", {size} GB"


def heading(overview: Overview, *, classes: bool = False) -> str:
    """Format the path and size of a record in one line."""
    sizes = [
        counted(overview.networks, "network"),
        counted(overview.epochs, "epoch"),
        counted(overview.samples, "sample"),
    ]
    sizes += [counted(overview.classes, "class")] if classes else []
    return f"{overview.path}: {', '.join(sizes)}"


def record_json(overview: Overview) -> dict[str, Any]:
    """Build the common part of the JSON documents of a record."""
    sizes = {name: getattr(overview, name) for name in ("networks", "epochs", "samples", "classes")}
    return {"record": overview.path, **sizes}


def score_json(overview: Overview, found: Scores) -> dict[str, Any]:
    document = record_json(overview) | {
        "reference": overview.sample_info.reference,
        "recommended": found.recommended,
        "notes": list(found.notes),
        "rules": {one.rule: _score_fields(one) for one in found.scores},
    }
    if found.gain is not None:
        names = ("difference", "low", "high", "p_value")
        document["gain"] = {name: getattr(found.gain, name) for name in names}
    return document | ({"left_out": dict(found.left_out)} if found.left_out else {})


def _score_fields(one: Score) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "accuracy": one.accuracy,
        "balanced_accuracy": one.balanced_accuracy,
        "oracle": one.oracle,
    }
    if one.corrected is not None:
        names = {"accuracy": "value", "low": "low", "high": "high"}
        fields["corrected"] = {name: getattr(one.corrected, key) for name, key in names.items()}
    if one.coverage < 1:
        fields["coverage"] = one.coverage
    if one.per_network is not None:
        fields["per_network"] = list(one.per_network)
    for name in ("selective_accuracy", "epoch", "progress"):
        if getattr(one, name) is not None:
            fields[name] = getattr(one, name)
    if one.note:
        fields["note"] = one.note
    return fields


def score_text(overview: Overview, found: Scores, *, colour: bool = False) -> str:
    """Format scores as a headline and a table in percent."""
    given = overview.sample_info.reference == "given"
    lines = [heading(overview, classes=True), ""]
    sentences = [AGAINST_GIVEN] if given else []
    sentences += [ESTIMATED] if any(one.corrected for one in found.scores) else []
    for text in (headline(overview, found), *sentences):
        lines += [*textwrap.wrap(text, 88), ""] if text else []
    return "\n".join([*lines, *_score_table(overview, found, colour=colour)])


def _score_table(overview: Overview, found: Scores, *, colour: bool) -> list[str]:
    recommended = found.recommended
    best = max((one.accuracy for one in found.scores if not one.oracle), default=0.0)
    estimated = any(one.corrected for one in found.scores)
    rows, styles = [], []
    for one in found.scores:
        notes = "recommended" * (one.rule == recommended), score_note(overview, one)
        shares = [f"{100 * one.accuracy:.2f}"]
        shares += [estimate_text(one)] if estimated else []
        shares += [f"{100 * one.balanced_accuracy:.2f}"]
        rows.append((one.rule, *shares, "; ".join(filter(None, notes))))
        style = "bold " * (one.accuracy == best) + "green" * (one.rule == recommended)
        styles.append("dim" if one.oracle else style)
    measured = measured_name(overview).partition(" ")[0]
    heads = ("rule", measured, *["corrected"] * estimated, "balanced", "")
    right = range(1, len(heads) - 1)
    return text_table(heads, rows, right=right, wrap=True, styles=styles if colour else None)


def measured_name(overview: Overview) -> str:
    """Name what predictions are measured by: accuracy needs true labels."""
    given = overview.sample_info.reference == "given"
    return "agreement with the given labels" if given else "accuracy"


def estimate_text(one: Score) -> str:
    if one.corrected is None:
        return ""
    value, low, high = (100 * getattr(one.corrected, name) for name in ("value", "low", "high"))
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def score_note(overview: Overview, one: Score) -> str:
    if one.per_network is not None:
        low, high = 100 * min(one.per_network), 100 * max(one.per_network)
        return f"mean of the networks, {low:.2f} to {high:.2f}"
    if one.epoch is not None:
        return f"oracle: best {after_epochs(overview, one.epoch)}"
    if one.coverage < 1:
        right = one.selective_accuracy
        of_those = "" if right is None else f", {100 * right:.2f} of those"
        return f"{100 * one.coverage:.1f} % labelled{of_those}"
    return one.note


def after_epochs(overview: Overview, epoch: int) -> str:
    """Format an epoch of a record as an amount of training."""
    done, last = (f"{round(overview.progress[at], 2):g}" for at in (epoch, -1))
    return f"after {done} of {last} epoch{'' if last == '1' else 's'}"


def points_between(before: float, after: float) -> float:
    """Compute the difference of two shares as they are shown, in percent with one decimal.

    >>> points_between(0.7524, 0.8867)
    13.5
    """
    return round(round(100 * after, 1) - round(100 * before, 1), 1)


def gained_points(found: Scores) -> float:
    """Compute the points between the majority vote and the recommended rule."""
    shares = {one.rule: one.accuracy for one in found.scores}
    return points_between(shares["majority"], shares[found.recommended or ""])


def headline(overview: Overview, found: Scores) -> str:
    """Compare the recommended rule with the majority vote in a sentence."""
    rules = {one.rule: one for one in found.scores}
    gain = found.gain
    if gain is None or found.recommended is None:
        return ""
    chosen, voted = rules[found.recommended], rules["majority"]
    if overview.sample_info.reference == "given":
        on = "agrees with {share:.1f} % of the given labels"
    else:
        on = "is right on {share:.1f} % of the samples"
    text = (
        f"Recommended: {chosen.rule}, which {on.format(share=100 * chosen.accuracy)}; the majority "
        f"vote of the last epoch {on.format(share=100 * voted.accuracy)}"
    )
    interval = (
        f"{100 * gain.confidence:g} % interval {signed(gain.low)} to {signed(gain.high)} points"
    )
    if not gain.significant:
        text += f": no clear difference ({interval})."
    else:
        points = gained_points(found)
        text += f": {abs(points):.1f} points {'more' if points > 0 else 'less'} ({interval})."
    if chosen.corrected is not None:
        one = chosen.corrected
        text += (
            f" Corrected for wrong labels, {chosen.rule} is right on an estimated "
            f"{100 * one.value:.1f} % ({100 * one.low:.1f} to {100 * one.high:.1f} %)."
        )
    return text


def signed(share: float) -> str:
    points = round(100 * share, 1)
    return f"{points:+.1f}" if points else "0.0"


def demo_text(overview: Overview, found: Scores, out: Path, *, program: str = "accord") -> str:
    lines = [
        f"{overview.networks} small networks, {overview.epochs} epochs, trained on digits of which "
        "40 % had a wrong label;",
        f"tested on {overview.samples} digits with the right ones.",
        "",
        *textwrap.wrap(headline(overview, found), 88),
        "",
        *_score_table(overview, found, colour=False),
        "",
        f"Written: {out}/record, {out}/predictions.csv, {out}/report.html",
        "",
        "Try next:",
        f"  {program} show {out}/record",
        f"  {program} predict {out}/record --epochs :20 --out labels.csv",
        f"  {program} score {out}/record --json",
    ]
    return "\n".join(lines)


def watch_json(
    overview: Overview, found: Watch, networks: Sequence[NetworkHealth]
) -> dict[str, Any]:
    return {
        "record": overview.path,
        "alarm": found.alarm,
        "epoch": found.epoch,
        "best_epoch": found.best_epoch,
        "progress": overview.progress[found.best_epoch],
        "fall": found.fall,
        "sure": found.sure,
        "reason": found.reason,
        "agreement": found.agreement.tolist(),
        "smoothed": found.smoothed.tolist(),
        "bad_networks": bad_networks_json(networks),
        "trained_on": overview.trained_on,
    }


def bad_networks_json(networks: Sequence[NetworkHealth]) -> dict[str, str]:
    return {str(one.network): one.kind for one in networks if not one.good}


def watch_text(
    overview: Overview, found: Watch, networks: Sequence[NetworkHealth], *, colour: bool = False
) -> str:
    """Format the agreement curve and the verdict."""
    step = -(-overview.epochs // MOST_EPOCHS)
    curve = [
        (f"{round(progress, 2):g}", f"{100 * value:.1f}", "#" * round(BAR * value))
        for progress, value in zip(overview.progress, found.agreement.tolist(), strict=True)
    ]
    table = text_table(("epochs", "agreement", ""), curve[::step], right=(0, 1))
    if found.alarm:
        red, plain = ("\033[31m", "\033[0m") if colour else ("", "")
        fall, sure = f"{100 * found.fall:.1f}", f"{100 * found.sure:.2f}"
        verdict = [
            f"{red}overfitting detected{plain}: {found.reason}",
            f"Drop after the peak: {fall} points (confidence {sure} %)",
            f"Last good epoch: {after_epochs(overview, found.best_epoch)}",
        ]
    elif found.verdict:
        best = f"Best epoch by majority vote: {after_epochs(overview, found.best_epoch)}"
        verdict = [f"no alarm: {found.reason}", best]
    else:
        verdict = [f"no verdict: {found.reason}"]
    lines = [heading(overview), "", *table, "", *verdict]
    if overview.trained_on:
        lines.append(f"warning: {TRAINED_ON}")
    bad = bad_networks_text(networks)
    return "\n".join([*lines, f"warning: {bad}"] if bad else lines)


def bad_networks_text(networks: Sequence[NetworkHealth]) -> str:
    bad = ", ".join(f"network {one.network} is {one.kind}" for one in networks if not one.good)
    good = ",".join(str(one.network) for one in networks if one.good)
    return f"{bad}. To leave out: --networks {good}" if bad else ""
