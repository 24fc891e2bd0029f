"""How far a load has come, and how long a query takes, for people: a line in a terminal, a bar in a notebook."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

# Seconds after which there is something to see.
_PATIENCE = 0.5
_WIDTH = 30


def of(wish: bool | Callable[[int, float | None], Any] | None, what: str) -> Callable[[int, float | None], Any] | None:
    """Whom to tell: the function that was given, a bar if one is wanted, or None. By default there is a bar where
    somebody sees it: in a terminal, and in a notebook."""
    if callable(wish):
        return wish
    if wish is None:
        wish = _seen()
    return Bar(what) if wish else None


def progress(shown: bool | None) -> None:
    """Whether queries and loads that take long show so: a line on standard error, or a bar in a notebook.

    With None, as it is at first, they do where somebody sees it: in terminals and in notebooks. A query shows its seconds
    after two of them.

    >>> import atoll
    >>> atoll.progress(False)
    """
    global _wished
    _wished = shown


_wished: bool | None = None


def _seen() -> bool:
    if _wished is not None:
        return _wished
    return _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


@contextlib.contextmanager
def waiting(what: str) -> Iterator[Callable[[float], Any] | None]:
    """Whom to tell how many seconds something takes; nobody, if nobody sees it."""
    if not _seen():
        yield None
        return
    wait = Wait(what)
    try:
        yield wait
    finally:
        wait.close()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and hasattr(running, "kernel")


class _Line:
    """A line in a terminal, or what a notebook displays: it is written over, and taken away at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown: Any = None
        self._notebook = _in_notebook()

    def _tell(self, line: str, page: str) -> None:
        if self._notebook:
            self._show(page)
        elif sys.stderr is not None:
            self._shown = True
            sys.stderr.write("\r\x1b[K" + line)
            sys.stderr.flush()

    def close(self) -> None:
        """Takes it away."""
        if self._shown is None:
            return
        if self._notebook:
            self._show("")
        else:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _show(self, text: str) -> None:
        import IPython.display

        shows: Any = IPython.display
        page = shows.HTML(text)
        if self._shown is None:
            self._shown = shows.display(page, display_id=True)
        else:
            self._shown.update(page)


class Wait(_Line):
    """Shows for how many seconds something runs. How much of a query is done nobody knows."""

    def __call__(self, seconds: float) -> None:
        """It takes so many seconds so far."""
        text = f"{self._what}: {seconds:.1f} s"
        self._tell(f"[{_moving(seconds)}] {text}, Ctrl-C stops it", f"<progress></progress> {html.escape(text)}")


def _moving(seconds: float) -> str:
    """A mark that moves to and fro."""
    at = int(seconds * 2) % (2 * _WIDTH - 2)
    at = min(at, 2 * _WIDTH - 2 - at)
    return "." * at + "#" + "." * (_WIDTH - 1 - at)


class Bar(_Line):
    """Shows rows, and the share that is done where it is known."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._begun = time.monotonic()

    def __call__(self, rows: int, fraction: float | None) -> None:
        """The load has come so far."""
        if time.monotonic() - self._begun < _PATIENCE:
            return
        self._tell(self._line(rows, fraction), self._html(rows, fraction))

    def _line(self, rows: int, fraction: float | None) -> str:
        if fraction is None:
            return f"{self._what}: {rows:,} rows"
        full = int(fraction * _WIDTH)
        return f"{self._what} [{'#' * full}{'.' * (_WIDTH - full)}] {fraction:4.0%}, {rows:,} rows"

    def _html(self, rows: int, fraction: float | None) -> str:
        value = "" if fraction is None else f' value="{fraction:.3f}"'
        return f"{html.escape(self._what)} <progress{value}></progress> {rows:,} rows"
