"""The HTML page of a record."""

import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from accord._record import Record, open_record
from accord._recorder import Recorder
from accord.analysis import summarize
from accord.errors import ExtraMissing, StorageError
from accord.report.html import render, write_report
from accord.store import make_sample_info
from accord.store._record_reader import ArrayReader

VOID = {"meta", "br", "hr", "img", "input", "link", "path", "use"}


def page_of(record):
    return render(summarize(record.reader))


class Page(HTMLParser):
    """The elements of a page; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in {"script", "style"}:
            self.texts.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))


@pytest.fixture(scope="module")
def page(record):
    return page_of(record)


def figures_on(text):
    return [attributes["id"] for tag, attributes in Page(text).elements if tag == "figure"]


def test_every_rule_is_there_with_its_accuracies(page, record):
    rows = dict(re.findall(r'<tr[^>]*data-rule="([^"]+)">(.*?)</tr>', page, re.DOTALL))
    scores = record.score()
    assert list(rows) == [one.rule for one in scores]
    for one in scores:
        shown = re.findall(r'<td class="number">(.*?) %</td>', rows[one.rule])
        assert shown == [f"{100 * one.accuracy:.2f}", f"{100 * one.balanced_accuracy:.2f}"]


def test_the_recommended_rule_is_marked_and_it_alone(page):
    rows = re.findall(r'<tr( class="chosen")? data-rule="([^"]+)"', page)
    assert [rule for chosen, rule in rows if chosen] == ["before-overfit"]
    assert page.count('class="badge"') == 1
    assert page.count(">recommended<") == 1


def test_oracles_are_set_apart(page):
    before, after = page.split('<tbody class="oracles">')
    assert 'data-rule="oracle-best-epoch"' in after
    assert '<tr data-rule="oracle' not in before


def test_the_page_shows_the_paired_comparison(page, record):
    changes = record.changes("majority", "max-agreement")
    text = Page(page).text
    assert f"turned right {changes.turned_right} samples" in text
    assert f"turned wrong {changes.turned_wrong} samples" in text
    assert f"{100 * changes.difference:+.1f} points" in text
    assert f"95 % interval {100 * changes.low:+.1f} to {100 * changes.high:+.1f}" in text


def test_the_sizes_are_at_the_top(page):
    assert "networks 3 epochs 8 samples 120 classes 4 split test" in Page(page).text


def test_all_figures_are_there_and_described(page):
    assert figures_on(page) == [
        "accuracy",
        "networks",
        "epochs",
        "final-margin",
        "error-consensus",
        "persistence",
        "reliability",
        "risk-coverage",
        "agreement",
        "forgotten",
    ]
    drawings = [attributes for tag, attributes in Page(page).elements if tag == "svg"]
    assert all(one["role"] == "img" and one["aria-label"] for one in drawings)
    assert page.count("<figcaption>") == len(drawings) == 10


def test_nothing_is_fetched(page):
    addresses = set(re.findall(r"\w+://[^\s\"'<>]*", page))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    for tag, attributes in Page(page).elements:
        assert tag not in {"link", "img", "iframe", "object", "base"}
        assert "src" not in attributes
        assert attributes.get("xlink:href", "#").startswith("#")
    assert not re.search(r"@import|@font-face|url\((?!#)", page)


def test_identifiers_are_unique(page):
    found = [attributes["id"] for _, attributes in Page(page).elements if "id" in attributes]
    assert len(set(found)) == len(found)


def test_the_page_is_small(page):
    assert len(page.encode()) < 400_000


def test_the_same_record_gives_the_same_page(page, record):
    assert page_of(record) == page


def test_text_of_the_user_is_escaped(tmp_path):
    evil = "<script>alert(1)</script>"
    path = tmp_path / "<script>runs"
    with Recorder(
        path,
        network=0,
        samples=2,
        classes=2,
        truth=[0, 1],
        class_names=[evil, "b & c"],
        split=evil,
        metadata={evil: evil, "nested": {"<b>": ["<i>"]}},
    ) as recorder:
        recorder.record([0, 1])
        recorder.record([0, 0])
    text = page_of(open_record(path))
    assert text.count("<script") == 1  # our own
    assert "<i>" not in text
    assert "b &amp; c" in text
    assert str(path) in Page(text).text
    assert Page(text).text.count(evil) >= 4


def test_without_truth_there_is_a_page_without_scores(make_record):
    record = make_record(3, 8, 120, 4, truth=False)
    text = page_of(record)
    moved = (record.predict("majority").labels != record.predict().labels).sum()
    assert figures_on(text) == ["margin", "agreement"]
    assert "Scores need true labels" in text
    assert f"for {moved} of 120 samples" in text
    assert "accuracy</th>" not in text


@pytest.mark.parametrize(("samples", "verify"), [(99, None), (100, 50), (599, 299), (700, 300)])
def test_no_more_samples_are_to_be_verified_than_is_possible(make_record, samples, verify):
    text = Page(page_of(make_record(2, 2, samples, 3, truth=False))).text
    assert re.findall(r"--verify (\d+)", text) == ([] if verify is None else [str(verify)])


def test_one_sample_is_singular():
    labels = np.array([[[0], [1]]])
    scored = make_sample_info(samples=1, classes=2, truth=[0])
    text = Page(page_of(Record(ArrayReader(labels, scored)))).text
    assert "Both rules label the same 1 sample." in text
    assert "of the 1 forgotten sample that" in text
    text += Page(page_of(Record(ArrayReader(labels, make_sample_info(samples=1, classes=2))))).text
    assert re.findall(r".{20}\b1 samples", text) == []


@pytest.mark.parametrize("truth", [True, False])
def test_no_level_of_headings_is_left_out(make_record, truth):
    found = re.findall(r"<h(\d)>", page_of(make_record(3, 8, 120, 4, truth=truth)))
    levels = [int(level) for level in found]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize(
    "shape", [(1, 6, 30, 3), (3, 1, 30, 3), (1, 1, 1, 2), (2, 4, 40, 2), (3, 4, 500, 1000)]
)
def test_any_record_gives_a_whole_page(make_record, shape, truth):
    text = page_of(make_record(*shape, truth=truth))
    assert "nan" not in Page(text).text
    assert ("There is only one network" in text) == (shape[0] == 1)
    assert ("There is only 1 epoch" in text) == (shape[1] == 1)


def test_meaningless_figures_are_left_out(make_record):
    assert figures_on(page_of(make_record(1, 6, 30, 3))) == [
        "accuracy",
        "epochs",
        "final-margin",
        "persistence",
        "reliability",
        "risk-coverage",
        "forgotten",
    ]
    assert figures_on(page_of(make_record(3, 1, 30, 3))) == [
        "networks",
        "error-consensus",
        "reliability",
        "risk-coverage",
    ]


def test_all_classes_are_shown_up_to_thirty(make_record):
    names = [f"kind {label}" for label in range(30)]
    text = page_of(make_record(2, 3, 900, 30, class_names=names))
    assert [name for name in names if f'<th scope="row">{name}</th>' not in text] == []


def test_of_many_classes_the_ten_that_change_most_are_shown(make_record):
    record = make_record(3, 6, 2000, 40, wrong=0.8)
    text = page_of(record)
    shown = re.findall(r'<th scope="row">(\d+)</th>', text.split("<h2>Class by class")[1])
    change = {}
    for label in range(40):
        first, second = (
            (record.predict(rule).labels == label)[record.truth == label].mean()
            for rule in ("majority", "max-agreement")
        )
        change[str(label)] = abs(second - first)
    assert len(shown) == 10
    assert min(change[one] for one in shown) >= max(
        value for one, value in change.items() if one not in shown
    )
    assert "of 40 classes, the 10 that change most" in Page(text).text


def test_a_class_that_gets_worse_has_changed_too():
    truth = np.arange(35).repeat(2)
    labels = np.tile(truth, (1, 3, 1))
    labels[0, :2, :2] = 1  # class 0 is found at the last epoch alone
    sample_info = make_sample_info(samples=70, classes=35, truth=truth)
    text = page_of(Record(ArrayReader(labels, sample_info)))
    worst = re.search(r'<th scope="row">0</th>.*?</tr>', text, re.DOTALL)[0]
    assert "-100.0</td>" in worst


def test_equal_metadata_is_shown_once_and_other_metadata_by_network(tmp_path):
    for network in range(2):
        about = {"data": "digits", "recipe": {"lr": 0.1}, "seed": network}
        with Recorder(tmp_path, network=network, samples=1, classes=2, metadata=about) as recorder:
            recorder.record([0])
    document = dict(
        re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', page_of(open_record(tmp_path)))
    )
    assert document == {"data": "digits", "recipe.lr": "0.1", "seed": "network 0: 0; network 1: 1"}


def test_long_metadata_is_cut_with_its_length(tmp_path):
    about = {"notes": "x" * 5000}
    with Recorder(tmp_path, network=0, samples=1, classes=2, metadata=about) as recorder:
        recorder.record([0])
    assert "x … (5,000 characters)" in page_of(open_record(tmp_path))


def test_the_page_is_written_whole(record, page, tmp_path):
    write_report(summarize(record.reader), tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "report.html").read_text("utf-8") == page
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


def test_a_path_that_is_no_text_is_shown_as_far_as_it_is(make_record, tmp_path):
    record = make_record(2, 2, 20, 3, name="runs/m\udcfcller")
    write_report(summarize(record.reader), tmp_path / "report.html")
    assert "<h1>runs/m?ller</h1>" in (tmp_path / "report.html").read_text("utf-8")


def test_an_unwritable_page_raises(record, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"report\.html: cannot write: .*not a folder"):
        write_report(summarize(record.reader), tmp_path / "file" / "report.html")


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_named(monkeypatch, module):
    monkeypatch.delitem(sys.modules, "accord.report.html")
    monkeypatch.delitem(sys.modules, "accord.report._figures")
    monkeypatch.delitem(sys.modules, "accord.report._mpl")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtraMissing, match=rf"{module}.*pip install 'accord\[report\]'"):
        import accord.report.html  # noqa: F401


def test_a_view_of_a_record_can_be_reported(record):
    view = record.select(networks=[0, 2], epochs=slice(4))
    assert "networks 2 epochs 4 samples 120" in Page(page_of(view)).text


def test_a_page_on_given_labels_calls_them_so(make_record):
    record = make_record(3, 6, 150, 3)
    labels = record.labels[:]
    info = make_sample_info(samples=150, classes=3, given=record.truth, split="test")
    text = Page(page_of(Record(ArrayReader(labels, info)))).text
    assert "No true labels are known" in text
    assert "Agreement with the given labels over training" in text
    assert "Accuracy" not in text
    assert "turned right" not in text
