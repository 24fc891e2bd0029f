"""Atoll: an analytical database that knows where its memory is.

>>> import atoll
>>> with atoll.open() as db:
...     db.script("create table fish (name varchar, length double)")
...     _ = db.sql("insert into fish values ($1, $2)", ["blenny", 0.1])
...     db.sql("select name from fish where length < 1").fetchall()
[('blenny',)]
"""

from ._atoll import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    __version__ as __version__,
)
from ._adbc import adbc_driver
from ._array import Array
from ._database import Database, open
from ._govern import Governor, govern
from ._graph import Graph
from ._machine import Node, Topology, topology
from ._place import Pinned, Where, pin, where
from ._progress import progress
from ._result import Result
from ._table import Table

__all__ = [
    "Array",
    "DataError",
    "Database",
    "DatabaseError",
    "Error",
    "Governor",
    "Graph",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Node",
    "NotSupportedError",
    "OperationalError",
    "Pinned",
    "ProgrammingError",
    "Result",
    "Table",
    "Topology",
    "Where",
    "adbc_driver",
    "govern",
    "open",
    "pin",
    "progress",
    "topology",
    "where",
]
