"""Run what README, docs and examples show, and follow every link.

In a document, blocks are run from top to bottom in one empty folder and one namespace:

- `python` with `>>>` is a doctest; without, it is run and must not fail.
- `console`: each line after `$ ` is run by bash, and the lines below it are what it must print;
  `...` stands for anything. Without such lines, it must only succeed; an example must succeed with
  them too. `> ` goes on with a command.

`<!-- not run: REASON -->` in the line before a block exempts it.
"""

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from accord.training.spec import parse_spec

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").rglob("*.md")]
)
FRAMEWORKS = ("keras_script.py", "lightning_script.py", "transformers_script.py")  # see clients/
EXAMPLE = re.compile(r"python examples/(\w+\.py)")
SPECS = sorted((ROOT / "examples").glob("*.toml"))
FENCE = re.compile(
    r"(?P<exempt><!-- not run: .+? -->\n\s*)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)|(?:src|href)=\"(?P<source>[^\"]+)\"")
ELLIPSIS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass
class Block:
    kind: str
    text: str
    line: int


def blocks_of(document):
    content = document.read_text()
    for found in FENCE.finditer(content):
        if not found["exempt"]:
            line = content.count("\n", 0, found.start("text")) + 1
            yield Block(found["kind"], found["text"], line)


def run_python(block, names, name):
    if ">>>" not in block.text:
        exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(block.text, names, name, name, block.line - 1)
    said = []
    runner = doctest.DocTestRunner(optionflags=ELLIPSIS)
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, "".join(said)


def commands_of(text):
    """Split a console block into (command, what it must print)."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        lines = part.splitlines()
        size = 1
        while lines[size - 1].endswith("\\") or "".join(lines[size : size + 1])[:2] == "> ":
            size += 1
        command = [line.removeprefix("> ") for line in lines[:size]]
        yield "\n".join(command), "\n".join(lines[size:])


def run_console(block, folder, name):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "TERM": "dumb"}
    for command, expected in commands_of(block.text):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        where = f"{name}:{block.line}: $ {command}\n{done.stdout}"
        may_fail = expected and not EXAMPLE.fullmatch(command)
        assert may_fail or done.returncode == 0, where
        matches = doctest.OutputChecker().check_output(f"{expected}\n", done.stdout, ELLIPSIS)
        assert not expected or matches, f"{where}\nexpected:\n{expected}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_the_document_shows_runs(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("examples", "results"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")
    names = {"__name__": "__main__"}
    for block in blocks_of(document):
        if block.kind == "python":
            run_python(block, names, document.name)
        elif block.kind == "console":
            run_console(block, tmp_path, document.name)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    content = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
    for found in LINK.finditer(content):
        target = (found["target"] or found["source"]).partition("#")[0]
        if target and "://" not in target and not target.startswith("mailto:"):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def write_small_cifar10(folder, *, batches=1):
    """Noise in the published binary layout."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    names = [*(f"data_batch_{number + 1}.bin" for number in range(batches)), "test_batch.bin"]
    for name, samples in zip(names, [*(64 // batches for _ in range(batches)), 32], strict=True):
        rows = generator.integers(0, 256, (samples, 3073)).astype(np.uint8)
        rows[:, 0] %= 10
        rows.tofile(folder / name)


def examples_shown():
    """Name the examples that a document runs."""
    blocks = [block for document in DOCUMENTS for block in blocks_of(document)]
    consoles = [block.text for block in blocks if block.kind == "console"]
    commands = [command for text in consoles for command, _ in commands_of(text)]
    return {found[1] for found in map(EXAMPLE.fullmatch, commands) if found}


EXAMPLES = sorted(
    {path.name for path in (ROOT / "examples").glob("*.py")} - {*FRAMEWORKS, *examples_shown()}
)
ARGUMENTS = {"cifar10.py": ["small-cifar10", "record", "--epochs", "2", "--width", "4"]}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs(example, tmp_path):
    write_small_cifar10(tmp_path / "small-cifar10")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / example, *ARGUMENTS.get(example, [])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_spec_that_is_shown_is_one(document):
    for block in blocks_of(document):
        if block.kind == "toml" and block.text.startswith("name = "):
            parse_spec(block.text, name=f"{document.name}:{block.line}")


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.name)
def test_the_how_to_shows_the_example_spec_as_it_is(spec):
    shown = (ROOT / "docs/how-to/train-an-ensemble.md").read_text()
    assert spec.name == "digits.toml" or f"```toml\n{spec.read_text()}```" in shown


def write_photos(folder):
    generator = np.random.default_rng(0)
    for part, count in (("train", 4), ("test", 2)):
        for name in ("cat", "dog"):
            (folder / part / name).mkdir(parents=True)
            for number in range(count):
                pixels = generator.integers(0, 256, (40, 50, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(folder / part / name / f"{number}.png")


def write_customers(path):
    rows = [f"{age},{age % 7},{'yes' if age % 2 else 'no'}" for age in range(20, 60)]
    path.write_text("\n".join(["age,calls,left", *rows]))


SMALLER = {
    "digits.toml": [],
    "image_folder.toml": [("size = 224", "size = 24"), ("resize = 256", "resize = 32")],
    "table.toml": [],
    "cifar10.toml": [('path = "data/cifar-10-batches-bin"', 'path = "small"\ncomplete = false')],
}


@pytest.mark.parametrize("name", SMALLER)
def test_the_example_spec_trains(name, tmp_path, monkeypatch):
    """On a little data, one network for one epoch."""
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path / "photos")
    write_customers(tmp_path / "churn.csv")
    write_small_cifar10(tmp_path / "small", batches=5)
    text = (ROOT / "examples" / name).read_text()
    for old, new in SMALLER[name]:
        assert old in text
        text = text.replace(old, new)
    text = re.sub(r"(?m)^epochs = \d+", "epochs = 1", text)
    text = re.sub(r"(?m)^networks = \d+", "networks = 1", text)
    Path("spec.toml").write_text(text)
    run_console(Block("console", "$ accord train spec.toml --out run\n", 1), tmp_path, name)
    run_console(Block("console", "$ accord score run/test\n", 1), tmp_path, name)


def test_a_wrong_output_is_noticed(tmp_path):
    """The checks above can fail."""
    names: dict[str, object] = {}
    with pytest.raises(AssertionError, match="Expected"):
        run_python(Block("python", ">>> 1 + 1\n3\n", 1), names, "x.md")
    with pytest.raises(AssertionError, match=r"expected:\s+four"):
        run_console(Block("console", "$ echo five\nfour\n", 1), tmp_path, "x.md")
    with pytest.raises(AssertionError, match="false"):
        run_console(Block("console", "$ false\n", 1), tmp_path, "x.md")
    with pytest.raises(AssertionError, match="No such file"):
        run_console(Block("console", "$ python examples/none.py\n...\n", 1), tmp_path, "x.md")
