"""The theory's and the toy's figures are drawn as elements that fit into a page."""

import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import matplotlib as mpl
import pytest

from accord.errors import ChoiceError, ExtraMissing
from accord.experiments.theory import run_theory
from accord.experiments.theory.toy import run_toy
from accord.report._drawing import save_figure, svg_of, with_variables
from accord.report._theory_figures import TITLES, theory_figure, toy_figure

DRAW = {"theory": theory_figure, "toy": toy_figure}


@pytest.fixture(scope="module")
def measured():
    return {"theory": run_theory(draws=2), "toy": run_toy(points=41)}


@pytest.fixture(scope="module")
def drawings(measured):
    return {name: svg_of(figure(measured[name])) for name, figure in DRAW.items()}


def identifiers_of(drawing):
    return set(re.findall(r' id="([^"]+)"', drawing))


def texts_of(drawing):
    return [text for text in ET.fromstring(drawing).itertext() if text.strip()]


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_is_xml_and_read_out_by_its_title(drawings, name):
    root = ET.fromstring(drawings[name])
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("role"), root.get("aria-label")) == ("img", TITLES[name])


def test_theory_figure_shows_two_trajectories_and_every_count(drawings, measured):
    texts = texts_of(drawings["theory"])
    for label in ("test loss: one training set", "test loss: own label noise", "disagreement"):
        assert label in texts
    assert [text.strip() for text in texts].count("all overfit") == 2
    for outcome in measured["theory"].outcomes.values():
        assert outcome.setting in texts
        assert f"{outcome.rose:,} of {outcome.overfit:,}" in texts


def test_a_count_stands_inside_a_long_bar_and_beside_a_short_one(drawings, measured):
    white = re.findall(r"<text[^>]*fill: #ffffff[^>]*>([^<]*)<", drawings["theory"])
    long = [one for one in measured["theory"].outcomes.values() if (one.share or 0) > 0.5]
    assert [text.strip() for text in white] == [f"{one.rose:,} of {one.overfit:,}" for one in long]


def test_theory_figure_without_trajectories_shows_counts_alone(measured):
    texts = texts_of(svg_of(theory_figure(replace(measured["theory"], trajectories={}))))
    assert "disagreement rises" in texts
    assert not any("test loss" in text for text in texts)


def test_the_toy_shows_the_shares_of_errors(drawings, measured):
    texts, toy = texts_of(drawings["toy"]), measured["toy"]
    each = ", ".join(f"{100 * one:.1f}" for one in toy.wrong(toy.networks_last))
    assert f"networks: {each} % wrong" in texts
    assert f"majority: {100 * toy.wrong(toy.majority):.1f} % wrong" in texts
    assert f"max-agreement: {100 * toy.wrong(toy.max_agreement):.1f} % wrong" in texts


@pytest.mark.parametrize("name", DRAW)
def test_a_drawing_fits_into_a_page(drawings, name):
    drawing = drawings[name]
    assert "<style" not in drawing
    assert "system-ui" in drawing
    assert "fill: #ffffff; opacity" not in drawing
    assert re.findall(r"(?<!, )#[0-9a-f]{6}\b(?!-)", with_variables(drawing)) == []
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', drawing))
    assert used <= identifiers_of(drawing)


def test_identifiers_of_the_two_never_clash(drawings):
    one, other = map(identifiers_of, drawings.values())
    assert not one & other


@pytest.mark.parametrize("name", DRAW)
def test_the_same_gives_the_same_whatever_the_users_settings(drawings, measured, name):
    with mpl.rc_context({"text.usetex": True, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert svg_of(DRAW[name](measured[name])) == drawings[name]
        assert mpl.rcParams["svg.fonttype"] == "path"


@pytest.mark.parametrize("name", DRAW)
def test_a_drawing_has_no_ground_and_a_saved_one_has(drawings, measured, name, tmp_path):
    save_figure(DRAW[name](measured[name]), tmp_path / "new" / "figure.svg")
    saved = (tmp_path / "new" / "figure.svg").read_text()
    assert ET.fromstring(saved.encode()).get("aria-label") == TITLES[name]
    assert identifiers_of(saved) == identifiers_of(drawings[name])
    ground = r"<g>\n<path d=\"M 0 [^>]*fill: #ffffff"
    assert re.search(ground, saved)
    assert not re.search(ground, drawings[name])
    assert "var(" not in saved


@pytest.mark.parametrize("name", DRAW)
def test_a_saved_png_is_one(measured, name, tmp_path):
    save_figure(DRAW[name](measured[name]), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", DRAW)
def test_another_ending_is_refused(measured, name, tmp_path):
    with pytest.raises(ChoiceError, match=r"written as \.svg or \.png; got '\.gif'"):
        save_figure(DRAW[name](measured[name]), tmp_path / "figure.gif")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "accord.report._theory_figures")
    monkeypatch.delitem(sys.modules, "accord.report._mpl")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ExtraMissing, match=r"matplotlib.*pip install 'accord\[report\]'"):
        import accord.report._theory_figures  # noqa: F401
