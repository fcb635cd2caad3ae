"""Tables and sentences about a record, as text and as JSON."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accord._record import Record
from accord.analysis import Score
from accord.errors import counted
from accord.store import Description


def description_text(description: Description) -> str:
    """Describe a record in a few lines."""
    lengths = description.epochs
    counts = sorted(set(lengths.values()))
    epochs = counted(counts[0], "epoch") if len(counts) == 1 else _unequal(lengths)
    made_with = ", ".join(f"{name} {version}" for name, version in description.made_with.items())
    lines = [
        description.path,
        f"  {counted(len(lengths), 'network')}, {epochs if lengths else 'no epochs yet'}",
        f"  {counted(description.samples, 'sample')} of the {description.split} split, "
        f"{counted(description.classes, 'class')}",
        f"  holds: labels{''.join(f', {what}' for what in description.has)}",
        f"  form: {'packed' if description.packed else 'one object per row'}, "
        f"format {description.format}{_size(description.size)}",
        f"  {'packed' if description.packed else 'begun'}: {description.created or 'unknown'}",
        f"  recorded with: {made_with or 'unknown'}",
    ]
    if description.class_names and len(description.class_names) <= 20:
        lines.append(f"  classes: {', '.join(map(one_line, description.class_names))}")
    first = next((about for about in description.metadata.values() if about), None)
    if first:
        lines.append(f"  about: {', '.join(f'{key} {value}' for key, value in first.items())}")
    return "\n".join(lines)


def one_line(text: str) -> str:
    r"""Return text with blanks in the place of line breaks, so that it fits into a table.

    >>> one_line("hot\ndog")
    'hot dog'
    """
    return " ".join(text.splitlines())


def _unequal(lengths: dict[int, int]) -> str:
    told = ", ".join(f"network {number}: {epochs}" for number, epochs in lengths.items())
    return f"unequal numbers of epochs ({told})"


def _size(size: int | None) -> str:
    if size is None:
        return ""
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f", {size:.0f} {unit}"
        size = round(size / 1000)
    return f", {size} GB"


def score_json(record: Record, scores: Sequence[Score]) -> dict[str, Any]:
    """Return scores in the form that `accord score --json` prints."""
    return {
        "record": record.path,
        "networks": record.networks,
        "epochs": record.epochs,
        "samples": record.samples,
        "classes": record.classes,
        "recommended": record.recommend().rule,
        "rules": {one.rule: _score_fields(one) for one in scores},
    }


def _score_fields(one: Score) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "accuracy": one.accuracy,
        "balanced_accuracy": one.balanced_accuracy,
        "oracle": one.oracle,
    }
    if one.coverage < 1:
        fields["coverage"] = one.coverage
    if one.selective_accuracy is not None:
        fields["selective_accuracy"] = one.selective_accuracy
    if one.per_network is not None:
        fields["per_network"] = list(one.per_network)
    if one.epoch is not None:
        fields["epoch"] = one.epoch
    if one.progress is not None:
        fields["progress"] = one.progress
    if one.note:
        fields["note"] = one.note
    return fields


def score_text(record: Record, scores: Sequence[Score]) -> str:
    """Return scores as a table for people, in percent."""
    head = (
        f"{record.path}: {counted(record.networks, 'network')}, "
        f"{counted(record.epochs, 'epoch')}, {counted(record.samples, 'sample')}, "
        f"{counted(record.classes, 'class')}"
    )
    return "\n".join([head, "", *_rule_table(record, scores)])


def _rule_table(record: Record, scores: Sequence[Score]) -> list[str]:
    """Return one line per rule: its accuracy, its balanced accuracy and a note."""
    recommended = record.recommend().rule
    width = max(len(one.rule) for one in scores)
    lines = [f"{'rule':{width}}  accuracy  balanced"]
    for one in scores:
        values = f"{100 * one.accuracy:8.2f}  {100 * one.balanced_accuracy:8.2f}"
        mark = "recommended" if one.rule == recommended else ""
        note = "; ".join(filter(None, [mark, score_note(one)]))
        lines.append(f"{one.rule:{width}}  {values}  {note}".rstrip())
    return lines


def score_note(one: Score) -> str:
    """Say in a few words what a reader should know of a score."""
    if one.per_network is not None:
        low, high = 100 * min(one.per_network), 100 * max(one.per_network)
        return f"mean of the networks, {low:.2f} to {high:.2f}"
    if one.epoch is not None and one.progress is not None:
        return f"an oracle: {epoch_text(one.epoch, one.progress)} was chosen by the truth"
    if one.coverage < 1:
        right = one.selective_accuracy
        of_those = "" if right is None else f", {100 * right:.2f} of those"
        return f"{100 * one.coverage:.1f} % labelled{of_those}"
    return one.note


def epoch_text(epoch: int, progress: float) -> str:
    """Name an epoch and, where its number does not tell, say when it is.

    Epochs are counted among those that were read: not all of a record's, or several in one epoch
    of training.

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
    """Say in one sentence what max agreement did against the majority vote."""
    found = {one.rule: one.accuracy for one in scores}
    agreed, voted = found["max-agreement"], found["majority"]
    gain = 100 * (agreed - voted)
    best = found.get("oracle-best-epoch")
    if gain > 0:
        wrong = 100 * gain / (100 - 100 * voted)
        sentence = (
            f"At the last epoch the majority vote is right on {100 * voted:.1f} % of the samples; "
            f"over all epochs the networks agree on the right class for {100 * agreed:.1f} %: "
            f"{gain:.1f} points more, {wrong:.0f} % of the errors gone"
        )
    else:
        sentence = (
            f"Here max agreement, right on {100 * agreed:.1f} % of the samples, does not beat the "
            f"majority vote of the last epoch, right on {100 * voted:.1f} %"
        )
    if best is not None:
        sentence += f" (the best single epoch, which no one can know: {100 * best:.1f} %)"
    return sentence + "."


def demo_text(
    record: Record, scores: Sequence[Score], out: Path, *, program: str = "accord"
) -> str:
    """Say what the demo showed and what to try next with the program as it was called."""
    lines = [
        f"{record.networks} small networks, {record.epochs} epochs, trained on digits of which "
        "40 % had a wrong label;",
        f"tested on {record.samples} digits with the right ones. Accuracy in percent:",
        "",
        *_rule_table(record, scores),
        "",
        *textwrap.wrap(gain_sentence(scores), 88),
        "",
        f"Written: {out}/record, {out}/predictions.csv, {out}/report.html",
        "",
        "Try next:",
        f"  {program} show {out}/record",
        f"  {program} predict {out}/record --epochs :20 --out labels.csv",
        f"  {program} score {out}/record --json",
    ]
    return "\n".join(lines)
