import json
from xml.etree import ElementTree as ET

import pytest
from memorised import NAMES

from accord.analysis._audit._label_studio import labelling_config
from accord.analysis._audit._review import (
    review_queue,
)
from accord.analysis._audit._review_files import (
    read_decisions,
    write_queue,
)
from accord.errors import RecordExists, SourceError


def test_tasks_are_not_written_over_annotations(exported, found, record):
    path, tasks = exported
    before = path.read_bytes()
    with pytest.raises(RecordExists, match="holds 20 decisions"):
        write_queue(found, found.ranking[:3], path, sample_info=record.sample_info)
    assert path.read_bytes() == before
    for task in tasks:
        task["annotations"] = []
    path.write_text(json.dumps(tasks))
    write_queue(found, found.ranking[:3], path, sample_info=record.sample_info)
    assert len(json.loads(path.read_text())) == 3


def test_tasks_are_in_label_studios_form(found, record, tmp_path):
    write_queue(
        found, review_queue(found, 3), tmp_path / "queue.json", sample_info=record.sample_info
    )
    task = json.loads((tmp_path / "queue.json").read_text())[0]
    worst = int(found.ranking[0])
    suspicion = round(float(found.suspicion[worst]), 6)
    assert task == {
        "data": {
            "sample": worst,
            "id": f"image-{worst}",
            "text": f"sample image-{worst}",
            "given": NAMES[found.given[worst]],
            "suspicion": suspicion,
        },
        "predictions": [
            {
                "model_version": "accord",
                "score": suspicion,
                "result": [
                    {
                        "from_name": "choice",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": [NAMES[found.proposed[worst]]]},
                    }
                ],
            }
        ],
    }


def test_the_labelling_interface_fits_the_tasks():
    view = ET.fromstring(labelling_config(["<a>", '"b"']))
    image, choices = view
    assert (image.tag, image.get("name"), image.get("value")) == ("Image", "image", "$image")
    assert (choices.get("name"), choices.get("toName")) == ("choice", "image")
    assert [choice.get("value") for choice in choices] == ["<a>", '"b"']


def export(tasks, chosen):
    """Answer tasks as Label Studio exports them: an annotation each."""
    for number, task in enumerate(tasks):
        result = {
            "id": "Dx_aB91ISN",
            "from_name": "choice",
            "to_name": "text",
            "type": "choices",
            "value": {"choices": [chosen(task)]},
        }
        task["id"] = number + 1
        task["annotations"] = [
            {"id": 1000 + number, "result": [result], "was_cancelled": False, "completed_by": 1}
        ]
    return tasks


@pytest.fixture
def exported(found, record, tmp_path):
    path = tmp_path / "export.json"
    write_queue(found, review_queue(found, 20), path, sample_info=record.sample_info)
    truth = record.truth()
    tasks = export(json.loads(path.read_text()), lambda task: NAMES[truth[task["data"]["sample"]]])
    path.write_text(json.dumps(tasks))
    return path, tasks


def test_decisions_come_back_from_label_studio(exported, found, record):
    path, tasks = exported
    tasks[0]["annotations"][0]["was_cancelled"] = True
    tasks[1]["annotations"] = []
    del tasks[2]["data"]["sample"]  # its id will do
    comment = {"from_name": "note", "type": "textarea", "value": {"text": ["blurred"]}}
    tasks[3]["annotations"][0]["result"].append(comment)
    path.write_text(json.dumps(tasks))
    decisions = read_decisions(path, sample_info=record.sample_info)
    assert decisions.samples.tolist() == sorted(found.ranking[2:20].tolist())
    assert decisions.labels.tolist() == record.truth()[decisions.samples].tolist()


def test_two_people_must_agree(exported, record):
    path, tasks = exported
    first = tasks[0]["annotations"]
    first.append(json.loads(json.dumps(first[0])))
    path.write_text(json.dumps(tasks))
    assert len(read_decisions(path, sample_info=record.sample_info)) == 20
    value = first[1]["result"][0]["value"]
    value["choices"] = [next(name for name in NAMES if [name] != value["choices"])]
    path.write_text(json.dumps(tasks))
    with pytest.raises(SourceError, match=r"task 1: sample \d+ is decided as .* before"):
        read_decisions(path, sample_info=record.sample_info)


def test_an_annotation_without_one_choice_is_refused(exported, record):
    path, tasks = exported
    tasks[4]["annotations"][0]["result"] = []
    path.write_text(json.dumps(tasks))
    with pytest.raises(SourceError, match=r"task 5: exactly one class must be chosen; got \[\]"):
        read_decisions(path, sample_info=record.sample_info)


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        (None, r"`annotations` must be a list of objects; got null"),
        (["x"], r"`annotations` must be a list of objects; got \["),
        ({"a": 1}, r"`annotations` must be a list of objects"),
        ([{"result": None}], r"`result` must be a list of objects; got null"),
        ([{"result": ["x"]}], r"`result` must be a list of objects"),
        ([{"result": [{"type": "choices", "value": {}}]}], r"`value` must hold `choices`.*got {}"),
        ([{"result": [{"type": "choices"}]}], r"`value` must hold `choices`.*got null"),
        (
            [{"result": [{"type": "choices", "value": {"choices": "a"}}]}],
            r"`value` must hold `choices`, a list; got {",
        ),
        (["x" * 99], r"`annotations` must be .* got .{60}…\."),
    ],
)
def test_damaged_annotations_are_refused(exported, record, annotations, words):
    path, tasks = exported
    tasks[4]["annotations"] = annotations
    path.write_text(json.dumps(tasks))
    with pytest.raises(SourceError, match=rf"export\.json: task 5: {words}.*Export.* again"):
        read_decisions(path, sample_info=record.sample_info)


@pytest.mark.parametrize("document", ['{"data": {}}', "[1]", '[{"image": "a", "choice": "cat"}]'])
def test_json_of_another_form_is_refused(document, record, tmp_path):
    path = tmp_path / "export.json"
    path.write_text(document)
    with pytest.raises(SourceError, match="Export the project as JSON, not JSON-MIN"):
        read_decisions(path, sample_info=record.sample_info)
