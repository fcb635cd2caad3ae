"""Tasks of Label Studio: to review labels in, and to read decisions from."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from accord.analysis._audit._review import RawDecision
from accord.errors import SourceError

CHOICE: Final = "choice"  # name of the tag with the choices
IMAGE, TEXT = "image", "text"  # name of the tag that shows the sample, and of its field

MOST_SHOWN: Final = 60  # characters of a wrong value, in messages

Task = dict[str, Any]


def make_task(fields: dict[str, Any], *, proposed: str, score: float, shown: str) -> Task:
    """Return one task, with the proposed class preselected.

    Args:
        fields: data of the task; `image` or `text` is what people see.
        proposed: name of the class.
        score: of the proposal.
        shown: the field that people see.
    """
    result = {
        "from_name": CHOICE,
        "to_name": shown,
        "type": "choices",
        "value": {"choices": [proposed]},
    }
    prediction = {"model_version": "accord", "score": score, "result": [result]}
    return {"data": fields, "predictions": [prediction]}


def labelling_config(class_names: Sequence[str], *, shown: str = IMAGE) -> str:
    """Return the labelling interface of the tasks, to paste into the settings of a project.

    >>> print(labelling_config(["cat", "dog"], shown="text"))
    <View>
      <Text name="text" value="$text"/>
      <Choices name="choice" toName="text" choice="single" showInline="true">
        <Choice value="cat"/>
        <Choice value="dog"/>
      </Choices>
    </View>
    """
    tag = {IMAGE: "Image", TEXT: "Text"}[shown]
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in class_names)
    return (
        f'<View>\n  <{tag} name="{shown}" value="${shown}"/>\n'
        f'  <Choices name="{CHOICE}" toName="{shown}" choice="single" showInline="true">\n'
        f"{choices}\n  </Choices>\n</View>"
    )


def read_annotations(tasks: Any, *, name: str) -> Iterator[RawDecision]:
    """Yield the decisions of tasks; skipped tasks and tasks without annotations are left out.

    Raises:
        SourceError: these are not tasks of Label Studio, or an annotation has not exactly one
            choice.
    """
    for where, task, annotations in read_tasks(tasks, name=name):
        data = task["data"]
        for annotation in annotations:
            if not annotation.get("was_cancelled"):
                yield RawDecision(
                    where=where,
                    decided=_chosen(annotation, f"{name}: {where}"),
                    **{key: _as_text(data.get(key)) for key in ("sample", "id", "given")},
                )


def read_tasks(tasks: Any, *, name: str) -> Iterator[tuple[str, Task, list[dict[str, Any]]]]:
    """Yield the name of each task for messages, the task, and its annotations.

    Raises:
        SourceError: these are not tasks of Label Studio.
    """
    if not isinstance(tasks, list) or not all(_is_task(task) for task in tasks):
        raise SourceError(
            f"{name}: not an export of Label Studio. Export the project as JSON, not JSON-MIN."
        )
    for number, task in enumerate(tasks):
        where = f"task {task.get('id', number)}"
        annotations = task.get("annotations", [])
        yield where, task, _objects(annotations, "`annotations`", f"{name}: {where}")


def _is_task(task: Any) -> bool:
    return isinstance(task, dict) and isinstance(task.get("data"), dict)


def _objects(value: Any, name: str, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _damaged(where, f"{name} must be a list of objects", value)
    return value


def _damaged(where: str, expected: str, got: Any) -> SourceError:
    text = json.dumps(got)
    shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return SourceError(
        f"{where}: {expected}; got {shown}. Export the project again as JSON, or remove the task"
    )


def _chosen(annotation: dict[str, Any], where: str) -> str:
    results = _objects(annotation.get("result", []), "`result`", where)
    choices = [
        choice
        for result in results
        if result.get("type") == "choices"
        for choice in _choices(result, where)
    ]
    if len(choices) != 1:
        raise SourceError(f"{where}: exactly one class must be chosen; got {choices}")
    return str(choices[0])


def _choices(result: dict[str, Any], where: str) -> list[Any]:
    value = result.get("value")
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list):
        raise _damaged(where, "`value` must hold `choices`, a list", value)
    return choices


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)
