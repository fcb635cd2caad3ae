r"""Run the code that README, docs and examples show, and follow every link.

The blocks of a document are run from top to bottom in one empty folder and one namespace:

- `python` with `>>>` is a doctest; without, it must run without an error.
- `console`: bash runs each line after `$ ` (`> ` continues a command). The lines below it are its
  output. A command without them must succeed, and so must an example with them.

Output is compared line by line, except for spaces at the end of a line. A line `...` stands for
lines left out. What differs between runs is described above the block, one regular expression per
comment; everything that the expression matches is equal:

    <!-- varies: \d+ s -->
    <!-- varies: /tmp/\S+ -->

`<!-- not run: REASON -->` above a block exempts it.

    python docs/test_documents.py --update [-n JOBS] [DOCUMENT ...]

runs the documents and replaces shown output that differs. Lines that match are left as they are.
"""

import argparse
import contextlib
import difflib
import doctest
import io
import os
import re
import runpy
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from accord.training import parse_spec

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").rglob("*.md")]
)
FRAMEWORKS = ("keras_script.py", "lightning_script.py", "transformers_script.py")  # see clients/
PICTURES = ("accuracy.svg", "accuracy-dark.svg")
EXAMPLE = re.compile(r"python examples/(\w+\.py)")
SPECS = sorted((ROOT / "examples").glob("*.toml"))
BLOCK = re.compile(
    r"(?P<comments>(?:^<!-- .+? -->\n\s*)*)^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
VARIES = re.compile(r"^<!-- varies: (.+?) -->$", re.M)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)|(?:src|srcset|href)=\"(?P<source>[^\"]+)\"")


@dataclass
class Block:
    kind: str
    text: str
    line: int = 1
    patterns: tuple[str, ...] = ()


def blocks_of(document):
    content = document.read_text()
    for found in BLOCK.finditer(content):
        if "<!-- not run: " not in found["comments"]:
            line = content.count("\n", 0, found.start("text")) + 1
            patterns = tuple(VARIES.findall(found["comments"]))
            yield Block(found["kind"], found["text"], line, patterns)


# -- comparing output ---------------------------------------------------------------------------


def normalise(lines, patterns):
    """Return lines that are equal where only what the patterns match differs."""
    for pattern in patterns:
        lines = [re.sub(pattern, "\0", line) for line in lines]
    return [line.rstrip() for line in lines]


def split_at_ellipses(lines):
    """Return the runs of lines before, between and after lines `...`."""
    runs = [[]]
    for line in lines:
        if line.strip() == "...":
            runs.append([])
        else:
            runs[-1].append(line)
    return runs


def output_matches(shown, real, patterns):
    """Return whether the lines of an output are those shown."""
    runs = [normalise(run, patterns) for run in split_at_ellipses(shown)]
    real = normalise(real, patterns)
    if len(runs) == 1:
        return runs[0] == real
    first, *middle, last = runs
    start, stop = len(first), len(real) - len(last)
    if start > stop or real[:start] != first or real[stop:] != last:
        return False
    for run in middle:
        places = range(start, stop - len(run) + 1)
        place = next((place for place in places if real[place : place + len(run)] == run), None)
        if place is None:
            return False
        start = place + len(run)
    return True


def merge_output(shown, real, patterns):
    """Return the real lines; where only a match of a pattern differs, the line shown."""
    old, new = normalise(shown, patterns), normalise(real, patterns)
    merged = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, i, j, start, stop in matcher.get_opcodes():
        merged += shown[i:j] if tag == "equal" else real[start:stop]
    return [line.rstrip() for line in merged]


def update_output(shown, real, patterns):
    """Return what a document should show; `...` keeps its place, and each run its length."""
    if output_matches(shown, real, patterns):
        return shown
    runs = split_at_ellipses(shown)
    if len(runs) == 1:
        return merge_output(shown, real, patterns)
    first, *middle, last = runs
    start, stop = len(first), len(real) - len(last)
    if start > stop:
        return merge_output([line for run in runs for line in run], real, patterns)
    ellipsis = next(line for line in shown if line.strip() == "...")
    updated = [*merge_output(first, real[:start], patterns), ellipsis]
    for run in middle:
        place = max(
            range(start, max(start, stop - len(run)) + 1),
            key=lambda place: similarity(run, real[place : place + len(run)], patterns),
        )
        start = min(place + len(run), stop)
        updated += [*merge_output(run, real[place:start], patterns), ellipsis]
    return updated + merge_output(last, real[stop:], patterns)


def similarity(shown, real, patterns):
    old, new = ("\n".join(normalise(lines, patterns)) for lines in (shown, real))
    return difflib.SequenceMatcher(None, old, new, autojunk=False).ratio()


# -- running blocks -----------------------------------------------------------------------------


class DocumentRunner(doctest.DocTestRunner):
    """Runs a doctest and collects the examples that print something else."""

    def __init__(self, patterns):
        super().__init__(checker=PatternChecker(patterns), verbose=False)
        self.found = []

    def report_failure(self, out, test, example, got):
        self.found.append((example, got))
        super().report_failure(out, test, example, got)

    def report_unexpected_exception(self, out, test, example, exc_info):
        self.found.append((example, None))
        super().report_unexpected_exception(out, test, example, exc_info)


class PatternChecker(doctest.OutputChecker):
    def __init__(self, patterns):
        self.patterns = patterns

    def check_output(self, want, got, optionflags):
        got = re.sub(r"(?m)^[^\S\n]*$(?=\n)", "<BLANKLINE>", got)
        return output_matches(want.splitlines(), got.splitlines(), self.patterns)


def run_python(block, names, name):
    """Return the block with its real output, and a message where that differs."""
    if ">>>" not in block.text:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), names)
        return block.text, ""
    test = doctest.DocTestParser().get_doctest(block.text, names, name, name, block.line - 1)
    messages = []
    runner = DocumentRunner(block.patterns)
    runner.run(test, out=messages.append, clear_globs=False)
    names.update(test.globs)
    lines = block.text.splitlines()
    for example, got in reversed(runner.found):
        if got is not None:
            start = example.lineno + example.source.count("\n")
            stop = start + example.want.count("\n")
            lines[start:stop] = updated_example(example, got, block.patterns)
    return "".join(f"{line}\n" for line in lines), "".join(messages)


def updated_example(example, got, patterns):
    real = [line if line.strip() else "<BLANKLINE>" for line in got.splitlines()]
    shown = example.want.splitlines()
    if real and real[0].startswith("Traceback (") and shown[:1] == real[:1]:
        # Of a traceback, only the message is compared.
        message = doctest_error(shown)
        head = shown[: len(shown) - len(message)]
        return head + merge_output(message, doctest_error(real), patterns)
    return update_output(shown, real, patterns)


def doctest_error(lines):
    """Return the message at the end of a traceback."""
    return lines[next(i for i, line in enumerate(lines) if i and not line.startswith(" ")) :]


def commands_of(text):
    """Split a console block into pairs: lines of a command, lines of its output."""
    for part in re.split(r"^(?=\$ )", text, flags=re.M)[1:]:
        lines = part.splitlines()
        size = 1
        while lines[size - 1].endswith("\\") or "".join(lines[size : size + 1])[:2] == "> ":
            size += 1
        yield lines[:size], lines[size:]


def typed(lines):
    """Return a command without its prompts."""
    return "\n".join(
        [lines[0].removeprefix("$ "), *(line.removeprefix("> ") for line in lines[1:])]
    )


def without_end(lines):
    """Return the lines without empty ones at the end."""
    return "\n".join(lines).rstrip().splitlines()


def run_console(block, folder, name):
    """Return the block with its real output, and a message if that differs or a command fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "TERM": "dumb"}
    updated, messages = [], []
    for command, output in commands_of(block.text):
        done = subprocess.run(
            ["bash", "-c", typed(command)],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        shown, real = without_end(output), without_end(done.stdout.splitlines())
        where = f"{name}:{block.line}: $ {typed(command)}\n{done.stdout}"
        may_fail = shown and not EXAMPLE.fullmatch(typed(command))
        crashed = "Traceback (most recent call last)" in done.stdout
        updated += command
        if (done.returncode and not may_fail) or (crashed and "Traceback" not in "".join(shown)):
            messages.append(f"{where}\nexit status {done.returncode}")
            updated += output
        elif shown and not output_matches(shown, real, block.patterns):
            messages.append(f"{where}\nexpected:\n" + "\n".join(shown))
            updated += update_output(shown, real, block.patterns) + output[len(shown) :]
        else:
            updated += output
    before = re.split(r"^(?=\$ )", block.text, maxsplit=1, flags=re.M)[0]
    return before + "".join(f"{line}\n" for line in updated), "\n".join(messages)


def run_document(document, folder):
    """Yield each block of code, with its real output, and a message where that differs."""
    for name in ("examples", "results", "Makefile"):
        (folder / name).symlink_to(ROOT / name)
    names = {"__name__": "__main__"}
    for block in blocks_of(document):
        if block.kind == "python":
            yield block, *run_python(block, names, document.name)
        elif block.kind == "console":
            yield block, *run_console(block, folder, document.name)


# -- tests --------------------------------------------------------------------------------------

each_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT))
)


@each_document
def test_the_code_of_a_document_runs(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _, _, message in run_document(document, tmp_path):
        assert not message, message


@each_document
def test_every_pattern_matches_its_block(document):
    for block in blocks_of(document):
        for pattern in block.patterns:
            assert re.search(pattern, block.text, re.M), f"{document.name}:{block.line}: {pattern}"


@each_document
def test_every_link_has_a_target(document):
    content = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
    for found in LINK.finditer(content):
        target = (found["target"] or found["source"]).partition("#")[0]
        if target and "://" not in target and not target.startswith("mailto:"):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_dark_picture_of_the_readme_is_the_light_one_in_other_colours():
    draw = runpy.run_path(str(ROOT / "docs/images/draw.py"))
    light, dark = ((ROOT / "docs/images" / name).read_text() for name in PICTURES)
    assert draw["darken"](light) == dark != light


def write_small_cifar10(folder, *, batches=1):
    """Write random images in the published binary layout."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    names = [*(f"data_batch_{number + 1}.bin" for number in range(batches)), "test_batch.bin"]
    for name, samples in zip(names, [*(64 // batches for _ in range(batches)), 32], strict=True):
        rows = generator.integers(0, 256, (samples, 3073)).astype(np.uint8)
        rows[:, 0] %= 10
        rows.tofile(folder / name)


def examples_shown():
    """Return the names of the examples that a document runs."""
    blocks = [block for document in DOCUMENTS for block in blocks_of(document)]
    consoles = [block.text for block in blocks if block.kind == "console"]
    commands = [typed(command) for text in consoles for command, _ in commands_of(text)]
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


@each_document
def test_every_spec_that_is_shown_is_valid(document):
    for block in blocks_of(document):
        if block.kind == "toml" and block.text.startswith("name = "):
            parse_spec(block.text, name=f"{document.name}:{block.line}")


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.name)
def test_the_how_to_shows_the_example_spec(spec):
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
    """Train one network for one epoch on a small data set."""
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
    commands = "$ accord train spec.toml --out run\n$ accord score run/test\n"
    _, message = run_console(Block("console", commands), tmp_path, name)
    assert not message, message


# -- tests of the checks above ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "wanted"),
    [
        (Block("python", ">>> 1 + 1\n3\n"), "Expected"),
        (Block("python", ">>> 1 / 0\n3\n"), "ZeroDivisionError"),
        (Block("console", "$ echo five\nfour\n"), "expected:\nfour"),
        (Block("console", "$ echo five four\nfive...\n"), "expected:\nfive..."),
        (Block("console", "$ false\n"), "exit status 1"),
        (Block("console", "$ python examples/none.py\n...\n"), "No such file"),
        (Block("console", "$ python -c 1/0\n...\n"), "Traceback"),
        (Block("console", "$ echo 3 s\n4 s\n", patterns=(r"\d+ h",)), "expected:\n4 s"),
    ],
)
def test_a_wrong_output_is_noticed(block, wanted, tmp_path):
    run = {"python": run_python, "console": run_console}[block.kind]
    _, message = run(block, {} if run is run_python else tmp_path, "x.md")
    assert wanted in message


@pytest.mark.parametrize(
    ("shown", "real", "patterns", "updated"),
    [
        ("1", "2", (), "2"),
        ("took 3 s|b", "took 4 s|b", (r"\d+ s",), "took 3 s|b"),
        ("took 3 s|b", "took 4 s|c", (r"\d+ s",), "took 3 s|c"),
        ("took 3 s|b", "took 4 s|x|b", (r"\d+ s",), "took 3 s|x|b"),
        ("a|...|z", "a|b|z", (), "a|...|z"),
        ("a|...|z", "A|b|c|Z", (), "A|...|Z"),
        ("a|...|min 5|...|z", "a|b|c|min 6|d|z", (), "a|...|min 6|...|z"),
        ("...|z", "a|b|y", (), "...|y"),
        ("a|b|...|z", "c|d", (), "c|d"),
    ],
)
def test_update_shows_the_real_output(shown, real, patterns, updated):
    found = update_output(shown.split("|"), real.split("|"), patterns)
    assert "|".join(found) == updated


UNTRUE = """Text `$ echo 1`.

<!-- varies: \\d+ s -->
```console
$ echo 5 s; echo one
4 s
two
$ false || echo wrong
right

$ true
```

```python
>>> 1 + 1
3
>>> print("a\\n\\nb")
c
>>> int("x")
Traceback (most recent call last):
    ...
ValueError: x
>>> int("y")
Traceback (most recent call last):
ValueError: y
>>> for _ in range(2):
...     print(2)
3
```

<!-- not run: no need -->
```console
$ false
```
"""
TRUTH = {
    "two\n": "one\n",
    "right\n": "wrong\n",
    "1\n3\n": "1\n2\n",
    "\nc\n": "\na\n<BLANKLINE>\nb\n",
    "(2)\n3\n": "(2)\n2\n2\n",
    "Error: x": "Error: invalid literal for int() with base 10: 'x'",
    "Error: y": "Error: invalid literal for int() with base 10: 'y'",
}


def test_update_repairs_a_document(tmp_path, capsys):
    document = tmp_path / "x.md"
    document.write_text(UNTRUE)
    assert update_document(document) == 0
    true = UNTRUE
    for old, new in TRUTH.items():
        assert old in true
        true = true.replace(old, new)
    assert document.read_text() == true
    assert capsys.readouterr().out == f"{document}: updated\n"
    assert update_document(document) == 0
    assert not capsys.readouterr().out


def test_update_reports_a_failed_command_and_leaves_it(tmp_path, capsys):
    document = tmp_path / "x.md"
    text = "```console\n$ false\n```\n"
    document.write_text(text)
    assert update_document(document) == 1
    assert document.read_text() == text
    assert "exit status 1" in capsys.readouterr().err


def test_update_stops_at_an_error_and_keeps_what_it_found(tmp_path):
    document = tmp_path / "x.md"
    error = "```python\nraise ValueError('gone')\n```\n"
    document.write_text(f"```python\n>>> 1\n2\n```\n\n{error}")
    with pytest.raises(ValueError, match="gone"):
        update_document(document)
    assert document.read_text() == f"```python\n>>> 1\n1\n```\n\n{error}"


# -- updating -----------------------------------------------------------------------------------


def update_document(document):
    """Write the real output into a document, print what failed, and return the exit status."""
    replaced, failures = [], []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        try:
            for block, updated, message in run_document(document, Path(folder)):
                if updated != block.text:
                    replaced.append((block.text, updated))
                elif message:
                    failures.append(message)
        finally:
            replace_blocks(document, replaced)
    for failure in failures:
        print(failure, file=sys.stderr, flush=True)
    return int(bool(failures))


def replace_blocks(document, replaced):
    # The document may have been edited while it ran: read it again, replace the blocks alone.
    content = document.read_text()
    for old, new in replaced:
        content = content.replace(f"\n{old}```", f"\n{new}```", 1)
    if replaced:
        document.write_text(content)
        print(f"{document}: updated", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true", required=True, help="write real output")
    parser.add_argument("-n", type=int, default=1, metavar="JOBS", help="documents at a time")
    parser.add_argument("documents", nargs="*", type=Path, default=DOCUMENTS)
    arguments = parser.parse_args()
    documents = [document.resolve() for document in arguments.documents]
    if len(documents) == 1:
        return update_document(documents[0])
    # A process each: what a document imports, starts or changes ends with it.
    commands = [[sys.executable, __file__, "--update", str(document)] for document in documents]
    with ThreadPoolExecutor(arguments.n) as pool:
        return max(pool.map(subprocess.call, commands))


if __name__ == "__main__":
    sys.exit(main())
