"""How far a load has come, for people: a line in a terminal, a bar in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
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
        wish = _in_notebook() or sys.stderr.isatty()
    return Bar(what) if wish else None


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and hasattr(running, "kernel")


class Bar:
    """Shows rows, and the share that is done where it is known."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._shown: Any = None
        self._notebook = _in_notebook()

    def __call__(self, rows: int, fraction: float | None) -> None:
        """The load has come so far."""
        if time.monotonic() - self._begun < _PATIENCE:
            return
        if self._notebook:
            self._show(self._html(rows, fraction))
        else:
            self._shown = True
            sys.stderr.write("\r\x1b[K" + self._line(rows, fraction))
            sys.stderr.flush()

    def close(self) -> None:
        """Takes the bar away."""
        if self._shown is None:
            return
        if self._notebook:
            self._show("")
        else:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _line(self, rows: int, fraction: float | None) -> str:
        if fraction is None:
            return f"{self._what}: {rows:,} rows"
        full = int(fraction * _WIDTH)
        return f"{self._what} [{'#' * full}{'.' * (_WIDTH - full)}] {fraction:4.0%}, {rows:,} rows"

    def _html(self, rows: int, fraction: float | None) -> str:
        import html

        value = "" if fraction is None else f' value="{fraction:.3f}"'
        return f"{html.escape(self._what)} <progress{value}></progress> {rows:,} rows"

    def _show(self, text: str) -> None:
        from IPython.display import HTML, display

        if self._shown is None:
            self._shown = display(HTML(text), display_id=True)
        else:
            self._shown.update(HTML(text))
