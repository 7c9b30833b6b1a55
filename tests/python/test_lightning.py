# SPDX-License-Identifier: Apache-2.0
"""DataLoader in Lightning's Trainer, on one rank: samples, order and loss are those of torch's DataLoader."""

import logging
import warnings

import pytest
import stoker
from conftest import import_torchvision

import_torchvision()
lightning = pytest.importorskip("lightning", reason="lightning is not installed")

import torch  # noqa: E402
from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402
from torch.utils import data  # noqa: E402

N = 30
LOADERS = (data.DataLoader, stoker.DataLoader)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
pytestmark = pytest.mark.filterwarnings("ignore")


class Points(data.Dataset):
    """Read in Python."""

    def __len__(self):
        return N

    def __getitem__(self, i):
        return torch.tensor([float(i)]), torch.tensor([2.0 * i + 1])


def tensors():
    """Read in C."""
    x = torch.arange(float(N)).view(-1, 1)
    return data.TensorDataset(x, 2 * x + 1)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.line = torch.nn.Linear(1, 1)
        self.seen, self.losses, self.validated = [], [], []

    def loss(self, batch):
        return torch.nn.functional.mse_loss(self.line(batch[0] / N), batch[1] / N)

    def training_step(self, batch, _):
        self.seen.append([int(v) for v in batch[0].flatten()])
        loss = self.loss(batch)
        self.losses.append(float(loss))
        return loss

    def validation_step(self, batch, _):
        self.validated.append(([int(v) for v in batch[0].flatten()], float(self.loss(batch))))

    def predict_step(self, batch, _):
        return [int(v) for v in batch[0].flatten()]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def trainer(**more):
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return lightning.Trainer(accelerator="cpu", devices=1, **{"enable_checkpointing": False, **quiet, **more})


class Fresh(lightning.LightningDataModule):
    """Makes new loaders when Lightning asks for them, with a batch size of their own."""

    def __init__(self, kind, dataset):
        super().__init__()
        self.kind, self.dataset, self.made = kind, dataset, 0

    def train_dataloader(self):
        self.made += 1
        return self.kind(self.dataset, batch_size=2 + self.made, shuffle=True)


CASES = {
    "epochs": {"max_epochs": 2},
    "overfit_batches": {"overfit_batches": 3, "max_epochs": 2},
    "overfit a share": {"overfit_batches": 0.5, "max_epochs": 2},
    "limit_train_batches": {"limit_train_batches": 4, "max_epochs": 3},
    "limit to a share": {"limit_train_batches": 0.4, "limit_val_batches": 2, "max_epochs": 2},
    "val_check_interval": {"val_check_interval": 3, "max_epochs": 2, "num_sanity_val_steps": 1},
    "accumulate": {"accumulate_grad_batches": 2, "max_steps": 7},
}


@pytest.mark.parametrize(("make", "workers"), [(Points, 2), (tensors, 0)])
@pytest.mark.parametrize("name", CASES)
def test_fit(name, make, workers):
    seen = []
    for kind in LOADERS:
        torch.manual_seed(5)
        loader = kind(make(), batch_size=4, shuffle=True, num_workers=workers)
        val = kind(make(), batch_size=8)
        model, run = Model(), trainer(**CASES[name])
        run.fit(model, loader, val)
        assert type(run.train_dataloader) is kind
        seen.append((model.seen, model.validated, run.num_training_batches, len(run.train_dataloader), model.losses))
    assert seen[0] == seen[1]
    assert seen[0][0]


@pytest.mark.parametrize("make", [Points, tensors])
def test_reload_dataloaders_every_n_epochs(make):
    seen = []
    for kind in LOADERS:
        torch.manual_seed(5)
        model, fresh = Model(), Fresh(kind, make())
        trainer(max_epochs=3, reload_dataloaders_every_n_epochs=1).fit(model, fresh)
        seen.append((fresh.made, model.seen, model.losses))
    assert seen[0] == seen[1]
    assert seen[1][0] == 3 and [len(batch) for batch in seen[1][1][::10]] == [3, 4, 5]


@pytest.mark.parametrize(("make", "workers"), [(Points, 2), (tensors, 0)])
def test_resume_in_the_middle_of_an_epoch(make, workers, tmp_path):
    def loader():
        generator = torch.Generator().manual_seed(8)  # its state is saved, so that later epochs are the same, too
        return stoker.DataLoader(make(), batch_size=4, shuffle=True, num_workers=workers, generator=generator)

    whole = Model()
    keep = ModelCheckpoint(tmp_path, filename="{step}", every_n_train_steps=1, save_top_k=-1)
    trainer(max_epochs=2, enable_checkpointing=True, callbacks=[keep]).fit(whole, loader())
    assert len(whole.seen) == 16
    for step in (3, 8, 12):  # in the first epoch, at its end, in the second
        rest = Model()
        trainer(max_epochs=2).fit(rest, loader(), ckpt_path=tmp_path / f"step={step}.ckpt", weights_only=False)
        assert rest.seen == whole.seen[step:] and rest.losses == whole.losses[step:]


def test_predict():
    found = []
    for kind in LOADERS:
        torch.manual_seed(5)
        found.append(trainer().predict(Model(), kind(Points(), batch_size=4, num_workers=2, drop_last=True)))
    assert found[0] == found[1] == [list(range(i, min(i + 4, N))) for i in range(0, N, 4)]


def test_rebuilding_keeps_stokers_arguments():
    from lightning.pytorch.utilities.data import _update_dataloader

    loader = stoker.DataLoader(tensors(), 4, on_error="skip", max_bad=0.5, memory="64M", cache="bytes", shuffle=True)
    again = _update_dataloader(loader, data.DistributedSampler(range(N), 2, 1, shuffle=False))
    assert type(again) is stoker.DataLoader and type(again.sampler) is data.DistributedSampler
    assert (again.on_error, again.max_bad, again.memory, again.cache) == ("skip", 0.5, "64M", "bytes")
    assert len(again) == 4 and [int(v) for v in next(iter(again))[0]] == [1, 3, 5, 7]


def test_fabric():
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    loaders = [fabric.setup_dataloaders(kind(tensors(), 4)) for kind in LOADERS]
    theirs, ours = ([batch[0].flatten().tolist() for batch in loader] for loader in loaders)
    assert theirs == ours


def test_no_warning_about_the_loader():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        trainer(max_steps=2).fit(Model(), stoker.DataLoader(tensors(), 4))
    words = " ".join(str(w.message) for w in found)
    assert "DistributedSampler" not in words and "stateful" not in words.lower()


def test_loader_resumes(tmp_path):
    """Loader has a state, too; at the end of an epoch it continues with the next one."""
    x = torch.arange(float(N)).view(-1, 1)

    def fit(step=None, **more):
        model, loader = Model(), stoker.Loader((x, 2 * x + 1), batch_size=4, shuffle=True)
        resume = {"ckpt_path": tmp_path / f"step={step}.ckpt", "weights_only": False} if step else {}
        trainer(max_epochs=2, **more).fit(model, loader, **resume)
        return model.seen

    keep = ModelCheckpoint(tmp_path, filename="{step}", every_n_train_steps=1, save_top_k=-1)
    whole = fit(enable_checkpointing=True, callbacks=[keep])
    assert len(whole) == 16
    for step in (3, 8, 9):
        assert fit(step) == whole[step:]
