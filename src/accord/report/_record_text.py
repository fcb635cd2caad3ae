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
    "No true labels are known: the numbers are the agreement with the given labels, in percent. "
    "Some of these may be wrong, so this is not accuracy."
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
    """Build the JSON document of scores."""
    document = record_json(overview) | {
        "reference": overview.sample_info.reference,
        "recommended": found.recommended,
        "notes": list(found.notes),
        "rules": {one.rule: _score_fields(one) for one in found.scores},
    }
    return document | ({"left_out": dict(found.left_out)} if found.left_out else {})


def _score_fields(one: Score) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "accuracy": one.accuracy,
        "balanced_accuracy": one.balanced_accuracy,
        "oracle": one.oracle,
    }
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
    """Format scores as a table in percent."""
    lines = [heading(overview, classes=True), ""]
    if overview.sample_info.reference == "given":
        lines += [*textwrap.wrap(AGAINST_GIVEN, 88), ""]
    return "\n".join([*lines, *_score_table(found, colour=colour)])


def _score_table(found: Scores, *, colour: bool) -> list[str]:
    recommended = found.recommended
    best = max((one.accuracy for one in found.scores if not one.oracle), default=0.0)
    rows, styles = [], []
    for one in found.scores:
        notes = "recommended" * (one.rule == recommended), score_note(one)
        shares = (f"{100 * share:.2f}" for share in (one.accuracy, one.balanced_accuracy))
        rows.append((one.rule, *shares, "; ".join(filter(None, notes))))
        style = "bold " * (one.accuracy == best) + "green" * (one.rule == recommended)
        styles.append("dim" if one.oracle else style)
    heads = ("rule", "accuracy", "balanced", "")
    return text_table(heads, rows, right=(1, 2), wrap=True, styles=styles if colour else None)


def score_note(one: Score) -> str:
    """Format a short note on a score."""
    if one.per_network is not None:
        low, high = 100 * min(one.per_network), 100 * max(one.per_network)
        return f"mean of the networks, {low:.2f} to {high:.2f}"
    if one.epoch is not None and one.progress is not None:
        return f"oracle: {epoch_text(one.epoch, one.progress)}, chosen by the truth"
    if one.coverage < 1:
        right = one.selective_accuracy
        of_those = "" if right is None else f", {100 * right:.2f} of those"
        return f"{100 * one.coverage:.1f} % labelled{of_those}"
    return one.note


def epoch_text(epoch: int, progress: float) -> str:
    """Format an epoch with its progress.

    They differ if only some epochs of a record were selected, or several were recorded in one
    epoch of training.

    >>> epoch_text(37, 38.0), epoch_text(7, 38.0)
    ('epoch 37', 'epoch 7 of those read (after 38 epochs of training)')
    """
    if progress == epoch + 1:
        return f"epoch {epoch}"
    when = round(progress, 2)
    return (
        f"epoch {epoch} of those read (after {when:g} epoch{'' if when == 1 else 's'} of training)"
    )


def gain_sentence(scores: Sequence[Score]) -> str:
    """Format the gain of max agreement as a sentence."""
    found = {one.rule: one.accuracy for one in scores}
    agreed, voted = found["max-agreement"], found["majority"]
    gain = 100 * (agreed - voted)
    best = found.get("oracle-best-epoch")
    if gain > 0:
        wrong = 100 * gain / (100 - 100 * voted)
        sentence = (
            f"The majority vote of the last epoch is right on {100 * voted:.1f} % of the samples; "
            f"max agreement over all epochs on {100 * agreed:.1f} %: {gain:.1f} points more, or "
            f"{wrong:.0f} % fewer errors"
        )
    else:
        sentence = (
            f"Here max agreement, right on {100 * agreed:.1f} % of the samples, is not better than "
            f"the majority vote of the last epoch, right on {100 * voted:.1f} %"
        )
    if best is not None:
        sentence += f" (the best single epoch, an oracle: {100 * best:.1f} %)"
    return sentence + "."


def demo_text(overview: Overview, found: Scores, out: Path, *, program: str = "accord") -> str:
    """Format the results of the demo."""
    lines = [
        f"{overview.networks} small networks, {overview.epochs} epochs, trained on digits of which "
        "40 % had a wrong label;",
        f"tested on {overview.samples} digits with the right ones. Accuracy in percent:",
        "",
        *_score_table(found, colour=False),
        "",
        *textwrap.wrap(gain_sentence(found.scores), 88),
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
    """Build the JSON document of a watch."""
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
        "trained_on": overview.sample_info.trained_on,
    }


def bad_networks_json(networks: Sequence[NetworkHealth]) -> dict[str, str]:
    """Map the numbers of bad networks to their kinds."""
    return {str(one.network): one.kind for one in networks if not one.good}


def watch_text(
    overview: Overview, found: Watch, networks: Sequence[NetworkHealth], *, colour: bool = False
) -> str:
    """Format the agreement curve and the verdict."""
    step = -(-overview.epochs // MOST_EPOCHS)
    curve = [
        (str(epoch), f"{100 * value:.1f}", "#" * round(BAR * value))
        for epoch, value in list(enumerate(found.agreement.tolist()))[::step]
    ]
    table = text_table(("epoch", "agreement", ""), curve, right=(0, 1))
    if found.alarm:
        red, plain = ("\033[31m", "\033[0m") if colour else ("", "")
        fall, sure = f"{100 * found.fall:.1f}", f"{100 * found.sure:.2f}"
        verdict = [
            f"{red}overfitting detected{plain}: {found.reason}",
            f"Drop after the peak: {fall} points (confidence {sure} %)",
            f"Last good epoch: {found.epoch}",
        ]
    else:
        best = f"Best epoch by majority vote: {found.best_epoch}"
        verdict = [f"no alarm: {found.reason}", best]
    lines = [heading(overview), "", *table, "", *verdict]
    if overview.sample_info.trained_on:
        lines.append(f"warning: {TRAINED_ON}")
    bad = bad_networks_text(networks)
    return "\n".join([*lines, f"warning: {bad}"] if bad else lines)


def bad_networks_text(networks: Sequence[NetworkHealth]) -> str:
    """Format a note on bad networks."""
    bad = ", ".join(f"network {one.network} is {one.kind}" for one in networks if not one.good)
    good = ",".join(str(one.network) for one in networks if one.good)
    return f"{bad}. To leave out: --networks {good}" if bad else ""
