"""What turns matplotlib's SVG into an element that fits into a page beside others."""

import re
from typing import Final

from accord.report.looks import INKS

FACES: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, sans-serif"


def tidy(text: str, *, title: str) -> str:
    """Return the SVG element alone, read out as `title`.

    A group that was named `rule:majority` bears `data-rule="majority"` instead: many may.
    """
    text = text[text.index("<svg") :]
    text = re.sub(r' id="rule:([a-z-]+)"', r' data-rule="\1"', text)
    text = re.sub(r' id="[a-z0-9.]+_\d+"', "", text)  # nothing refers to these
    text = re.sub(r"'DejaVu Sans'[^;\"]*", FACES, text)
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    # A style sheet in one drawing would hold for the whole page.
    text = re.sub(r"<!--.*?-->|<defs>\s*<style.*?</defs>", "", text, flags=re.DOTALL)
    spoken = f'role="img" aria-label="{title}"'
    text = text.replace("<svg ", f'<svg {spoken} stroke-linejoin="round" ', 1)
    return re.sub(r"\s*\n\s*", "\n", text).strip()


def with_variables(svg: str) -> str:
    """Return a drawing whose colours follow the page's: CSS variables `--ink-…`."""
    for name, colour in INKS.items():
        svg = svg.replace(colour.light, f"var(--ink-{name}, {colour.light})")
    return svg
