# SPDX-License-Identifier: Apache-2.0
"""The Python in the guides runs as it stands there."""

import inspect
import io
import re
import runpy
import shutil
import tarfile
from pathlib import Path

import coco_tree
import numpy as np
import pytest
import stoker
from conftest import import_torchvision, run_on_two_ranks

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["docs/python.md", "docs/migrate.md", "README.md"])
def test_guide(name, photos, tmp_path, monkeypatch):
    for folder in ("train", "val", "photos"):
        (tmp_path / folder).symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), flags=re.S | re.M)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    assert blocks


def blocks_of(name):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), flags=re.S | re.M)


def test_detection(tmp_path, monkeypatch):
    import_torchvision()
    pytest.importorskip("pycocotools", reason="pycocotools is not installed")
    coco_tree.coco(tmp_path / "coco", n=20)
    coco_tree.people(tmp_path / "coco")
    coco_tree.voc(tmp_path)
    coco_tree.yolo(tmp_path / "yolo")
    coco_tree.pairs(tmp_path / "dataset")
    rows = [f"dataset/images/train/{i}.jpg,dataset/masks/train/{i}.png" for i in range(4)]
    (tmp_path / "masks.csv").write_text("\n".join(["image,mask_path", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of("docs/detection.md"):
        exec(compile(block, "docs/detection.md", "exec"), names)


PAGES = {
    "docs/lightning.md": ("lightning",),
    "docs/huggingface.md": ("transformers", "accelerate", "datasets"),
    "docs/timm.md": ("timm",),
    "docs/keras.md": ("keras",),
    "docs/albumentations.md": ("albumentations",),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PAGES)
def test_page(name, photos, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")
    import_torchvision()
    for package in PAGES[name]:
        pytest.importorskip(package, reason=f"{package} is not installed")
    if "datasets" in PAGES[name]:
        monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for folder in ("train", "val"):
        shutil.copytree(photos, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(name):
        exec(compile(block, name, "exec"), names)


def test_distributed_page(photos, tmp_path):
    """On two ranks, with the warning that the page quotes, and augmentations that differ."""
    import_torchvision()
    for folder in ("train", "val"):
        shutil.copytree(photos, tmp_path / folder)
    found = run_on_two_ranks("document", tmp_path)
    page = (ROOT / "docs/distributed.md").read_text()
    for rank in range(2):
        (words,) = found["warning", rank]["seen"]
        assert words in page
    draws = [found["draws", rank]["seen"] for rank in range(2)]  # with one seed
    assert len(draws[0]) == len(draws[1]) == 25 and not any(a == b for a, b in zip(*draws, strict=True))


def _state_of_another_loader():
    stoker.DataLoader([1]).load_state_dict({"position": 1})


def _two_iterators():
    loader = stoker.Loader({"x": np.arange(4)})
    first, _ = iter(loader), iter(loader)
    next(first)


def _own_class():
    torch = pytest.importorskip("torch")

    class MultiEpochsDataLoader(torch.utils.data.DataLoader):
        def __iter__(self):
            return iter(())

    stoker.DataLoader.from_torch(MultiEpochsDataLoader([1]))


MESSAGES = [
    ("docs/distributed.md", lambda: stoker.Loader({"x": np.arange(4)}, rank=1)),
    ("docs/distributed.md", lambda: stoker.Loader({"x": np.arange(4)}, rank="slurm")),
    ("docs/lightning.md", _state_of_another_loader),
    ("docs/lightning.md", _two_iterators),
    ("docs/huggingface.md", lambda: stoker.DataLoader.from_torch([1])),
    ("docs/timm.md", _own_class),
]


@pytest.mark.parametrize("row", range(len(MESSAGES)))
def test_messages_in_pages(row):
    pytest.importorskip("torch", reason="torch is not installed")
    page, mistake = MESSAGES[row]
    with pytest.raises(stoker.Error) as found:
        mistake()
    assert f"| `{found.value}`" in (ROOT / page).read_text()


def sections(name):
    """Headings and their pieces of Python: (the package that a piece needs besides Stoker, code)."""
    for section in (ROOT / name).read_text().split("\n## ")[1:]:
        yield section.partition("\n")[0], re.findall(r"^```python ?(\S*)\n(.*?)^```", section, flags=re.S | re.M)


class Folder:
    """What FFCV's writer takes."""

    def __init__(self, root):
        names = sorted(p.name for p in root.iterdir())
        self.items = [(p, y) for y, name in enumerate(names) for p in sorted((root / name).iterdir())]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        path, label = self.items[i]
        return pytest.importorskip("PIL.Image").open(path).convert("RGB"), label


def make_shards(root, folder):
    root.mkdir()
    for shard in range(2):
        with tarfile.open(root / f"train-{shard:04}.tar", "w") as tar:
            for i in range(shard, len(folder), 2):
                path, label = folder.items[i]
                for suffix, data in (("cls", str(label).encode()), ("png", path.read_bytes())):
                    member = tarfile.TarInfo(f"{i:04}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("heading", ["tf.data and Keras", "FFCV", "DALI", "WebDataset"])
def test_other_loaders(heading, photos, tmp_path, monkeypatch):
    """Both sides of the guide run, and their batches have the same shape."""
    pieces = dict(sections("docs/migrate.md"))[heading]
    package = next(name for name, _ in pieces if name)
    pytest.importorskip(package, reason=f"{package} is not installed")
    (tmp_path / "train").symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    names = {"folder": Folder(photos)}
    make_shards(tmp_path / "shards", names["folder"])
    shapes = []
    for _, code in pieces:
        exec(compile(code, heading, "exec"), names)
        shapes.append((tuple(names["images"].shape), tuple(names["labels"].shape)))
    assert len(shapes) > 1 and len(set(shapes)) == 1


def test_the_guide_and_help_name_every_argument():
    guide = (ROOT / "docs/python.md").read_text()
    names = [name for name in inspect.signature(stoker.Loader).parameters if name != "source"]
    assert [name for name in names if f"`{name}`" not in guide] == []
    words = set(re.findall(r"\w+", stoker.Loader.__doc__ or ""))
    assert [name for name in names if name not in words] == []


@pytest.mark.parametrize("framework", ["torch", "keras", "jax"])
def test_example(framework, photos, monkeypatch, capsys):
    pytest.importorskip("tensorflow" if framework == "keras" else framework, reason=f"{framework} is not installed")
    names = runpy.run_path(str(ROOT / f"examples/train_{framework}.py"))
    monkeypatch.setitem(names["train"].__globals__, "BATCH", 2)
    losses = names["train"](photos)
    assert losses[-1] < losses[0] and "for data" in capsys.readouterr().out


def test_lighter_models(photos, tmp_path):
    """In short: what each way has to have in common, not what it gains."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    names = runpy.run_path(str(ROOT / "examples/lighter_models.py"))
    names["compare"].__globals__.update(BATCH=2, SIDE=16, WIDTHS=(8, 16, 32))
    rows = {row.name.split(" (")[0]: row for row in names["compare"](photos, 1)}
    large = rows.pop("as it is")
    assert rows.pop("mixed precision").size == large.size  # the weights stay float32
    assert all(row.size < large.size for row in rows.values())
    assert all(0 <= row.accuracy <= 1 for row in rows.values())
    assert len(names["table"]([large, *rows.values()]).splitlines()) == 2 + 6
    half, wide = names["pruned"](names["network"]((8, 16, 32))), torch.zeros(1, 3, 16, 16)
    assert half(wide).shape == (1, names["CLASSES"])


def test_every_op_has_an_image():
    """Or the page says why it has none."""
    page = (ROOT / "docs/ops.md").read_text()
    section = page[page.index("## What they look like") : page.index("## Exactness")]
    words = set(re.findall(r"\w+", section + (ROOT / "tools/ops_images.py").read_text()))
    ops = {name for name, thing in vars(stoker).items() if inspect.isclass(thing) and issubclass(thing, stoker.Op)}
    assert ops - {"Op", "Lambda"} <= words
    images = set(re.findall(r"images/([\w-]+\.webp)", section))
    files = {path.name: path.stat().st_size for path in (ROOT / "docs/images").iterdir()}
    assert images == set(files) and sum(files.values()) < 2_000_000
