"""Where threads and memory are, and where they are to be."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import _atoll


class Pinned:
    """Threads that run on chosen cpus only: see `pin`. After `with`, or `undo`, they are as before."""

    def __init__(self, core: _atoll.Pinned) -> None:
        self._core = core

    @property
    def cpus(self) -> list[list[int]]:
        """The cpus of each thread; a single list if all have the same."""
        return self._core.cpus

    def undo(self) -> None:
        """Gives the threads the cpus that they had before."""
        self._core.undo()

    def __enter__(self) -> Pinned:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        return f"<pinned to {self.cpus}>"


def pin(
    *,
    cpus: int | str | Iterable[int] | None = None,
    nodes: int | Iterable[int] | None = None,
    strategy: str | None = None,
    threads: int | None = None,
    pid: int | None = None,
) -> Pinned:
    """Has the calling thread run on some cpus only, or the threads of the process `pid`: those there are, and those that
    come while it is pinned.

    Where is one of: `cpus`, numbers or a text such as "0-3,8"; `nodes`, numbers as `topology` has them; for a process, a
    `strategy` of `atoll pin` such as "compact" or "sparse", for so many `threads`.

    >>> import atoll, os
    >>> before = os.sched_getaffinity(0)
    >>> with atoll.pin(cpus=min(before)) as pinned:
    ...     os.sched_getaffinity(0) == {min(before)}
    True
    >>> os.sched_getaffinity(0) == before
    True

    Raises `InterfaceError` for cpus, nodes or strategies that there are not, and `OperationalError` if there is no such
    process or this user may not place it.
    """
    listed = {cpus} if isinstance(cpus, int) else cpus
    options: _atoll._PinOptions = {
        "cpus": listed if listed is None or isinstance(listed, str) else ",".join(str(int(cpu)) for cpu in sorted(set(listed))),
        "nodes": None if nodes is None else [nodes] if isinstance(nodes, int) else list(nodes),
        "strategy": strategy,
        "threads": threads,
        "pid": pid,
    }
    return Pinned(_atoll.Pinned(options))


@dataclass(frozen=True)
class Where:
    """Where the memory and the threads of a process are."""

    process: int
    """Its number."""
    name: str
    """Its command."""
    nodes: list[int]
    """The operating system's numbers of the nodes; lists of bytes are in this order."""
    bytes: list[int]
    """Bytes in memory on each node."""
    groups: list[dict[str, Any]]
    """The memory by what it is for: `kind`, `name`, `bytes` on each node."""
    threads: list[dict[str, Any]]
    """The threads: `thread`, `name`, the `cpu` and the `node` where each ran last, `stack_bytes`."""
    notes: list[str]
    """What could not be seen, or is estimated."""

    @property
    def total(self) -> int:
        """Bytes in memory."""
        return sum(self.bytes)

    def __str__(self) -> str:
        shares = ", ".join(f"{count / 2**20:,.1f} MiB on node {node}" for node, count in zip(self.nodes, self.bytes))
        return f"{self.name} ({self.process}): {shares}; {len(self.threads)} threads"


def where(pid: int | None = None, *, sample: int | None = None) -> Where:
    """Where the memory and the threads of a process lie by node: this one, or the process `pid`; `atoll where --pid`.

    Every page is looked at up to 4 GiB; beyond, and if `sample` says how many, some addresses.

    >>> import atoll, os
    >>> here = atoll.where()
    >>> here.process == os.getpid(), here.total > 0, len(here.bytes) == len(here.nodes)
    (True, True, True)

    Raises `OperationalError` if there is no such process, or this user may not look at it.
    """
    told = json.loads(_atoll.locate(os.getpid() if pid is None else pid, sample))
    return Where(**{name: told[name] for name in ("process", "name", "nodes", "bytes", "groups", "threads", "notes")})
