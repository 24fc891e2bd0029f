"""Machines: where cores and memory are."""

from __future__ import annotations

import html
from dataclasses import dataclass, field

from . import _atoll


@dataclass(frozen=True)
class Node:
    """A NUMA node: a piece of memory with the cores it is local to."""

    index: int
    """Its number, from 0 on without gaps."""
    os_index: int
    """The operating system's number."""
    cores: list[list[int]]
    """The cpus of each core; no cores of a node that is memory only."""
    memory_bytes: int
    """Its memory; 0 if that is unknown."""
    free_bytes: int | None
    """What of it was free; None but for this machine."""

    @property
    def cpus(self) -> list[int]:
        """All cpus."""
        return [cpu for core in self.cores for cpu in core]


@dataclass(frozen=True)
class Topology:
    """A machine. As a text, and in a notebook, it is a drawing."""

    name: str
    """`live`, or what it was called."""
    nodes: list[Node]
    """Its nodes."""
    distances: list[list[int]]
    """How far each node is from each: 10 is local, 20 twice as far."""
    drawing: str = field(repr=False)
    """What `atoll topology` prints."""

    def __str__(self) -> str:
        return self.drawing

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.drawing)}</pre>"


def topology(machine: str = "live") -> Topology:
    """The machine that this program runs on, or another: a shipped one ("opteron-8387"), an hwloc file, "4x4" and the like,
    as `atoll topology --machine` takes them.

    >>> import atoll
    >>> machine = atoll.topology("2x4")
    >>> [node.cpus for node in machine.nodes], machine.distances[0][0]
    ([[0, 1, 2, 3], [4, 5, 6, 7]], 10)

    Raises `InterfaceError` if there is no such machine.
    """
    name, nodes, distances, drawing = _atoll.topology(machine)
    return Topology(name, [Node(*node) for node in nodes], distances, drawing)
