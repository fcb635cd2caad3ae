"""The structure of the repository: names, doors, tests, the map in CONTRIBUTING, plain words."""

import io
import re
import tokenize
from collections import defaultdict
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/accord"
TESTS = ROOT / "tests"


def python_files(folder):
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


MODULES = [PurePosixPath(path.relative_to(PACKAGE)) for path in python_files(PACKAGE)]


def dotted(module):
    """Return the parts of a module's name below `accord`: rules/_em.py -> ("rules", "_em")."""
    return module.parent.parts if module.stem == "__init__" else (*module.parent.parts, module.stem)


def is_private(module):
    return any(part.startswith("_") and part != "__main__" for part in dotted(module))


# -- names --------------------------------------------------------------------------------------


def test_modules_of_one_name_are_commands_and_what_they_run():
    by_name = defaultdict(set)
    for module in MODULES:
        if module.stem != "__init__":
            by_name[module.stem.strip("_")].add(module.parts[0])
    commands = {name for name, folders in by_name.items() if "cli" in folders}
    counts = {name: sum(m.stem.strip("_") == name for m in MODULES) for name in by_name}
    assert {name for name, count in counts.items() if count > 1} <= commands


def test_at_least_half_of_the_modules_are_private():
    assert 2 * sum(map(is_private, MODULES)) >= len(MODULES)


# -- tests --------------------------------------------------------------------------------------

# Tests of several modules, of a package's door, or of what no module holds.
OTHER_TESTS = {
    "cli/test_commands.py": "help, exit statuses and output of all commands",
    "cli/test_reads.py": "rows read and frames nested by commands",
    "cli/test_train_ray.py": "train on a cluster without ray",
    "data/noise/test_noise.py": "the door",
    "data/readers/test_readers.py": "the door",
    "data/readers/test_readers_train.py": "each reader with a network",
    "experiments/paper/test_committed.py": "the stored results",
    "experiments/paper/test_reproduce_queue.py": "a benchmark script",
    "experiments/theory/test_theory.py": "the door",
    "report/test_browser.py": "the page in a browser",
    "rules/test_rules.py": "the contract of all rules",
    "sklearn/test_classifier_checks.py": "the estimator checks of scikit-learn",
    "store/test_example.py": "the bundled record",
    "store/test_full_disk.py": "a full disk",
    "store/test_kills.py": "killed writers",
    "store/test_processes.py": "several processes",
    "store/test_released_formats.py": "records of earlier versions",
    "store/test_zarr.py": "other readers of Zarr",
    "training/test_effect.py": "max agreement on trained networks",
    "training/test_gpu.py": "all of training on a GPU",
    "test_imports.py": "what `import accord` loads; the import contracts",
    "test_misuse.py": "messages of all packages",
    "test_structure.py": "this file",
}
# Modules that are tested in a file of another name.
TESTED_BY = {
    "analysis/audit/test_result.py": "tests/analysis/audit/test_audit.py",
    "cli/test_progress.py": "tests/cli/test_reproduce.py",
    "cli/test_report.py": "tests/cli/test_commands.py",
    "data/readers/test_find_files.py": "tests/data/readers/test_readers.py",
    "kernels/test_numpy_loops.py": "tests/kernels/test_numba_loops.py",
    "recorders/test_eval_mode.py": "tests/recorders/test_loader_predictions.py",
    "report/test_mpl.py": "tests/report/test_figures.py",
    "report/test_text_table.py": "tests/report/test_command_text.py",
    "rules/test_majority.py": "tests/rules/test_rules.py",
    "rules/test_probability_average.py": "tests/rules/test_rules.py",
    "rules/test_single.py": "tests/rules/test_rules.py",
    "rules/test_soft_agreement.py": "tests/rules/test_rules.py",
    "sklearn/test_fit_by_epoch.py": "tests/sklearn/test_classifier.py",
    "sklearn/test_module.py": "tests/sklearn/test_classifier.py",
    "store/test_record_format.py": "tests/store/test_writer.py",
    "test_errors.py": "docs/reference/python.md",
    "test_lightning.py": "clients/test_lightning.py",
    "test_main.py": "clients/test_wheel.py",
    "test_predictions.py": "docs/test_documents.py",
    "test_transformers.py": "clients/test_transformers_trainer.py",
    "test_version.py": "clients/test_wheel.py",
    "training/networks/test_densenet.py": "tests/training/networks/test_registry.py",
    "training/networks/test_mobilenet.py": "tests/training/networks/test_registry.py",
}


def mirrored(module):
    """Return where the tests of a module are: rules/_em.py -> rules/test_em.py."""
    folder = PurePosixPath(*(part.strip("_") for part in module.parent.parts))
    return str(folder / f"test_{module.stem.strip('_')}.py")


def test_tests_mirror_modules():
    found = {str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")}
    wanted = {mirrored(module) for module in MODULES if module.stem != "__init__"}
    assert found - wanted == OTHER_TESTS.keys()
    assert wanted - found == TESTED_BY.keys()
    assert not [test for test in TESTED_BY.values() if not (ROOT / test).exists()]


# -- doors --------------------------------------------------------------------------------------

FACES = ("torch", "lightning", "transformers", "keras", "boosting")
DOORS = {
    ".".join(("accord", *dotted(module)))
    for module in MODULES
    if not is_private(module)
    and (module.stem == "__init__" or str(module.with_suffix("")) in FACES)
} | {"accord.errors"}
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def imports_of(path):
    """Yield the modules below `accord` that a document or an example imports from."""
    text = path.read_text()
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S))
    for found in re.finditer(r"^(?:>>> |\.\.\. )?\s*(?:from|import) (accord[\w.]*)", text, re.M):
        yield found[1]


@pytest.mark.parametrize("path", [*DOCUMENTS, *EXAMPLES], ids=lambda path: path.name)
def test_documents_and_examples_import_from_doors(path):
    assert set(imports_of(path)) <= DOORS


def test_some_document_imports_from_accord():
    assert any(set(imports_of(path)) for path in DOCUMENTS)


# -- the map in CONTRIBUTING --------------------------------------------------------------------


def test_the_map_in_contributing_lists_the_packages():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = re.search(r"^\| in `src/accord`.*?\n\n", text, re.M | re.S)[0]
    rows = [row for row in table.splitlines()[2:] if row]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    top = {module.parts[0].removesuffix(".py") for module in MODULES}
    assert sorted(listed) == sorted(top - {"__init__", "__main__", "_version"})


# -- words --------------------------------------------------------------------------------------

SPEECH = r"tell|tells|told|telling|ask|asks|asked|asking|say|says|said|saying"
IN_PROSE = re.compile(rf"\b(?:{SPEECH})\b", re.I)
IN_NAME = re.compile(rf"(?:^|_)(?:{SPEECH}|asker|teller)(?:_|$)|Tell|Told|Ask(?![a-z])|Asked|Said")
KEYS = {"told", "asked", "says"}  # keys of documented JSON, and attributes named after them


def python_text(path):
    """Return the names of a file, and its strings and comments."""
    names, prose = [], []
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "NAME":
            names.append(token.string)
        elif kind in ("STRING", "COMMENT", "FSTRING_MIDDLE"):
            prose.append(token.string)
    return names, "\n".join(prose)


def speech_per_thousand(text):
    words = len(re.findall(r"[A-Za-z]{2,}", text))
    return 1000 * len(IN_PROSE.findall(text)) / max(1, words)


@pytest.mark.parametrize("folder", ["src", "tests", "examples", "clients", "benchmarks"])
def test_code_has_no_words_of_speech(folder):
    files = [path for path in python_files(ROOT / folder) if path != Path(__file__)]
    names, prose = zip(*map(python_text, files), strict=True)
    assert {name for part in names for name in part if IN_NAME.search(name)} <= KEYS
    assert speech_per_thousand("\n".join(prose)) <= 0.5


def test_documents_have_no_words_of_speech():
    assert speech_per_thousand("\n".join(path.read_text() for path in DOCUMENTS)) <= 0.5


def test_words_of_speech_are_found():
    assert speech_per_thousand("The record tells what was said.") == pytest.approx(1000 * 2 / 6)
    assert IN_NAME.search("ask_network")
    assert IN_NAME.search("Told")
    assert not IN_NAME.search("task")
