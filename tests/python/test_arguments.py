# SPDX-License-Identifier: Apache-2.0
"""Errors about wrong arguments say what is wrong and what would be right."""

import numpy as np
import pytest
import stoker

X = np.zeros((100, 1), np.float32)
Y = np.arange(100)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"bacth_size": 3}, "did you mean batch_size"),
        ({"num_workers": 3}, "did you mean threads"),
        ({"batch_size": 0}, "1 or more"),
        ({"batch_size": 10**9 * 5}, "at most"),
        ({"batch_size": 10**9}, "memory"),
        ({"batch_size": "8"}, "whole number"),
        ({"transform": "Resize(256)", "batch_size": 2}, "CenterCrop"),
        ({"transform": "CentreCrop(8)"}, "did you mean CenterCrop"),
        ({"transform": 7}, "int"),
        ({"transform": [lambda x: x, stoker.CenterCrop(8)]}, "put Stoker's ops first"),
        ({"layout": "NWHC"}, "did you mean NHWC"),
        ({"dtype": "flaot32"}, "did you mean float32"),
        ({"on_error": "ignore"}, "one of raise, skip, replace"),
        ({"memory": "lots"}, "512M"),
        ({"memory": 1000}, "memory"),
        ({"rank": 1}, "go together"),
        ({"rank": 2, "world_size": 2}, "0 to world_size - 1"),
        ({"rank": "pbs"}, "slurm or mpi"),
        ({"cache": "pixel"}, "did you mean pixels"),
        ({"cache": "bytes", "cache_size": "much"}, "cache_size is 'much'"),
        ({"device": "gpu"}, "it must be 'cpu', 'cuda', 'cuda:N'"),
        ({"device": "cuda:x"}, "it must be 'cpu', 'cuda', 'cuda:N'"),
        ({"device": "cuda", "output": "numpy"}, "pass output='torch', 'jax' or 'cupy'"),
        ({"layout": "channels_last", "output": "tensorflow"}, "layout='NHWC'"),
        ({"pin_memory": True, "output": "numpy"}, "is for output='torch'"),
        ({"pin_memory": 3}, "it must be True or False"),
        ({"fidelity": "drafty"}, "did you mean draft"),
        ({"output": "numpi"}, "did you mean numpy"),
        ({"fields": "a b=c=d"}, "cannot be read; write"),
        ({"drop_last": True, "pad_last": True}, "cannot be combined"),
        ({"shuffle": True, "sampler": [1]}, "sampler and shuffle cannot be combined"),
        ({"batch_size": 2, "batch_sampler": [[1]]}, "cannot be combined with batch_size"),
        ({"threads": 0}, "1 or more"),
        ({"seed": -1}, "0 or more"),
        ({"dtype": "uint8", "transform": "CenterCrop(8) | Normalize"}, "uint8"),
        ({"weights": [1, 2]}, "weights"),
        ({"classes": ["cat"]}, "dog"),
        ({"batch_size": True}, "whole number"),
        ({"batch_size": None}, "whole number"),
        ({"batch_size": -1}, "1 or more"),
        ({"shuffle": "yes"}, "True or False"),
        ({"drop_last": "no"}, "True or False"),
        ({"exif": "no"}, "True or False"),
        ({"processes": -1}, "0 or more"),
        ({"collate_fn": 3}, "a function"),
        ({"batch_fn": "len"}, "a function"),
        ({"classes": "cat"}, "a list of names"),
        ({"classes": 5}, "a list of names"),
        ({"classes": ["cat", "cat"]}, "given twice"),
        ({"fields": 5}, "a list of names"),
        ({"fields": [5]}, "a list of names"),
        ({"fields": {"a": 5}}, "a list of names"),
        ({"fields": []}, "fields is empty"),
        ({"fields": ("image", "image")}, "'image' twice"),
        ({"fields": {"a": "label:complex"}}, "image, int, float"),
        ({"fields": {"a": "label:flaot64"}}, "did you mean float64"),
        ({"fields": ["path:int"]}, "path is text"),
        ({"fields": ["image:str"]}, "image is numbers"),
        ({"sampler": 5}, "an iterable of sample indices"),
        ({"batch_sampler": 5}, "lists of sample indices"),
        ({"weights": "abc"}, "one number for each sample"),
        ({"weights": 5}, "the length of weights is 1, but there are 12 samples"),
        ({"steps_per_epoch": 0}, "1 or more"),
        ({"max_bad": "a"}, "max_bad is 'a'; it must be a number"),
        ({"max_bad": 2}, "at most 1"),
        ({"rank": 1.5, "world_size": 2}, "rank is 1.5"),
        ({"cache_dir": 5}, "a path, or 'off'"),
        ({"dtype": 3}, "must be float32, float16, bfloat16 or uint8"),
        ({"transform": stoker.CenterCrop}, r"pass an object: CenterCrop\(...\)"),
        ({"transform": b"CenterCrop(8)"}, "bytes"),
        ({"transform": "CenterCrop(8)\0"}, r"transform is 'CenterCrop.*\\x00', which contains a null byte"),
        ({"classes": ["cat", "d\0g"]}, r"classes is 'd\\x00g', which contains a null byte"),
        ({"fields": ["im\0age"]}, r"fields is 'im\\x00age', which contains a null byte"),
        ({"cache_dir": "\ud800"}, "cache_dir is .* cannot be encoded"),
        ({"memory": 10**30}, "memory is 10+; it must be at most"),
        ({"threads": 10**6}, "at most 1024"),
        ({"seed": "a"}, "whole number"),
    ],
)
def test_wrong_arguments(photos, arguments, words):
    arguments = {"transform": "CenterCrop(8)", **arguments}
    with pytest.raises(stoker.UsageError, match=words) as caught:
        stoker.Loader(photos, **arguments)
    assert isinstance(caught.value, ValueError)


def test_wrong_sources(tmp_path, make):
    with pytest.raises(FileNotFoundError):
        stoker.Loader(tmp_path / "nothing", "CenterCrop(8)")
    with pytest.raises(stoker.UsageError):
        stoker.Loader(tmp_path, "CenterCrop(8)")  # empty
    for nothing in (7, None, object()):
        with pytest.raises(stoker.UsageError, match="the source is (None|of type)"):
            stoker.Loader(nothing)
    with pytest.raises(stoker.UsageError, match="differ in length"):
        stoker.Loader((X, Y[:7]))
    with pytest.raises(stoker.UsageError):
        stoker.Loader(np.zeros(0))
    root = make(3)
    loader = stoker.Loader(root, "CenterCrop(8)", threads=1)
    for p in root.rglob("*.png"):
        p.unlink()
    with pytest.raises(stoker.DataError):
        for _ in range(5):
            list(loader)


@pytest.mark.parametrize(
    "source, words",
    [
        ("", "empty name"),
        ("a\0b", r"source is 'a\\x00b', which contains a null byte; remove it"),
        (["a", "b\0.parquet"], r"source is 'b\\x00.parquet', which contains a null byte"),
        (str, "the class str"),
        (stoker.Source, "the class Source"),
        (np.array(5), "a single number"),
        ({"x": 1}, "'x' is of type int"),
        ({}, "no samples"),
        ((np.zeros(3), ["a", "b", "c"]), "dtype <U1"),
        ((np.zeros(3), [1, 2]), "differ in length"),
        (np.zeros(3, complex), "complex128"),
        (np.zeros(3, ">f4"), "byte order"),
        (np.array(["a", "b"]), "numbers or bool"),
        (np.zeros((2, 0)), "rows are empty"),
        ({"index": np.zeros(3), "my_index": np.zeros(3)}, "two arrays are named my_index"),
        ({"x" * 80: np.zeros(3)}, "1 to 63 bytes"),
        (lambda: 3, "the source is of type function"),
    ],
)
def test_more_wrong_sources(source, words):
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader(source, output="numpy")


class Wrong:
    """A dataset whose length is negative."""

    def __len__(self):
        return -1

    def __getitem__(self, i):
        return i


def test_a_length_that_fails():
    words = r"len\(\) of the Wrong fails \(ValueError: .*\); __len__ must count its samples"
    with pytest.raises(stoker.UsageError, match=words) as caught:
        stoker.Loader(Wrong())
    assert isinstance(caught.value.__cause__, ValueError)


def test_null_bytes_in_other_calls(photos, tmp_path):
    for wrong, words in (
        (lambda: stoker.Source("a\0"), "source is"),
        (lambda: stoker.ls("a\0"), "source is"),
        (lambda: stoker.pack(photos, "a\0"), "out is"),
        (lambda: stoker.unpack("a\0", tmp_path), "source is"),
    ):
        with pytest.raises(stoker.UsageError, match=words + ".* contains a null byte"):
            wrong()


def test_sources_of_other_spellings(photos):
    assert len(stoker.Loader(bytes(photos), "CenterCrop(8)")) == 12
    batch = next(iter(stoker.Loader((np.zeros(3), [1, 2, 3]), batch_size=3, output="numpy")))
    assert batch.label.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "k, words",
    [
        ({"sampler": ["a"]}, "the sampler: 'a' is not"),
        ({"sampler": [1.5]}, "the sampler: 1.5 is not"),
        ({"sampler": [12]}, "12"),
        ({"batch_sampler": [[1], ["a"]]}, "the batch_sampler: 'a' is not"),
        ({"batch_sampler": [[]]}, "batch 0 of the batch_sampler is empty"),
    ],
)
def test_wrong_samplers(photos, k, words):
    with pytest.raises(stoker.UsageError, match=words):
        list(stoker.Loader(photos, "CenterCrop(8)", output="numpy", **k))


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda src: stoker.Source(5), "takes paths and tables, not a int"),
        (lambda src: stoker.Source(), "at least one path"),
        (lambda src: src.split(2), "between 0 and 1"),
        (lambda src: src.split("a"), "between 0 and 1"),
        (lambda src: src.split(), "at least one share"),
        (lambda src: src.split(0.5, -0.1), "a share is -0.1"),
        (lambda src: src.split(0.5, 0), "a share is 0;"),
        (lambda src: src.split(float("nan")), "a share is nan"),
        (lambda src: src.split(True), "a share is True"),
        (lambda src: src.split(0.8, 0.3), "add up to 1.1, which is more than 1"),
        (lambda src: src.split(0.5, "class"), "a share is 'class'"),
        (lambda src: src.split(0.5, seed=1.5), "seed is 1.5; it must be a whole number"),
        (lambda src: src.split(0.5, seed=-1), "seed is -1; it must be 0 or more"),
        (lambda src: src.kfold(1), "k is 1; it must be 2 or more"),
        (lambda src: src.kfold(2.5), "k is 2.5; it must be a whole number"),
        (lambda src: src.kfold(13), "k is 13, but there are only 12 samples"),
        (lambda src: src.kfold(2, by="size"), "None or 'class'"),
        (lambda src: src.take(1).kfold(2), "k is 2, but there is only 1 sample"),
        (lambda src: src.split(0.5, by="size"), "None or 'class'"),
        (lambda src: src.subset(["a"]), "is not an integer"),
        (lambda src: src.subset([1.5]), "is not an integer"),
        (lambda src: stoker.Loader(src.take(0), "CenterCrop(8)"), "there are no samples: the subset is empty"),
        (lambda src: src.take(-1), "0 or more"),
        (lambda src: src.take("a"), "whole number"),
        (lambda src: src.select(classes=[99]), "no class 99; the source has 2 classes"),
        (lambda src: src.select(classes="cat"), "a list of names"),
        (lambda src: stoker.verify(5), "takes paths"),
        (lambda src: stoker.Resize(8, interpoltion=3), "did you mean interpolation"),
        (lambda src: stoker.ToTensor(size=3), "it takes none"),
        (lambda src: stoker.Lambda(5), "Lambda takes a function"),
        (lambda src: stoker.Loader(X).set_epoch("a"), "whole number"),
        (lambda src: stoker.Loader(X).load_state_dict({"a": object()}), r"not from state_dict\(\)"),
    ],
)
def test_wrong_calls(photos, wrong, words):
    with pytest.raises(stoker.UsageError, match=words):
        wrong(stoker.Source(photos))


def test_ops_take_numbers_of_every_kind():
    mean, size = np.array([0.5, 0.25, 0.5]), np.int64(8)
    ops = [stoker.Resize(size), stoker.RandomCrop((size, 8), padding=np.int32(2)), stoker.Normalize(mean, list(mean))]
    plain = "Resize(8) | RandomCrop((8, 8), padding=2) | Normalize(mean=(0.5, 0.25, 0.5), std=(0.5, 0.25, 0.5))"
    assert " | ".join(map(str, ops)) == plain
    assert str(stoker.ToDtype(np.float32)) == "ToDtype(float32)"
    assert str(stoker.RandomResizedCrop(8, scale=np.array([0.08, 1.0]))) == "RandomResizedCrop(8)"


def test_kinds_of_fields(photos):
    kinds = {"name": "label:str", "small": "label:uint8", "real": "label:float64", "path": "path:str", "raw": "label"}
    batch = next(iter(stoker.Loader(photos, "CenterCrop(8)", fields=kinds, batch_size=12, output="numpy")))
    assert batch.name == ["cat"] * 6 + ["dog"] * 6 and batch.path[0].endswith("00.png")
    assert batch.small.dtype == np.uint8 and batch.real.dtype == np.float64 and batch.raw.dtype == np.int64


def test_a_folder_that_is_deleted(make):
    import shutil

    root = make(3)
    loader = stoker.Loader(root, "CenterCrop(8)", threads=1, batch_size=2)
    shutil.rmtree(root)
    with pytest.raises(stoker.DataError, match="No such file") as caught:
        for _ in range(5):
            list(loader)
    assert caught.value.path.startswith(str(root)) and caught.value.sample is not None
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        stoker.Loader(root, "CenterCrop(8)")
