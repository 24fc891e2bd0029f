"""`python -m atoll` is the command `atoll`."""

from ._program import main

main()
