"""Examples that need a framework run, and documents show their current text."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ["lightning_script", "transformers_script", "keras_script"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs(name, tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / f"examples/{name}.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
        },  # small networks: threads are in each other's way
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^max-agreement +\d+\.\d$", done.stdout, re.M), done.stdout


@pytest.mark.parametrize("name", [*EXAMPLES, "torch_loader"])
def test_the_page_shows_the_example_as_it_is(name):
    page = (ROOT / f"docs/how-to/record-from-{name.partition('_')[0]}.md").read_text()
    assert f"```python\n{(ROOT / f'examples/{name}.py').read_text()}```" in page
