"""The examples of the docstrings and of the guide run."""

import contextlib
import doctest
import importlib
import io
import os
import pathlib
import pkgutil
import re

import pytest

import atoll

# `__main__` is the command.
MODULES = ["atoll", *(f"atoll.{module.name}" for module in pkgutil.iter_modules(atoll.__path__) if module.name != "__main__")]
GUIDE = pathlib.Path(__file__).parents[3] / "docs" / "guides" / "python.md"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_there_are_some():
    finder = doctest.DocTestFinder()
    counted = [len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))]
    assert sum(counted) > 20


def test_everything_public_is_described():
    for name in atoll.__all__:
        value = getattr(atoll, name)
        assert value.__doc__, name
        if not isinstance(value, type) or issubclass(value, BaseException):
            continue
        for member, function in vars(value).items():
            if not member.startswith("_") and (callable(function) or isinstance(function, property)):
                assert function.__doc__, f"{name}.{member}"


def test_the_guide(tmp_path, monkeypatch):
    """Its blocks run one after the other, in one program."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    for block in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, str(GUIDE), "exec"), names)
        wanted = re.findall(r"^print\(.*\)\s+# (.*)$", block, re.MULTILINE)
        for line in wanted:
            assert line in printed.getvalue(), block
    names["db"].close()
    assert os.listdir(tmp_path)
