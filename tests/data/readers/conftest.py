"""One small tree of files per layout, with the published names."""

import gzip
import struct

import numpy as np
import pytest

PIXELS = np.random.default_rng(0).integers(0, 256, (64, 3072), dtype=np.uint8)


def cifar10(root, _tools):
    folder = root / "cifar-10-batches-bin"
    folder.mkdir()
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    for batch, name in enumerate(names):
        rows = [bytes([(batch * 4 + i) % 10]) + PIXELS[batch * 4 + i].tobytes() for i in range(4)]
        (folder / name).write_bytes(b"".join(rows))
    return folder, {"complete": False}


def cifar100(root, tools):
    folder = root / "cifar-100-python"
    folder.mkdir()
    for name, start in (("train", 0), ("test", 8)):
        batch = {
            "filenames": [b"a.png"] * 8,
            "fine_labels": list(range(start, start + 8)),
            "coarse_labels": [i % 20 for i in range(start, start + 8)],
            "data": PIXELS[start : start + 8],
        }
        (folder / name).write_bytes(tools["python2_pickle"](batch))
    return folder, {"complete": False}


def cifar10n(root, tools):
    folder, options = cifar10(root, tools)
    clean = np.arange(20) % 10
    labels = {"clean_label": clean, "worse_label": (clean + 1) % 10, "aggre_label": clean}
    (root / "CIFAR-10_human.pt").write_bytes(tools["legacy_torch"](labels))
    return folder, options


def cifar100n(root, tools):
    folder, options = cifar100(root, tools)
    labels = {"clean_label": np.arange(8), "noisy_label": np.arange(8) + 50}
    labels |= {"clean_coarse_label": np.arange(8), "noisy_coarse_label": np.arange(8)[::-1].copy()}
    (root / "CIFAR-100_human.pt").write_bytes(tools["legacy_torch"](labels))
    return folder, options


def tinyimagenet(root, tools):
    folder = root / "tiny-imagenet-200"
    wnids = ["n02", "n01"]
    for wnid in wnids:
        for i in range(2):
            picture = folder / f"train/{wnid}/images/{wnid}_{i}.JPEG"
            tools["picture"](picture, size=(64, 64))
        (folder / f"train/{wnid}/{wnid}_boxes.txt").write_text("box")
    for i in range(2):
        tools["picture"](folder / f"val/images/val_{i}.JPEG", size=(64, 64))
    rows = ["val_0.JPEG\tn02\t0\t0\t9\t9", "val_1.JPEG\tn01\t0\t0\t9\t9"]
    (folder / "val/val_annotations.txt").write_text("\n".join(rows) + "\n")
    (folder / "wnids.txt").write_text("\n".join(wnids) + "\n")
    (folder / "words.txt").write_text("n01\ttench, Tinca tinca\nn02\tgoldfish\nn03\tshark\n")
    return folder, {"complete": False}


def imagenet(root, tools):
    for wnid in ("n03", "n01", "n02"):
        for part, ending in (("train", "a"), ("train", "b"), ("val", "c")):
            tools["picture"](root / f"{part}/{wnid}/{ending}.JPEG", size=(300, 280))
    (root / "imagenet_2.txt").write_text("n03 tiger shark\nn01 tench\n")
    return root, {"complete": False, "class_list": "imagenet_2.txt"}


def clothing1m(root, tools):
    keys = {"noisy_train": ["images/0/00/a,1.jpg", "images/1/00/b.jpg"]}
    keys |= {"clean_test": ["images/2/00/c.jpg"], "clean_val": ["images/3/00/d.jpg"]}
    for part, names in keys.items():
        (root / f"{part}_key_list.txt").write_text("\n".join(names) + "\n")
        for name in names:
            tools["picture"](root / name, size=(260, 300))
    (root / "noisy_label_kv.txt").write_text("images/0/00/a,1.jpg 13\nimages/1/00/b.jpg 2\n")
    (root / "clean_label_kv.txt").write_text("images/2/00/c.jpg 5\nimages/3/00/d.jpg 6\n")
    return root, {"complete": False}


def animal10n(root, tools):
    for name in ("training/3_b.jpg", "training/0_a.jpg", "training/9_c.jpg", "testing/1_d.jpg"):
        tools["picture"](root / name, size=(64, 64))
    return root, {"complete": False}


def webvision50(root, tools):
    lists = {
        "train_filelist_google": ["google/q0001/a.jpg 0", "google/q0049/b.jpg 49"],
        "train_filelist_flickr": ["flickr/q0002/c.jpg 1", "flickr/q0051/d.jpg 50"],
        "val_filelist": ["val000001.jpg 1", "val000002.jpg 700"],
    }
    for name, lines in lists.items():
        (root / "info").mkdir(exist_ok=True)
        (root / f"info/{name}.txt").write_text("\n".join(lines) + "\n")
        folder = "val_images_256/" if name == "val_filelist" else ""
        for line in lines:
            tools["picture"](root / f"{folder}{line.split()[0]}", size=(256, 300))
    synsets = [f"n{number:08} name {number}" for number in range(1000)]
    (root / "info/synsets.txt").write_text("\n".join(synsets) + "\n")
    return root, {}


def mnli(root, _tools):
    head = "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    head += "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\t"
    for name, more in (("train", ""), ("dev_matched", "label2\t"), ("dev_mismatched", "label2\t")):
        cells = "\t".join(["0"] * 8)
        gap = "x\t" * (1 + bool(more))
        rows = [
            f'{cells}\tAn "open quote\tIt is {name}\t{gap}contradiction',
            f"{cells}\tBoth\rends\u2028here\tYes\t{gap}entailment",
        ]
        text = f"{head}{more}gold_label\n" + "\n".join(rows) + "\n"
        (root / f"{name}.tsv").write_text(text, encoding="utf-8", newline="")
    return root, {"complete": False}


def qnli(root, _tools):
    head = "index\tquestion\tsentence\tlabel\n"
    for name in ("train", "dev"):
        rows = f"0\tWho?\tHe, in {name}.\tentailment\n1\tWhen?\tNo.\tnot_entailment\n"
        (root / f"{name}.tsv").write_text(head + rows)
    return root, {"complete": False}


def qqp(root, _tools):
    head = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    rows = "1\t2\t3\tWhy?\tHow so?\t1\n4\t5\t6\tbroken\n7\t8\t9\tWho?\tWhen?\t0\n"
    for name in ("train", "dev"):
        (root / f"{name}.tsv").write_text(head + rows)
    return root, {"complete": False}


def sst2(root, _tools):
    for name in ("train", "dev"):
        (root / f"{name}.tsv").write_text(f'sentence\tlabel\na "fine {name} \t1\nbad \t0\n')
    (root / "test.tsv").write_text("index\tsentence\n0\tunknown\n")
    return root, {"complete": False}


def idx(values, *, compress):
    header = b"\0\0\x08" + bytes([values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    data = header + values.astype(np.uint8).tobytes()
    return gzip.compress(data) if compress else data


def mnist(root, _tools, *, compress=True):
    ending = ".gz" if compress else ""
    for part, count in (("train", 6), ("t10k", 3)):
        images = np.arange(count * 784).reshape(count, 28, 28) % 251
        (root / f"{part}-images-idx3-ubyte{ending}").write_bytes(idx(images, compress=compress))
        labels = idx(np.arange(count), compress=compress)
        (root / f"{part}-labels-idx1-ubyte{ending}").write_bytes(labels)
    return root, {"complete": False}


def fashion_mnist(root, tools):
    return mnist(root, tools, compress=False)


def digits(_root, _tools):
    return None, {}


def image_folder(root, tools):
    for name in ("train/dog/1.png", "train/cat/deep/2.JPG", "test/cat/3.png", "test/dog/4.webp"):
        tools["picture"](root / name, size=(300, 280))
    (root / "train/cat/notes.txt").write_text("not a picture")
    return root, {}


def npz(root, _tools):
    images = np.arange(6 * 5 * 6 * 3, dtype=np.uint16).astype(np.uint8).reshape(6, 5, 6, 3)
    labels = np.array([0, 1, 0, 1, 0, 1])
    np.savez(root / "mine.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    return root / "mine.npz", {}


def delimited(root, delimiter, ending):
    rows = [["age", "colour", "label"], ["1.5", "red", "yes"], ["2", "blue", "no"]]
    for name in ("train", "test"):
        text = "\n".join(delimiter.join(row) for row in rows) + "\n"
        (root / f"{name}{ending}").write_text(text)
    return root, {"one_hot": ["colour"]}


def csv(root, _tools):
    return delimited(root, ",", ".csv")


def tsv(root, _tools):
    return delimited(root, "\t", ".tsv")


def parquet(root, _tools):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"text": ["good", "bad"], "label": ["pos", "neg"]})
    for name in ("train", "test"):
        pq.write_table(table, root / f"{name}.parquet")
    return root, {"text": "text"}


TREES = {
    name.replace("fashion_mnist", "fashion-mnist").replace("image_folder", "image-folder"): build
    for name, build in list(globals().items())
    if callable(build) and name not in ("idx", "delimited", "pytest")
}


@pytest.fixture
def tree(tmp_path, python2_pickle, legacy_torch, picture):
    """Build the files of a layout; return the path and the options of the reader."""
    tools = {"python2_pickle": python2_pickle, "legacy_torch": legacy_torch, "picture": picture}

    def build(kind, **changes):
        return TREES[kind](tmp_path, tools, **changes)

    return build
