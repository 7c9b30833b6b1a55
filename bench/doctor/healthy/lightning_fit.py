# SPDX-License-Identifier: Apache-2.0
"""Lightning."""

from shared import dense  # isort: skip  # before lightning, which imports torchvision

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = dense(1024, 1024, 8)

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = lightning.Trainer(max_epochs=1_000_000, accelerator="auto", devices=1, **quiet)
    trainer.fit(Module(), DataLoader(data, 128, shuffle=True))
