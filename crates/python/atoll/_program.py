"""The command `atoll` of an installed package: the command line is in the module."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Started by its path, it is not within the package.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> None:
    """Runs the command that the words of this process are, and ends it."""
    from atoll import _atoll

    script = os.path.abspath(sys.argv[0])
    runs = not script.endswith(".py") and os.path.isfile(script) and os.access(script, os.X_OK)
    again = [script] if runs else [sys.executable, os.path.abspath(__file__)]
    _atoll.command(["atoll", *sys.argv[1:]], script if runs else None, again)


if __name__ == "__main__":
    main()
