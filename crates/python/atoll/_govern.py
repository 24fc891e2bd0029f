"""Governors: a process gets just the cores that it needs."""

from __future__ import annotations

import atexit
import json
import os
import sys
import weakref
from typing import Any

from . import _atoll, _program

_running: weakref.WeakSet[Governor] = weakref.WeakSet()


class Governor:
    """A governor that runs on a thread of this process: see `govern`. After `with`, or `stop`, all is as before."""

    def __init__(self, core: _atoll.Governor, target: str) -> None:
        self._core = core
        self._target = target
        _running.add(self)

    @property
    def running(self) -> bool:
        """Whether it governs: not after `stop`, nor when what it governed has ended."""
        return self._core.running

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """Its last thousand decisions, the newest last: when (`time`), what the sensors said (`readings`), what happens to
        the number of cores (`action`), the `cpus` from then on, and `why`."""
        return [json.loads(line) for line in self._core.decisions()[0]]

    @property
    def count(self) -> int:
        """How many decisions it has made."""
        return self._core.decisions()[1]

    @property
    def notes(self) -> list[str]:
        """What it noted, such as sensors that are not there."""
        return self._core.told()[0]

    @property
    def spent(self) -> list[dict[str, Any]]:
        """What was used: core-seconds and an estimate of energy. Empty while it runs."""
        spent = self._core.told()[1]
        return [] if spent is None else json.loads(spent)

    def stop(self) -> None:
        """Ends it, and waits until everything is as before. Raises `OperationalError` if it has failed."""
        self._core.stop()
        ended = self._core.told()[2]
        if ended is not None and ended[1]:
            raise _atoll.OperationalError(ended[0])

    def __enter__(self) -> Governor:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.stop()
        except _atoll.OperationalError:
            # An exception that is under way says more.
            if kind is None:
                raise

    def __repr__(self) -> str:
        state = "running" if self.running else "ended"
        return f"<governor of {self._target}, {state}, {self.count} decisions>"


def govern(
    pid: int | None = None,
    *,
    name: str | None = None,
    cgroup: str | os.PathLike[str] | None = None,
    unit: str | None = None,
    mode: str = "adaptive",
    sensor: str | None = None,
    throughput: str | None = None,
    min_cores: int | None = None,
    max_cores: int | None = None,
    reserve: int | None = None,
    period: float | None = None,
    actuator: str = "auto",
    migrate: bool = False,
    dry_run: bool = False,
) -> Governor:
    """Gives a running database, or any other process, just the cores that it needs, until it is stopped: `atoll govern`.

    What is governed is one of: the process `pid` with those that descend from it, all processes of a command's `name`, a
    control group, a unit of systemd. `mode` says which core is next: "sparse" (on the next node), "dense" (a node first),
    "adaptive" (where the pages are). `period` is in seconds. With `dry_run` it decides and changes nothing. The other
    arguments are the options of `atoll govern`.

    >>> import atoll, os, time
    >>> with atoll.govern(pid=os.getpid(), mode="sparse", dry_run=True) as governor:
    ...     while not governor.decisions:
    ...         time.sleep(0.05)
    >>> governor.running, governor.decisions[-1]["action"] in ("none", "allocate", "release")
    (False, True)

    When this process is killed, a guard puts everything back, which is a process that it starts.

    Raises `InterfaceError` for a mode, sensor or number that there is not, and `OperationalError` if there is no such process,
    if it is governed already, or if this user may not govern it.
    """
    options: _atoll._GovernOptions = {
        "pid": pid,
        "name": name,
        "cgroup": None if cgroup is None else os.fspath(cgroup),
        "unit": unit,
        "mode": mode,
        "sensor": sensor,
        "throughput": throughput,
        "min_cores": min_cores,
        "max_cores": max_cores,
        "reserve": reserve,
        "period": period,
        "actuator": actuator,
        "migrate": migrate,
        "dry_run": dry_run,
        "guard": [sys.executable, os.path.abspath(_program.__file__), "govern", "guard"],
    }
    target = next((str(given) for given in (name, cgroup, unit) if given is not None), f"process {pid}")
    return Governor(_atoll.Governor(options), target)


@atexit.register
def _stop_all() -> None:
    for governor in list(_running):
        governor._core.stop()
