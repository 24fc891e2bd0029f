"""The command `atoll` of an installed package: the program that lies beside the module."""

from __future__ import annotations

import os
import sys

PROGRAM = os.path.join(os.path.dirname(__file__), "bin", "atoll")


def main() -> None:
    """Becomes the program."""
    if not os.path.exists(PROGRAM):
        sys.exit(f"atoll: {PROGRAM} is not there: install the package from a wheel")
    os.execv(PROGRAM, ["atoll", *sys.argv[1:]])


if __name__ == "__main__":
    main()
