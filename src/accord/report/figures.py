"""The report's figures, drawn with matplotlib as SVG or PNG."""

import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.api import Record
from accord.errors import ChoiceError, ExtraMissing
from accord.report.captions import TITLES
from accord.report.looks import LINES, STYLE, ink
from accord.report.measured import FIRST, SECOND, Measured
from accord.report.spacing import spread
from accord.report.svg import tidy
from accord.store.places import Folder

try:
    import matplotlib.style
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator
except ImportError as error:
    raise ExtraMissing(
        "figures are drawn with matplotlib, which is not installed. "
        "To install it: pip install 'accord[report]'"
    ) from error

POINTS: Final = 72  # in an inch; the unit of an SVG that matplotlib writes
WIDE, NARROW, BANNER = (410, 270), (374, 236), (560, 270)  # width and height, in points
DOTS: Final = 200  # of a PNG, in an inch
MARGINS: Final = {"left": 42.0, "right": 12.0, "bottom": 40.0, "top": 22.0}  # around axes
MOST_BARS: Final = 12  # that bear their value
LABEL_GAP: Final = 13.0  # between the middles of two labels


def draw_figure(name: str, measured: Measured) -> str:
    """Return a figure as the text of an SVG element, on no ground of its own.

    The same record gives the same text. Several figures fit into one page; what belongs to a
    rule bears its name as `data-rule`.

    Raises:
        ChoiceError: no figure has that name; `FIGURES` lists them.
    """
    with _drawn(name, measured) as figure:
        figure.patch.set_visible(False)
        return _svg(name, figure)


def save_figure(name: str, record: Record, path: Path) -> None:
    """Write a figure on white to an .svg or .png file, whole or not at all."""
    if path.suffix not in {".svg", ".png"}:
        raise ChoiceError(f"{path}: figures are written as .svg or .png; got {path.suffix!r}")
    with _drawn(name, Measured(record)) as figure:
        if path.suffix == ".svg":
            data = f'<?xml version="1.0" encoding="utf-8"?>\n{_svg(name, figure)}\n'.encode()
        else:
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=DOTS, metadata={"Software": None})
            data = buffer.getvalue()
    Folder(path.absolute().parent).put(path.name, data)


@contextmanager
def _drawn(name: str, measured: Measured) -> Iterator[Figure]:
    if name not in FIGURES:
        raise ChoiceError(f"no figure is called {name!r}. There are: {', '.join(FIGURES)}")
    # The user's own settings, which may ask for TeX, are set aside while we draw. The salt makes
    # identifiers the same every time, and different from those of other figures.
    with matplotlib.style.context(["default", STYLE | {"svg.hashsalt": name}]):
        yield FIGURES[name](measured)


def _svg(name: str, figure: Figure) -> str:
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    return tidy(buffer.getvalue(), title=TITLES[name])


def accuracy_figure(measured: Measured) -> Figure:
    """Draw every rule's accuracy over the epochs, and where the majority vote is best."""
    return _accuracy_figure(measured, tuple(measured.curves), WIDE)


def overfit_figure(measured: Measured) -> Figure:
    """Draw the same for the three rules that make the case, in the shape of a banner."""
    return _accuracy_figure(measured, ("single", FIRST, SECOND), BANNER)


def _accuracy_figure(measured: Measured, rules: Sequence[str], size: tuple[int, int]) -> Figure:
    figure, axes = _axes(size, right=148)
    curves = {rule: measured.curves[rule] for rule in rules}
    progress = measured.progress
    for rule, curve in curves.items():
        _line(axes, rule, progress, curve.accuracy)
    best = measured.best_epoch
    height = float(curves[FIRST].accuracy[best])
    _mark_best(axes, progress[best], height, progress[-1])
    ends = [(rule, float(curve.accuracy[-1])) for rule, curve in curves.items()]
    _percent_axis(axes, *(_settled(curve.accuracy) for curve in curves.values()))
    _progress_axis(axes, progress)
    _label_ends(axes, [*ends, ("oracle-best-epoch", height)])
    axes.set_title("accuracy")
    return figure


def _mark_best(axes: Axes, x: float, y: float, end: float) -> None:
    rule = "oracle-best-epoch"
    colour = ink(rule)
    axes.plot([x, end], [y, y], color=colour, linewidth=0.8, linestyle=(0, (1, 2)), zorder=3)
    axes.plot([x], [y], "D", color=colour, markerfacecolor=ink("paper"), markersize=6, zorder=6)
    for line in axes.lines[-2:]:
        line.set_gid(f"rule:{rule}")
        line.set_clip_on(False)


def networks_figure(measured: Measured) -> Figure:
    """Draw accuracy by ensemble size: mean and spread over the subsets of the networks."""
    figure, axes = _axes(NARROW, right=131)
    sweeps = measured.by_networks
    for rule, sweep in sweeps.items():
        low, high = sweep.mean - sweep.spread, sweep.mean + sweep.spread
        band = axes.fill_between(sweep.sizes, low, high, color=ink(rule), alpha=0.16, linewidth=0)
        band.set_gid(f"rule:{rule}")
        _line(axes, rule, sweep.sizes, sweep.mean, marker="o", markersize=4.5)
    sizes = sweeps[FIRST].sizes
    spans = [sweep.mean + side * sweep.spread for sweep in sweeps.values() for side in (-1, 1)]
    _percent_axis(axes, *spans)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlim(max(0.5, _around(sizes)[0]), _around(sizes, after=0.015)[1])
    axes.set_xlabel("networks")
    axes.set_title("accuracy")
    _label_ends(axes, [(rule, float(sweep.mean[-1])) for rule, sweep in sweeps.items()])
    return figure


def epochs_figure(measured: Measured) -> Figure:
    """Draw accuracy by number of equally spaced epochs, against the last majority vote."""
    figure, axes = _axes(NARROW, right=131)
    sweep = measured.by_epochs
    voted = float(measured.curves[FIRST].accuracy[-1])
    axes.set_xscale("log", base=2)
    _line(axes, SECOND, sweep.sizes, sweep.mean, marker="o", markersize=4.5)
    axes.axhline(voted, color=ink(FIRST), gid=f"rule:{FIRST}", **LINES[FIRST])
    _percent_axis(axes, sweep.mean[len(sweep.sizes) > 1 :], np.array([voted]))
    _doubling_axis(axes, sweep.sizes)
    axes.set_xlim(*_around(sweep.sizes, before=0.1, after=0.015, log=True))
    _name_hidden(axes, sweep.sizes, sweep.mean)
    axes.set_xlabel("equally spaced epochs")
    axes.set_title("accuracy")
    _label_ends(axes, [(SECOND, float(sweep.mean[-1])), (FIRST, voted)])
    return figure


def final_margin_figure(measured: Measured) -> Figure:
    """Draw final margins, samples with a right last vote upwards, with a wrong one downwards."""
    figure, axes = _axes(NARROW)
    histogram = measured.final_margins
    sides = (("right", histogram.right, 1), ("wrong", histogram.wrong, -1))
    for side, counts, sign in sides:
        _stairs(axes, side, sign * _shares(counts), histogram.edges)
    axes.axhline(0, color=ink("quiet"), linewidth=0.8)
    axes.axvline(0, color=ink("quiet"), linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xlim(-1, 1)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["-1", "-0.5", "0", "0.5", "1"])
    axes.use_sticky_edges = False
    axes.margins(y=0.16)  # room for a note above and below, clear of the bars
    _share_axis(axes)
    axes.set_xlabel("final margin")
    axes.set_title("share of the samples whose last vote is right, or wrong")
    for side, counts, sign in sides:
        text = f"{side}: {counts.sum():,} samples"
        _note(axes, 0.02, 0.5 + 0.45 * sign, text, ink(side))
    return figure


def margin_figure(measured: Measured) -> Figure:
    """Draw margins: best minus second-best agreement."""
    figure, axes = _axes(NARROW)
    counts = measured.margins
    _stairs(axes, SECOND, _shares(counts), np.linspace(0, 1, len(counts) + 1))
    axes.set_xlim(0, 1)
    _share_axis(axes)
    axes.set_xlabel("margin")
    axes.set_title("share of the samples")
    return figure


def error_consensus_figure(measured: Measured) -> Figure:
    """Draw the share of wrong predictions that so many networks make together."""
    figure, axes = _axes(NARROW)
    counts = measured.error_consensus
    sizes, shares = np.arange(1, len(counts) + 1), _shares(counts)
    bars = axes.bar(sizes, shares, width=0.68, color=ink("wrong"), linewidth=0)
    if len(sizes) <= MOST_BARS:
        axes.bar_label(bars, [f"{100 * share:.0f} %" for share in shares], padding=3)
    axes.xaxis.set_major_locator(MaxNLocator(MOST_BARS, integer=True))
    axes.set_xlim(0.4, len(counts) + 0.6)
    axes.set_ylim(0, 1.12 * shares.max() or 1)
    _share_axis(axes)
    axes.set_xlabel("networks that give the same wrong class")
    axes.set_title("share of the wrong predictions")
    return figure


def persistence_figure(measured: Measured) -> Figure:
    """Draw when right and wrong runs begin, and how long they last."""
    figure = _figure(NARROW)
    begun, lasting = (_panel(figure, NARROW, left, 140) for left in (36, 222))
    found, progress = measured.persistence, measured.progress
    lengths = np.arange(1, len(progress) + 1)
    predictions = measured.record.networks * measured.record.samples
    later = slice(1, None)  # at the first epoch, all begin a run
    for side, onsets, runs in (
        ("right", found.right_onsets, found.right_lengths),
        ("wrong", found.wrong_onsets, found.wrong_lengths),
    ):
        _line(begun, side, progress[later], onsets[later] / predictions)
        _line(lasting, side, lengths, np.cumsum(_shares(runs)[::-1])[::-1])
    for axes, title in ((begun, "new runs"), (lasting, "runs that last")):
        axes.set_ylim(bottom=0)
        _share_axis(axes)
        axes.set_title(title)
    _progress_axis(begun, progress)
    begun.legend(
        frameon=False,
        labelcolor="linecolor",
        ncols=2,
        loc="lower right",
        bbox_to_anchor=(1.16, 0.98),
        handlelength=1.9,
        handletextpad=0.4,
        columnspacing=0.9,
    )
    lasting.set_xscale("log", base=2)
    _doubling_axis(lasting, [2**power for power in range(len(progress).bit_length())], most=6)
    lasting.set_xlim(*_around(lengths, log=True))
    lasting.set_xlabel("epochs or more")
    return figure


def agreement_figure(measured: Measured) -> Figure:
    """Draw how often two networks agree at each epoch."""
    figure, axes = _axes(NARROW)
    progress = measured.progress
    _line(axes, "agreement", progress, measured.agreement)
    _percent_axis(axes, _settled(measured.agreement))
    _progress_axis(axes, progress)
    axes.set_title("share of the predictions that two networks share")
    return figure


FIGURES: Final[dict[str, Callable[[Measured], Figure]]] = {
    "accuracy": accuracy_figure,
    "overfit": overfit_figure,
    "networks": networks_figure,
    "epochs": epochs_figure,
    "final-margin": final_margin_figure,
    "margin": margin_figure,
    "error-consensus": error_consensus_figure,
    "persistence": persistence_figure,
    "agreement": agreement_figure,
}


def _figure(size: tuple[int, int]) -> Figure:
    inches = size[0] / POINTS, size[1] / POINTS
    return Figure(inches, dpi=POINTS, facecolor=ink("paper"))


def _axes(size: tuple[int, int], *, right: float = MARGINS["right"]) -> tuple[Figure, Axes]:
    figure = _figure(size)
    left = MARGINS["left"]
    return figure, _panel(figure, size, left, size[0] - left - right)


def _panel(figure: Figure, size: tuple[int, int], left: float, width: float) -> Axes:
    bottom, top = MARGINS["bottom"], MARGINS["top"]
    height = size[1] - bottom - top
    box = left / size[0], bottom / size[1], width / size[0], height / size[1]
    axes = figure.add_axes(box)
    axes.patch.set_visible(False)
    return axes


def _line(axes: Axes, name: str, x: Sequence[float] | NDArray[Any], y: Any, **looks: Any) -> None:
    if len(x) == 1:
        looks = {"marker": "o", "markersize": 6} | looks
    (line,) = axes.plot(x, y, color=ink(name), label=name, **(LINES[name] | looks))
    line.set_gid(f"rule:{name}")


def _stairs(axes: Axes, name: str, shares: NDArray[Any], edges: NDArray[Any]) -> None:
    axes.stairs(shares, edges, fill=True, color=ink(name), linewidth=0)


def _shares(counts: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.asarray(counts / max(1, counts.sum()), np.float64)


def _note(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.text(x, y, text, color=colour, transform=axes.transAxes, va="center")


def _settled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # The first quarter climbs so steeply that it would flatten all that follows.
    return np.append(values[len(values) // 4 :], [values.max()])


def _name_hidden(axes: Axes, x: Sequence[float], y: NDArray[np.float64]) -> None:
    bottom, _ = axes.get_ylim()
    for place, value in zip(x, y, strict=True):
        if value < bottom:
            axes.text(
                *(place, 0.02, f"↓ {100 * value:.1f}"),
                color=ink(SECOND),
                transform=axes.get_xaxis_transform(),
                ha="center",
            )


def _percent_axis(axes: Axes, *shown: NDArray[np.float64]) -> None:
    values = np.concatenate(shown)
    low, high = float(values.min()), float(values.max())
    pad = max(0.06 * (high - low), 0.02)
    axes.set_ylim(max(0.0, low - pad), min(1.004, high + pad))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    _share_axis(axes)


def _share_axis(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{abs(100 * share):.4g} %"))


def _progress_axis(axes: Axes, progress: Sequence[float]) -> None:
    first, last = min(progress), max(progress)
    axes.set_xlim(*((first, last) if first < last else _around(progress)))
    whole = all(float(one).is_integer() for one in progress)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=whole, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda epoch, _: f"{epoch:g}"))
    axes.set_xlabel("epochs of training")


def _doubling_axis(axes: Axes, sizes: Sequence[int], *, most: int = 9) -> None:
    # The last but one may lie close to the last: two labels would run into each other.
    crowded = len(sizes) > 2 and sizes[-1] < 1.5 * sizes[-2]
    clear = [*sizes[:-2], sizes[-1]] if crowded else list(sizes)
    axes.set_xticks(clear[:: -math.ceil(len(clear) / most)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:g}"))
    axes.minorticks_off()
    axes.set_xlim(*_around(sizes, log=True))


def _around(
    sizes: Sequence[float] | NDArray[Any],
    *,
    before: float = 0.05,
    after: float = 0.05,
    log: bool = False,
) -> tuple[float, float]:
    low, high = float(min(sizes)), float(max(sizes))
    if log:
        room = high / low if high > low else 2.0
        return low / room**before, high * room**after
    room = high - low or 1.0
    return low - before * room, high + after * room


def _label_ends(axes: Axes, ends: Sequence[tuple[str, float]]) -> None:
    """Write each rule's name and value beside its end, and move apart what would overlap."""
    (bottom, top), box = axes.get_ylim(), axes.get_window_extent()
    wanted = [(y - bottom) / (top - bottom) for _, y in ends]
    placed = spread(wanted, gap=LABEL_GAP / box.height, low=0, high=1)
    for (rule, y), start, end in zip(ends, wanted, placed, strict=True):
        name = "best epoch (oracle)" if rule == "oracle-best-epoch" else rule
        looks: dict[str, Any] = {"color": ink(rule), "transform": axes.transAxes}
        weight = "bold" if rule == SECOND and len(ends) > 2 else "normal"
        leader = [1 + 3 / box.width, 1 + 11 / box.width], [start, end]
        (line,) = axes.plot(*leader, linewidth=0.8, clip_on=False, **looks)
        at = 1 + 14 / box.width, end
        label = axes.text(*at, f"{name} {100 * y:.1f}", va="center", fontweight=weight, **looks)
        for artist in (line, label):
            artist.set_gid(f"rule:{rule}")
