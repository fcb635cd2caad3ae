"""Support for Label Studio tasks."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from accord.analysis._audit._review import NAMING, RawDecision
from accord.errors import SourceError

CHOICE: Final = "choice"  # name of the tag with the choices
IMAGE, TEXT = "image", "text"  # name of the tag that shows the sample, and of its field

MOST_SHOWN: Final = 60  # characters of a wrong value, in messages

Task = dict[str, Any]


def make_task(fields: dict[str, Any], *, proposed: str, score: float, shown: str) -> Task:
    """Create a task with the proposed class preselected."""
    result = {
        "from_name": CHOICE,
        "to_name": shown,
        "type": "choices",
        "value": {"choices": [proposed]},
    }
    prediction = {"model_version": "accord", "score": score, "result": [result]}
    return {"data": fields, "predictions": [prediction]}


def labelling_config(class_names: Sequence[str], *, shown: str = IMAGE) -> str:
    """Build the labelling configuration of a Label Studio project.

    >>> print(labelling_config(["cat", "dog"], shown="text"))
    <View>
      <Text name="text" value="$text"/>
      <Choices name="choice" toName="text" choice="single" showInline="true">
        <Choice value="cat"/>
        <Choice value="dog"/>
      </Choices>
    </View>
    """
    from xml.sax.saxutils import quoteattr  # imports an HTTP client: 15 ms

    tag = {IMAGE: "Image", TEXT: "Text"}[shown]
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in class_names)
    return (
        f'<View>\n  <{tag} name="{shown}" value="${shown}"/>\n'
        f'  <Choices name="{CHOICE}" toName="{shown}" choice="single" showInline="true">\n'
        f"{choices}\n  </Choices>\n</View>"
    )


def read_annotations(tasks: Any, *, name: str) -> Iterator[RawDecision]:
    """Iterate over the decisions in annotated tasks."""
    for where, task, annotations in read_tasks(tasks, name=name):
        data = task["data"]
        for annotation in annotations:
            if not annotation.get("was_cancelled"):
                chosen = _chosen(annotation, f"{name}: {where}")
                texts = {key: str(data[key]) for key in NAMING if data.get(key) is not None}
                yield RawDecision(where=where, decided=chosen, **texts)


def read_tasks(tasks: Any, *, name: str) -> Iterator[tuple[str, Task, list[dict[str, Any]]]]:
    """Iterate over tasks and their annotations."""
    if not isinstance(tasks, list) or not all(
        isinstance(task, dict) and isinstance(task.get("data"), dict) for task in tasks
    ):
        raise SourceError(
            f"{name}: not an export of Label Studio. Export the project as JSON, not JSON-MIN."
        )
    for number, task in enumerate(tasks):
        where = f"task {task.get('id', number)}"
        annotations = task.get("annotations", [])
        yield where, task, _objects(annotations, "`annotations`", f"{name}: {where}")


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
    choices: list[Any] = []
    for result in _objects(annotation.get("result", []), "`result`", where):
        if result.get("type") == "choices":
            value = result.get("value")
            listed = value.get("choices") if isinstance(value, dict) else None
            if not isinstance(listed, list):
                raise _damaged(where, "`value` must hold `choices`, a list", value)
            choices += listed
    if len(choices) != 1:
        raise SourceError(f"{where}: exactly one class must be chosen; got {choices}")
    return str(choices[0])
