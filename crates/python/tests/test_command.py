"""The command line in the module: `atoll` of an installed package."""

import os
import signal
import subprocess
import sys
import time

import atoll
from atoll import _program

START = [sys.executable, os.path.abspath(_program.__file__)]


def run(*words, **options):
    return subprocess.run([*START, *words], capture_output=True, text=True, timeout=120, **options)


def test_a_statement(tmp_path):
    store = str(tmp_path / "a.atoll")
    ran = run("sql", store, "--create", "--json", "select 6 * 7 as n")
    assert ran.returncode == 0 and "[[42]]" in ran.stdout, ran
    ran = subprocess.run([sys.executable, "-m", "atoll", "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0 and ran.stdout.startswith("atoll ")
    with atoll.open(store) as db:
        assert db.sql("select 1").fetchone() == (1,)


def test_statuses_and_messages(tmp_path):
    ran = run("sql", str(tmp_path / "none.atoll"), "select 1")
    assert ran.returncode == 1 and ran.stdout == "" and ran.stderr.startswith("atoll: "), ran
    ran = run("no-such-command")
    assert ran.returncode == 2 and "Usage: atoll" in ran.stderr
    ran = run("sql", "--help")
    assert ran.returncode == 0 and "Usage: atoll sql" in ran.stdout and ran.stderr == ""
    ran = run("pin", "--strategy", "os", "--", "sh", "-c", "exit 3")
    assert ran.returncode == 1 and "sh ended with exit status: 3" in ran.stderr
    ran = run("govern", "--dry-run", "--pid", "4194311")
    assert ran.returncode == 1 and "no process 4194311" in ran.stderr


def test_a_reader_that_goes_is_no_error(tmp_path):
    program = [*START, "sql", str(tmp_path / "a.atoll"), "--create", "--format", "csv", "select x from generate_series(1, 2000000) s(x)"]
    ran = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ran.stdout.readline()
    ran.stdout.close()
    assert ran.stderr.read() == "" and ran.wait(60) == 0


def test_control_c_stops_it(tmp_path):
    text = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 3000000) b(y) where x * y % 7 = 3"
    ran = subprocess.Popen([*START, "sql", str(tmp_path / "a.atoll"), "--create", text], stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    ran.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert ran.wait(60) == 130 and time.monotonic() - began < 10
    assert "interrupted" in ran.stderr.read()


def test_a_server(tmp_path):
    options = ["--create", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    server = subprocess.Popen([*START, "serve", str(tmp_path / "a.atoll"), *options], stderr=subprocess.PIPE, text=True)
    line = server.stderr.readline()
    while line and "by HTTP" not in line:
        line = server.stderr.readline()
    assert "by HTTP" in line
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0


def test_a_governor_of_a_command_has_its_guard():
    ran = run("govern", "--actuator", "affinity", "--period", "20ms", "--settle", "10ms", "--json", "--", sys.executable, "-c", "import time; time.sleep(0.5)")
    assert ran.returncode == 0, ran
    assert '"cpus"' in ran.stdout


def test_mimalloc_is_not_in_the_module():
    with open(atoll._atoll.__file__, "rb") as file:
        assert b"mimalloc" not in file.read().lower()
