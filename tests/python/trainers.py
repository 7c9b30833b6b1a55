# SPDX-License-Identifier: Apache-2.0
"""Run by test_trainers.py on two ranks: trains with a DataLoader of torch's and with Stoker's.

    torchrun --nproc-per-node 2 trainers.py lightning|accelerate|transformers|timm|document FOLDER

Each rank writes one JSON line for each loader into the folder: the samples of every step, and the loss.
"""

import faulthandler
import json
import os
import sys
import warnings
from pathlib import Path

import stoker
import torch
from conftest import import_torchvision, make_photos
from torch.utils import data

warnings.filterwarnings("ignore")
warnings.filterwarnings("error", message="each of the 2 ranks reads the whole dataset")  # trainers divide it
BATCH, SAMPLES = 4, 50


class Lines(data.Dataset):
    """Points on a line; read in Python."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        return torch.tensor([float(i)]), torch.tensor([2.0 * i + 1])


class Draws(Lines):
    def __getitem__(self, i):
        return torch.rand(1)


class Named(Lines):
    def __getitem__(self, i):
        x, y = super().__getitem__(i)
        return {"x": x, "y": y}


def native():
    x = torch.arange(float(SAMPLES)).view(-1, 1)
    return data.TensorDataset(x, 2 * x + 1)


def report(kind, seen, loss, **more):
    rank = int(os.environ["RANK"])
    with open(f"{sys.argv[2]}/{rank}.jsonl", "a") as file:
        file.write(json.dumps({"kind": kind, "rank": rank, "seen": seen, "loss": loss, **more}) + "\n")


def lightning():
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.line = torch.nn.Linear(1, 1)
            self.seen, self.last = [], 0.0

        def training_step(self, batch, _):
            self.seen.append([int(v) for v in batch[0].flatten()])
            loss = torch.nn.functional.mse_loss(self.line(batch[0] / SAMPLES), batch[1] / SAMPLES)
            self.last = float(loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    class Module(lightning.LightningDataModule):
        """Lightning records the arguments of loaders that are made in its hooks."""

        def __init__(self, cls):
            super().__init__()
            self.cls = cls

        def train_dataloader(self):
            return self.cls(native(), BATCH, shuffle=True, drop_last=True)

    runs = [(kind, loader, {}) for kind, loader in loaders()]
    alone = {"use_distributed_sampler": False}
    for kind, loader in loaders():
        if kind.startswith("native True"):
            runs += [(f"alone {kind}", loader, alone), (f"module {kind}", Module(type(loader)), {})]
    x = torch.arange(float(SAMPLES)).view(-1, 1)
    arrays = stoker.Loader({"x": x, "y": 2 * x + 1}, batch_size=BATCH, shuffle=True, drop_last=True, output="torch")

    def fit(loader, ckpt_path=None, **more):
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        quiet |= {"enable_checkpointing": "callbacks" in more}
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=2, strategy="ddp", **quiet, **more)
        model = Model()
        torch.manual_seed(5)
        trainer.fit(model, loader, ckpt_path=ckpt_path, weights_only=False)
        return model, type(trainer.train_dataloader).__module__

    for kind, loader, more in [*runs, ("loader", arrays, {})]:
        with warnings.catch_warnings():
            if kind.startswith("alone"):
                warnings.simplefilter("ignore")
            model, module = fit(loader, **more)
        report(kind, model.seen, model.last, type=module)
    keep = ModelCheckpoint(sys.argv[2], filename="{step}", every_n_train_steps=3, save_top_k=-1)
    fit(stoker.DataLoader(native(), BATCH, shuffle=True), callbacks=[keep])
    for kind, path in (("whole", None), ("resumed", f"{sys.argv[2]}/step=3.ckpt")):
        model, module = fit(stoker.DataLoader(native(), BATCH, shuffle=True), path)
        report(kind, model.seen, model.last, type=module)


def loaders(make=None):
    for kind, dataset in (("python", (make or Lines)()), ("native", native())):
        if make and kind == "native":
            continue
        for module, cls in (("torch", data.DataLoader), ("stoker", stoker.DataLoader)):
            for shuffle in (False, True):
                workers = 2 if kind == "python" else 0
                torch.manual_seed(5)
                loader = cls(dataset, batch_size=BATCH, shuffle=shuffle, num_workers=workers)
                yield f"{kind} {shuffle} {module}", loader


def accelerate():
    from accelerate import Accelerator, DataLoaderConfiguration, skip_first_batches

    plain = Accelerator(cpu=True)
    runs = [(plain, kind, loader) for kind, loader in loaders()]
    for name in ("split_batches", "dispatch_batches"):
        other = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**{name: True}))
        runs += [(other, f"{name} {kind}", loader) for kind, loader in loaders() if "True" in kind]
    for accelerator, kind, loader in runs:
        torch.manual_seed(0)
        line = torch.nn.Linear(1, 1)
        model, optimizer, loader = accelerator.prepare(line, torch.optim.SGD(line.parameters(), 0.1), loader)
        seen, loss = [], torch.zeros(1)
        torch.manual_seed(6)
        for epoch in range(2):
            for x, y in skip_first_batches(loader, 2) if epoch else loader:
                seen.append([int(v) for v in x.flatten()])
                loss = torch.nn.functional.mse_loss(model(x / SAMPLES), y / SAMPLES)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        report(kind, seen, float(loss), type=type(loader.base_dataloader).__module__)
    gather_padded_batches(plain)


def gather_padded_batches(accelerator):
    """Loader divides the samples by itself; a gather needs batches of the same size on all ranks."""
    x = torch.arange(float(SAMPLES)).view(-1, 1)
    for source in ({"x": x}, Named()):
        loader = stoker.Loader(source, batch_size=16, pad_last=True, fields=("x", "valid"), as_dict=True)
        gathered = [accelerator.gather((batch["x"], batch["valid"])) for batch in accelerator.prepare(loader)]
        seen = [[int(v) for v in values[valid.bool()]] for values, valid in gathered]
        report(f"padded {type(source).__name__}", seen, 0, sizes=[len(values) for values, _ in gathered])


def transformers():
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.line = torch.nn.Linear(1, 1)
            self.seen, self.last = [], 0.0

        def forward(self, x, y):
            self.seen.append([int(v) for v in x.flatten()])
            loss = torch.nn.functional.mse_loss(self.line(x / SAMPLES), y / SAMPLES)
            self.last = float(loss)
            return {"loss": loss}

    own = [("own torch", data.DataLoader), ("own stoker", stoker.DataLoader)]
    for kind, loader in [*loaders(Named), *own]:

        class Mine(Trainer):
            """Prepares a loader of the script, or takes the loader that Trainer makes."""

            def get_train_dataloader(self, loader=loader):
                if isinstance(loader, type):
                    self.prepared = super().get_train_dataloader()
                    if loader is stoker.DataLoader:
                        self.prepared = stoker.DataLoader.from_torch(self.prepared)
                else:
                    self.prepared = self.accelerator.prepare(loader)
                return self.prepared

        model, saves = Model(), kind.startswith("own")
        arguments = TrainingArguments(
            output_dir=f"{sys.argv[2]}/{kind}",
            num_train_epochs=2,
            per_device_train_batch_size=BATCH,
            use_cpu=True,
            report_to=[],
            save_strategy="steps" if saves else "no",
            save_steps=5,
            disable_tqdm=True,
            logging_strategy="no",
        )
        trainer = Mine(model=model, args=arguments, train_dataset=Named())
        trainer.train()
        report(kind, model.seen, model.last, type=type(trainer.prepared.base_dataloader).__module__)
        if saves:
            model = Model()
            trainer = Mine(model=model, args=arguments, train_dataset=Named())
            trainer.train(resume_from_checkpoint=f"{arguments.output_dir}/checkpoint-10")
            module = type(trainer.prepared.base_dataloader).__module__
            report(f"resumed {kind}", model.seen, model.last, type=module)


def timm():
    """create_loader divides the images with samplers of torch's and of its own."""
    from timm.data import ImageDataset, create_loader

    torch.distributed.init_process_group("gloo")
    root = make_photos(Path(sys.argv[2]) / os.environ["RANK"], SAMPLES // 2, size=(16, 16))
    for training in (False, True):
        for module in ("torch", "stoker"):
            more = {"num_workers": 2, "device": torch.device("cpu"), "distributed": True, "no_aug": True}
            loader = create_loader(ImageDataset(str(root)), 16, BATCH, training, **more)
            if module == "stoker":
                loader = stoker.DataLoader.from_torch(loader)
            seen, loss = [], torch.zeros(())
            torch.manual_seed(0)
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3 * 16 * 16, 2))
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            for epoch in range(2):
                if training:
                    loader.sampler.set_epoch(epoch)
                for images, labels in loader:
                    seen.append((images[:, 0, 0, 0] * 1000).round().int().tolist())
                    loss = torch.nn.functional.cross_entropy(model(images.flatten(1)), labels)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            report(f"{training} {module}", seen, float(loss), type=type(loader.loader).__module__)


def document():
    """Runs docs/distributed.md, and reports what a loader without a sampler warns of."""
    from test_docs import blocks_of

    blocks = blocks_of("docs/distributed.md")
    os.chdir(sys.argv[2])
    names = {}
    for block in blocks:
        exec(compile(block, "distributed.md", "exec"), names)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        loader = stoker.DataLoader(Lines(), batch_size=BATCH)
        list(loader), list(loader)
    report("warning", [str(w.message) for w in found], len(found))
    torch.manual_seed(1)
    sampler = data.DistributedSampler(Draws(), shuffle=False)
    report("draws", torch.cat(list(stoker.DataLoader(Draws(), BATCH, sampler=sampler))).tolist(), 0)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(500, exit=True)  # far longer than on any machine: the ranks hang
    import_torchvision()
    globals()[sys.argv[1]]()
