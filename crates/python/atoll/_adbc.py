"""The ADBC driver, which is in the module."""

from __future__ import annotations

from . import _atoll


def adbc_driver() -> str:
    """The file of the ADBC driver, for programs that use `adbc_driver_manager`: it is in this package.

    >>> import atoll
    >>> atoll.adbc_driver().endswith(".so")
    True

    With the driver manager installed, `adbc_driver_manager.dbapi.connect(driver=atoll.adbc_driver(), db_kwargs={"path": "reef.atoll"})`
    connects to a file. A file that is open in this process by `atoll.open` cannot be opened by the driver as well.
    """
    assert _atoll.__file__ is not None
    return _atoll.__file__
