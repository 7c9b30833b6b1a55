# SPDX-License-Identifier: Apache-2.0
"""Finds the rank of this process and the number of ranks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from ._errors import usage
from ._types import whole


class Ranks(NamedTuple):
    rank: int
    world_size: int
    why: str  # where they come from


LAUNCHERS = {
    "slurm": [("SLURM_PROCID", "SLURM_NTASKS")],
    "mpi": [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")],
}


def _from_environment(names: list[tuple[str, str]], env: Mapping[str, str], why: str) -> Ranks | None:
    for rank, size in names:
        if rank in env and size in env:
            try:
                return Ranks(int(env[rank]), int(env[size]), why)
            except ValueError:
                raise usage(f"the variables {rank}={env[rank]!r} and {size}={env[size]!r} must be integers") from None
    return None


def _from_torch() -> Ranks | None:
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed and distributed.is_available() and distributed.is_initialized():
        return Ranks(distributed.get_rank(), distributed.get_world_size(), "torch.distributed")
    return None


def of_sampler(sampler: Any, rank: Any = None, world_size: Any = None) -> Ranks:
    """The ranks for which a sampler, or the one in a batch sampler, chooses samples: the arguments, or its attributes.

    >>> of_sampler([3, 1, 2])
    Ranks(rank=0, world_size=1, why='the sampler decides')
    """
    if not isinstance(rank, int):
        inner = getattr(sampler, "sampler", sampler)
        rank, world_size = getattr(inner, "rank", None), getattr(inner, "num_replicas", None)
    known = isinstance(rank, int) and isinstance(world_size, int) and 0 <= rank < world_size
    return Ranks(rank if known else 0, world_size if known else 1, "the sampler decides")


def find(rank: int | str | None, world_size: int | None, env: Mapping[str, str] | None = None) -> Ranks:
    """The arguments, else torch.distributed, else torchrun's variables, else 0 of 1.

    >>> find(None, None, {"RANK": "2", "WORLD_SIZE": "8"})
    Ranks(rank=2, world_size=8, why='RANK and WORLD_SIZE')
    >>> find("slurm", None, {"SLURM_PROCID": "1", "SLURM_NTASKS": "4"})
    Ranks(rank=1, world_size=4, why='slurm')
    """
    env = os.environ if env is None else env
    if isinstance(rank, str):
        if rank not in LAUNCHERS:
            raise usage(f"rank is {rank!r}; it must be an integer, slurm or mpi")
        found = _from_environment(LAUNCHERS[rank], env, rank)
        if not found:
            raise usage(f"rank is {rank!r}, but the variables {' and '.join(LAUNCHERS[rank][0])} are not set")
        if world_size not in (None, found.world_size):
            raise usage(f"world_size is {world_size}, but {rank} has {found.world_size}; leave it out")
        return found
    if rank is not None or world_size is not None:
        if rank is None or world_size is None:
            raise usage("rank and world_size go together; pass both or neither")
        rank, world_size = whole("rank", rank, -(2**31), 2**31 - 1), whole("world_size", world_size, 0, 2**31 - 1)
        if not 0 <= rank < world_size:
            raise usage(f"rank is {rank} and world_size {world_size}; ranks go from 0 to world_size - 1")
        return Ranks(rank, world_size, "as given")
    found = _from_torch() or _from_environment([("RANK", "WORLD_SIZE")], env, "RANK and WORLD_SIZE")
    return found or Ranks(0, 1, "no launcher found")
