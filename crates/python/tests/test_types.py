"""What type checkers see is what there is."""

import os
import pathlib
import subprocess
import sys

import atoll

PACKAGE = pathlib.Path(atoll.__file__).parent


def run(*command):
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-m", *command], env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_the_package_is_typed(tmp_path):
    assert (PACKAGE / "py.typed").exists()
    code, told = run("mypy", "--strict", "--ignore-missing-imports", f"--cache-dir={tmp_path}", "-p", "atoll")
    assert code == 0, told


def test_callers_are_checked(tmp_path):
    (tmp_path / "caller.py").write_text(
        'import atoll\nwith atoll.open("x.atoll", threads=2) as db:\n'
        '    rows: list[tuple[object, ...]] = db.sql("from t", [1], tables={}).fetchall()\n'
        '    db.table("t").append(rows)\n    wrong: int = db.sql("from t").columns\n'
    )
    code, told = run("mypy", "--strict", "--ignore-missing-imports", f"--cache-dir={tmp_path}", str(tmp_path / "caller.py"))
    assert code == 1 and told.count("error:") == 1 and "caller.py:5" in told, told


def test_the_stub_of_the_module_is_right(tmp_path):
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = True\n")
    code, told = run("mypy.stubtest", "--mypy-config-file", str(tmp_path / "mypy.ini"), "atoll._atoll")
    assert code == 0, told
