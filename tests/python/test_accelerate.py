# SPDX-License-Identifier: Apache-2.0
"""DataLoader in accelerate and in Hugging Face's Trainer, on one rank: samples, order and loss are torch's."""

import pickle

import pytest
import stoker
from conftest import import_torchvision

import_torchvision()
pytest.importorskip("accelerate", reason="accelerate is not installed")

import torch  # noqa: E402
from accelerate import Accelerator, DataLoaderConfiguration, skip_first_batches  # noqa: E402
from torch.utils import data  # noqa: E402

N = 30
LOADERS = (data.DataLoader, stoker.DataLoader)
pytestmark = pytest.mark.filterwarnings("ignore")


class Points(data.Dataset):
    """Read in Python."""

    def __len__(self):
        return N

    def __getitem__(self, i):
        return {"x": torch.tensor([float(i)]), "y": torch.tensor([2.0 * i + 1])}


def tensors():
    """Read in C."""
    x = torch.arange(float(N)).view(-1, 1)
    return data.TensorDataset(x, 2 * x + 1)


def first(batch):
    return [int(v) for v in (batch["x"] if isinstance(batch, dict) else batch[0]).flatten()]


CONFIGURATIONS = {
    "plain": {},
    "split_batches": {"split_batches": True},
    "dispatch_batches": {"dispatch_batches": True},
    "use_seedable_sampler": {"use_seedable_sampler": True, "data_seed": 3},
}


@pytest.mark.parametrize(("make", "workers"), [(Points, 2), (tensors, 0)])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_prepare(name, make, workers):
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**CONFIGURATIONS[name]))
    seen = []
    for kind in LOADERS:
        torch.manual_seed(5)
        loader = accelerator.prepare(kind(make(), batch_size=4, shuffle=True, num_workers=workers))
        batches = [first(b) for _ in range(2) for b in loader]
        batches += [first(b) for b in skip_first_batches(loader, 3)]
        seen.append((batches, len(loader), torch.rand(1).item()))
        assert type(loader.base_dataloader) is kind
        assert type(skip_first_batches(loader, 3).base_dataloader) is kind
    assert seen[0] == seen[1]
    assert len(seen[0][0]) == 8 + 8 + 5


def test_a_prepared_loader_keeps_its_arguments():
    accelerator = Accelerator(cpu=True)
    given = stoker.DataLoader(tensors(), 4, on_error="skip", max_bad=0.5, memory="64M")
    for loader in (accelerator.prepare(given), skip_first_batches(accelerator.prepare(given), 1)):
        inside = loader.base_dataloader
        assert inside.native and isinstance(loader, stoker.DataLoader)
        assert (inside.on_error, inside.max_bad, inside.memory) == ("skip", 0.5, "64M")
        assert inside.collate_fn is data.default_collate and inside.pin_memory_device == ""
    again = pickle.loads(pickle.dumps(accelerator.prepare(given)))
    assert type(again.base_dataloader) is stoker.DataLoader and first(next(iter(again))) == [0, 1, 2, 3]
    theirs = accelerator.prepare(data.DataLoader(tensors(), 4))
    assert type(theirs.base_dataloader) is data.DataLoader


def test_skip_first_batches_of_a_loader_that_is_not_prepared():
    Accelerator(cpu=True)
    theirs, ours = ([first(b) for b in skip_first_batches(kind(tensors(), 4), 2)] for kind in LOADERS)
    assert theirs == ours == [list(range(i, min(i + 4, N))) for i in range(8, N, 4)]


def test_from_torch():
    for more in ({"batch_size": None}, {"batch_sampler": [[1, 2], [3]]}, {"batch_size": 3, "drop_last": True}):
        theirs = data.DataLoader(Points(), num_workers=1, **more)
        ours = stoker.DataLoader.from_torch(theirs)
        assert type(ours) is stoker.DataLoader and ours.batch_size == theirs.batch_size
        assert [first(b) for b in ours] == [first(b) for b in theirs]
    assert stoker.DataLoader.from_torch(ours) is ours
    assert stoker.DataLoader.from_torch(ours, on_error="skip").on_error == "skip"
    prepared = Accelerator(cpu=True).prepare(data.DataLoader(tensors(), 4))
    assert stoker.DataLoader.from_torch(prepared) is prepared
    assert type(prepared.base_dataloader) is stoker.DataLoader and prepared.base_dataloader.native
    with pytest.raises(stoker.UsageError, match="takes torch's DataLoader"):
        stoker.DataLoader.from_torch([1, 2])

    class Own(data.DataLoader):
        def __iter__(self):
            return iter([1])

    with pytest.raises(stoker.UsageError, match="Own changes how torch's loader iterates"):
        stoker.DataLoader.from_torch(Own(Points()))


# ---------------------------------------------------------------- Hugging Face's Trainer


def train(stokers, folder, make=Points, **more):
    """The samples of each step, and the losses."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.line = torch.nn.Linear(1, 1)
            self.seen, self.losses = [], []

        def forward(self, x, y):
            loss = torch.nn.functional.mse_loss(self.line(x / N), y / N)
            if self.training:
                self.seen.append([int(v) for v in x.flatten()])
                self.losses.append(float(loss))
            return {"loss": loss, "logits": x}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            loader = super().get_train_dataloader()
            return stoker.DataLoader.from_torch(loader) if stokers else loader

        def get_eval_dataloader(self, eval_dataset=None):
            loader = super().get_eval_dataloader(eval_dataset)
            return stoker.DataLoader.from_torch(loader) if stokers else loader

    resume = more.pop("resume", None)
    quiet = {
        "label_names": ["y"],
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "logging_strategy": "no",
        "save_strategy": "no",
    }
    arguments = transformers.TrainingArguments(
        folder, num_train_epochs=2, per_device_train_batch_size=4, **quiet | more
    )
    model = Model()
    trainer = Trainer(model=model, args=arguments, train_dataset=make(), eval_dataset=make())
    trainer.train(resume_from_checkpoint=resume)
    inside = trainer.callback_handler.train_dataloader.base_dataloader
    assert type(inside) is (stoker.DataLoader if stokers else data.DataLoader)
    return model.seen, model.losses, trainer.evaluate()["eval_loss"]


@pytest.mark.parametrize("workers", [0, 2])
def test_trainer(workers, tmp_path):
    theirs, ours = (train(s, tmp_path / str(s), dataloader_num_workers=workers) for s in (False, True))
    assert theirs == ours and len(ours[0]) == 16


def test_trainer_resumes(tmp_path):
    folder = tmp_path / "run"
    whole = train(True, folder, save_strategy="steps", save_steps=5)
    rests = [train(s, tmp_path / str(s), resume=str(folder / "checkpoint-10")) for s in (False, True)]
    assert rests[0] == rests[1]
    assert rests[1][0] == whole[0][10:] and rests[1][1] == pytest.approx(whole[1][10:], rel=1e-5)
