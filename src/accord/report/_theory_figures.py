"""Figures of the theory and the toy example."""

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.experiments.theory import SettingOutcome, TheoryResult, Trajectory
from accord.experiments.theory.toy import Toy, true_boundary
from accord.report._drawing import Drawing, add_panel, new_figure
from accord.report._mpl import Axes, Figure
from accord.report._theme import LINES, ink

SIZE: Final = (640, 262)  # width and height, in points
TITLES: Final = {
    "theory": "Disagreement and overfitting in linear regression",
    "toy": "Three networks that fit a false label, their majority and their max agreement",
}
SETTING_NAMES: Final = {"shared": "one training set", "own-noise": "own label noise"}


LOOKS: Final[tuple[tuple[str, Any], ...]] = (  # ink and line of each network's boundary
    ("agreement", "-"),
    ("soft-agreement", (0, (5, 1.4))),
    ("probability-average", (0, (1, 1.2))),
)
CLASSES: Final = (("o", ink("right")), ("s", ink("wrong")))  # marker and colour of each


def theory_figure(result: TheoryResult) -> Drawing:
    """Create the figure of the theory.

    Two draws step by step, with disagreement as the gap between two losses; then, by setting, the
    share of overfit steps in which it rises.
    """
    return Drawing("theory", TITLES["theory"], partial(_draw_theory, result))


def toy_figure(toy: Toy) -> Drawing:
    """Create the figure of the toy example."""
    return Drawing("toy", TITLES["toy"], partial(_draw_toy, toy))


def _draw_theory(result: TheoryResult) -> Figure:
    figure = new_figure(SIZE)
    for left, trajectory in zip((30, 208), result.trajectories.values(), strict=False):
        _draw_trajectory(add_panel(figure, SIZE, left, 146), trajectory)
    for axes in figure.axes[1:]:
        for height, name, colour in (
            (0.79, "mean of networks", "wrong"),
            (0.17, "disagreement", "agreement"),
            (0.05, "mean network", "right"),
        ):
            looks: dict[str, Any] = {"color": ink(colour), "ha": "right", "va": "bottom"}
            axes.text(0.98, height, name, transform=axes.transAxes, **looks)
    _show_shares(add_panel(figure, SIZE, 448, 170), list(result.outcomes.values()))
    return figure


def _draw_trajectory(axes: Axes, trajectory: Trajectory) -> None:
    steps, each = np.array(trajectory.steps), np.array(trajectory.mean_loss)
    together = np.array(trajectory.mean_network_loss)
    axes.fill_between(steps, together, each, color=ink("agreement"), alpha=0.25, linewidth=0)
    for name, loss in (("wrong", each), ("right", together)):
        axes.plot(steps, loss, color=ink(name), **LINES[name])
    first = steps[np.array(trajectory.overfit)][0]
    axes.axvline(first, color=ink("quiet"), linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    axes.set_xlim(steps[0], steps[-1])
    # A third higher than where the trajectory ends; the starts may lie far above.
    top = 4 / 3 * float(each[-1])
    axes.set_ylim(0, top)
    axes.grid(visible=False)
    axes.set_xlabel("steps")
    axes.set_title(f"test loss: {SETTING_NAMES[trajectory.setting]}")
    axes.text(first, top, " all overfit", color=ink("quiet"), va="top")


def _show_shares(axes: Axes, outcomes: list[SettingOutcome]) -> None:
    places = np.arange(len(outcomes))[::-1]
    for place, outcome in zip(places, outcomes, strict=True):
        share = outcome.share or 0.0
        axes.barh(place, share, height=0.66, color=ink("agreement"), linewidth=0)
        most = share > 0.5
        axes.text(
            share + (-0.02 if most else 0.02),
            place,
            f"{outcome.rose:,} of {outcome.overfit:,}",
            color=ink("paper" if most else "text"),
            ha="right" if most else "left",
            va="center_baseline",
        )
    axes.set_yticks(places, [outcome.setting for outcome in outcomes])
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    axes.grid(visible=False)
    axes.set_xlabel("of the steps in which all overfit")
    axes.set_title("disagreement rises")


def _draw_toy(toy: Toy) -> Figure:
    figure = new_figure(SIZE)
    wide = (SIZE[0] - 24 - 2 * 14) / 3
    panels = [add_panel(figure, SIZE, 12 + place * (wide + 14), wide) for place in range(3)]
    percents = ", ".join(f"{100 * one:.1f}" for one in toy.wrong(toy.networks_last))
    _set_plane(panels[0], toy, f"networks: {percents} % wrong")
    panels[0].set_xlabel("ring: the sample with a false label")
    panels[1].set_xlabel("dotted: the true boundary")
    panels[2].set_xlabel("shaded: wrong predictions")
    for labels, look in zip(toy.networks_last, LOOKS, strict=True):
        _bound(panels[0], toy, labels, *look)
    for axes, name, labels in (
        (panels[1], "majority", toy.majority),
        (panels[2], "max-agreement", toy.max_agreement),
    ):
        _set_plane(axes, toy, f"{name}: {100 * toy.wrong(labels):.1f} % wrong")
        _bound(axes, toy, labels, name, "-")
        wrong = labels != toy.grid_truth
        axes.contourf(
            *(toy.side, toy.side, wrong), levels=[0.5, 1.5], colors=[ink(name)], alpha=0.3
        )
    return figure


def _set_plane(axes: Axes, toy: Toy, title: str) -> None:
    for label, (marker, colour) in enumerate(CLASSES):
        x, y = toy.samples[toy.given == label].T
        axes.scatter(x, y, s=16, marker=marker, color=colour)
    x, y = toy.samples[toy.mislabelled]
    axes.scatter(x, y, s=110, facecolors="none", edgecolors=ink("text"))
    height = true_boundary(toy.side)
    axes.plot(toy.side, height, color=ink("text"), linewidth=0.9, linestyle=(0, (1, 2)))
    axes.set_xlim(-1.04, 1.04)
    axes.set_ylim(-1.04, 1.04)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines["bottom"].set_visible(False)
    axes.set_title(title)


def _bound(axes: Axes, toy: Toy, labels: NDArray[np.integer], name: str, line: Any) -> None:
    axes.contour(
        *(toy.side, toy.side, labels),
        levels=[0.5],
        colors=[ink(name)],
        linestyles=[line],
        linewidths=1.6,
    )
