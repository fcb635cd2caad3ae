"""Label Studio's JSON: tasks to import there, and annotations exported from there."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from accord.analysis.labels.decisions import Said
from accord.errors import SourceError

CHOICE: Final = "choice"  # the name of the tag that people choose with
IMAGE, TEXT = "image", "text"  # the name of what they look at, and of the task's field for it

MOST_SHOWN: Final = 60  # characters of what is wrong, in messages

Task = dict[str, Any]


def make_task(fields: dict[str, Any], *, proposed: str, score: float, shown: str) -> Task:
    """Return one task, with the proposed class chosen beforehand.

    Args:
        fields: what the task says of the sample; `image` or `text` is what people look at.
        proposed: the class's name.
        score: how sure the proposal is.
        shown: which of the fields they look at.
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
    """Return the labelling interface that the tasks fit: to paste into a project's settings.

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


def read_annotations(tasks: Any, *, name: str) -> Iterator[Said]:
    """Read what people chose; skipped tasks and tasks without an annotation are left out.

    Raises:
        SourceError: these are not tasks in Label Studio's JSON, or an annotation has no
            single choice.
    """
    for where, task, annotations in read_tasks(tasks, name=name):
        data = task["data"]
        for annotation in annotations:
            if not annotation.get("was_cancelled"):
                yield Said(
                    where=where,
                    decided=_chosen(annotation, f"{name}: {where}"),
                    **{key: _as_text(data.get(key)) for key in ("sample", "id", "given")},
                )


def read_tasks(tasks: Any, *, name: str) -> Iterator[tuple[str, Task, list[dict[str, Any]]]]:
    """Return what each task is called in messages, the task, and its annotations.

    Raises:
        SourceError: these are not tasks in Label Studio's JSON.
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


def _objects(value: Any, what: str, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _damaged(where, f"{what} must be a list of objects", value)
    return value


def _damaged(where: str, wanted: str, got: Any) -> SourceError:
    text = json.dumps(got)
    shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return SourceError(
        f"{where}: {wanted}; got {shown}. Export the project again as JSON, or remove the task"
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
        raise SourceError(f"{where}: one class must be chosen; got {choices}")
    return str(choices[0])


def _choices(result: dict[str, Any], where: str) -> list[Any]:
    value = result.get("value")
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list):
        raise _damaged(where, "`value` must hold `choices`, a list", value)
    return choices


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)
