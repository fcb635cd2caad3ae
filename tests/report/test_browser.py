"""A browser shows the page without complaint, on a desk and on a phone."""

from pathlib import Path

import pytest
from hard_records import with_bad_networks

from accord.analysis import summarize
from accord.report.html import write_report

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = pytest.mark.skipif(
    not CHROMIUM.exists(), reason="Debian's Chromium is not installed: apt-get install chromium"
)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


@pytest.fixture
def visit(browser, record, tmp_path):
    """Open the page at some width; complaints of the browser fail the test."""
    complaints = []

    def open_page(width, record=record):
        write_report(summarize(record.reader), tmp_path / "report.html")
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url))
        page.goto((tmp_path / "report.html").as_uri())
        return page

    yield open_page
    assert [one for one in complaints if not one.startswith("file://")] == []


@pytest.mark.parametrize("width", [400, 1100])
def test_nothing_is_wider_than_the_window(visit, width):
    page = visit(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    figures = page.locator("figure svg").evaluate_all("all => all.map(one => one.clientHeight)")
    assert len(figures) == 10
    assert min(figures) > 100


def test_a_long_list_of_networks_is_broken(visit, make_record):
    page = visit(400, with_bad_networks(make_record(60, 2, 120, 4, wrong=0.2), "constant"))
    assert "--networks 0,1,2," in page.locator("#network-health").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_click_on_a_column_sorts_by_it(visit):
    page = visit(1100)
    table = page.locator("table.sortable").last
    table.get_by_role("button", name="change").click()
    changes = [float(text) for text in table.locator("td:last-child").all_inner_texts()]
    assert changes == sorted(changes, reverse=True)


def test_pointing_at_a_rule_picks_it_out_of_the_figures(visit):
    page = visit(1100)
    page.locator('tr[data-rule="majority"]').hover()
    picked = page.locator("svg .on").evaluate_all("all => all.map(one => one.dataset.rule)")
    assert set(picked) == {"majority"}
