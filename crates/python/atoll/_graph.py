"""Graphs of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _atoll
from ._result import Result

if TYPE_CHECKING:
    from ._database import Database


class Graph:
    """A graph of a database: `db.graph("web").bfs(42)`. `atoll load graph` loads one.

    What a function returns are rows, to be had as a data frame, tuples and the like, and to be read by statements as any other
    result. In SQL the functions have the same names: `select * from bfs('web', 42)`.
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = name
        columns = "vertices, edges, directed, weighted"
        row = database._query(f"select {columns} from graphs() where name = {_text(name)}").fetchone()
        if row is None:
            known = [known for (known,) in database._query("select name from graphs() order by name").fetchall()]
            raise _atoll.ProgrammingError(f"no graph '{name}'; there are {', '.join(known) or 'none'}")
        self._facts = row

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def directed(self) -> bool:
        """Whether its edges have directions."""
        return bool(self._facts[2])

    @property
    def weighted(self) -> bool:
        """Whether its edges have weights."""
        return bool(self._facts[3])

    def __len__(self) -> int:
        """How many vertices there are."""
        return int(self._facts[0])

    def __repr__(self) -> str:
        return f"graph {self._name}: {self._facts[0]} vertices, {self._facts[1]} edges"

    def vertices(self) -> Result:
        """Each vertex with how many edges leave it and reach it: `vertex`, `edges_out`, `edges_in`."""
        return self._call("vertices")

    def edges(self) -> Result:
        """The edges: `source`, `target`, and `weight` if there are weights; an undirected one in both directions."""
        return self._call("edges")

    def bfs(self, source: int) -> Result:
        """Breadth-first search: `vertex`, `level` of those that can be reached from `source`."""
        return self._call("bfs", str(int(source)))

    def pagerank(self, *, damping: float = 0.85, tolerance: float = 1e-4, rounds: int = 20) -> Result:
        """PageRank: `vertex`, `rank`; the ranks together are 1."""
        return self._call("pagerank", f"damping={damping!r}", f"tolerance={tolerance!r}", f"rounds={int(rounds)}")

    def components(self) -> Result:
        """Connected components: `vertex`, and `component`, a vertex that stands for its component."""
        return self._call("components")

    def triangles(self) -> int:
        """How many triangles there are."""
        row = self._call("triangles").fetchone()
        return int(row[0]) if row else 0

    def _call(self, function: str, *arguments: Any) -> Result:
        given = ", ".join([_text(self._name), *arguments])
        return self._database._query(f"select * from {function}({given})")


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
