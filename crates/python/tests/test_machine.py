"""Governors, pinned threads, and where a process is."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import atoll

ABSENT = 2**22 + 7
BUSY = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"


@pytest.fixture
def busy():
    child = subprocess.Popen([sys.executable, "-c", BUSY])
    yield child
    child.kill()
    child.wait()


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_governor_decides_and_puts_everything_back(busy):
    before = os.sched_getaffinity(busy.pid)
    with atoll.govern(pid=busy.pid, mode="sparse", max_cores=1, period=0.02, actuator="affinity") as governor:
        until(lambda: governor.count >= 3)
        assert governor.running and repr(governor).startswith(f"<governor of process {busy.pid}, running, ")
        decision = governor.decisions[-1]
        assert set(decision["cpus"]) <= before and decision["why"]
        assert os.sched_getaffinity(busy.pid) == set(decision["cpus"])
        with pytest.raises(atoll.OperationalError, match="governed already"):
            atoll.govern(pid=busy.pid, actuator="affinity")
    assert not governor.running and governor.spent[0]["seconds"] > 0
    assert os.sched_getaffinity(busy.pid) == before
    governor.stop()


def test_a_governor_ends_with_its_target(busy):
    governor = atoll.govern(pid=busy.pid, period=0.02, dry_run=True)
    until(lambda: governor.count > 0)
    busy.kill()
    busy.wait()
    until(lambda: not governor.running)
    governor.stop()
    assert governor.decisions


def test_a_guard_puts_back_what_a_killed_process_has_changed(busy, tmp_path):
    before = os.sched_getaffinity(busy.pid)
    program = (
        "import atoll, sys, time\n"
        f"governor = atoll.govern(pid={busy.pid}, mode='dense', max_cores=1, period=0.02, actuator='affinity')\n"
        "while not governor.decisions: time.sleep(0.01)\n"
        "print('governed', flush=True)\n"
        "time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "governed\n"
    if len(before) > 1:
        until(lambda: os.sched_getaffinity(busy.pid) != before)
    child.send_signal(signal.SIGKILL)
    child.wait()
    until(lambda: os.sched_getaffinity(busy.pid) == before)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"pid": ABSENT}, atoll.OperationalError, "nothing to govern|no process"),
        ({"pid": 0}, atoll.InterfaceError, "process 0"),
        ({}, atoll.InterfaceError, "say what to govern"),
        ({"pid": 1, "name": "x"}, atoll.InterfaceError, "say what to govern"),
        ({"name": "no such command here"}, atoll.OperationalError, "nothing to govern"),
        ({"pid": 1, "mode": "absurd"}, atoll.InterfaceError, "absurd"),
        ({"pid": 1, "sensor": "smell"}, atoll.InterfaceError, "smell"),
        ({"pid": 1, "actuator": "magic"}, atoll.InterfaceError, "magic"),
        ({"pid": 1, "throughput": "nothing:x"}, atoll.InterfaceError, "."),
        ({"pid": 1, "period": 0.0}, atoll.InterfaceError, "period"),
        ({"pid": 1, "period": float("nan")}, atoll.InterfaceError, "period"),
        ({"pid": 1, "min_cores": 0}, atoll.InterfaceError, "."),
        ({"pid": 1, "min_cores": 3, "max_cores": 2}, atoll.InterfaceError, "."),
    ],
)
def test_what_cannot_be_governed(options, error, text):
    with pytest.raises(error, match=text):
        atoll.govern(**options, dry_run=True)


def test_numbers_that_are_none():
    for call in [lambda: atoll.govern(pid=-1), lambda: atoll.where(-1), lambda: atoll.where(2**40), lambda: atoll.pin(cpus=0, pid=2**40)]:
        with pytest.raises((OverflowError, atoll.Error, TypeError)):
            call()


def test_the_calling_thread_is_pinned_and_put_back():
    before = os.sched_getaffinity(0)
    least = min(before)
    other = []
    with atoll.pin(cpus=[least]) as pinned:
        assert os.sched_getaffinity(0) == {least} and pinned.cpus == [[least]]
        pinned.undo()
        assert os.sched_getaffinity(0) == before, "before its time, too"
    with atoll.pin(nodes=0):
        node = os.sched_getaffinity(0)
        assert node == before & set(atoll.topology().nodes[0].cpus)
    with atoll.pin(cpus=f"{least}"):
        thread = threading.Thread(target=lambda: other.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
    assert os.sched_getaffinity(0) == before


def test_a_process_is_pinned_and_put_back(busy):
    before = os.sched_getaffinity(busy.pid)
    least = min(before)
    with atoll.pin(cpus=least, pid=busy.pid):
        until(lambda: os.sched_getaffinity(busy.pid) == {least})
    assert os.sched_getaffinity(busy.pid) == before
    pinned = atoll.pin(strategy="compact", threads=1, pid=busy.pid)
    until(lambda: len(os.sched_getaffinity(busy.pid)) == 1)
    assert len(pinned.cpus) == 1
    del pinned
    until(lambda: os.sched_getaffinity(busy.pid) == before)
    with atoll.pin(cpus=least, pid=busy.pid) as pinned:
        busy.kill()
        busy.wait()
    pinned.undo()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, atoll.InterfaceError, "say where"),
        ({"cpus": 0, "nodes": 0}, atoll.InterfaceError, "say where"),
        ({"cpus": "zero"}, atoll.InterfaceError, "list of cpus"),
        ({"cpus": []}, atoll.InterfaceError, "."),
        ({"cpus": 100_000}, atoll.InterfaceError, "cpu"),
        ({"nodes": 4096}, atoll.InterfaceError, "no node 4096"),
        ({"nodes": []}, atoll.InterfaceError, "no cpus"),
        ({"strategy": "compact"}, atoll.InterfaceError, "give its pid"),
        ({"strategy": "absurd", "pid": 1}, atoll.InterfaceError, "absurd"),
        ({"strategy": "sparse", "threads": 0, "pid": 1}, atoll.InterfaceError, "0 threads"),
        ({"cpus": 0, "pid": ABSENT}, atoll.OperationalError, str(ABSENT)),
    ],
)
def test_what_cannot_be_pinned(options, error, text):
    with pytest.raises(error, match=text):
        atoll.pin(**options)


def test_where_a_process_is(busy):
    here = atoll.where()
    assert here.process == os.getpid() and here.total > 1 << 20 and sum(here.bytes) == here.total
    assert any(thread["thread"] == os.getpid() for thread in here.threads) and "on node" in str(here)
    there = atoll.where(busy.pid, sample=100)
    assert there.process == busy.pid and there.total > 0
    with pytest.raises(atoll.OperationalError, match=str(ABSENT)):
        atoll.where(ABSENT)


@pytest.mark.skipif(os.getuid() != 0, reason="NOT RUN: only root can become somebody who may not")
def test_processes_of_others(busy):
    program = (
        "import atoll, os\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "for call in [lambda: atoll.where({pid}), lambda: atoll.pin(cpus=0, pid={pid}),\n"
        "             lambda: atoll.govern(pid={pid}, actuator='affinity', period=0.02)]:\n"
        "    try:\n"
        "        made = call()\n"
        "        import time\n"
        "        end = time.time() + 20\n"
        "        while made.running and time.time() < end: time.sleep(0.02)\n"
        "        made.stop()\n"
        "        print('nothing refused')\n"
        "    except atoll.OperationalError as error:\n"
        "        print('refused', error)\n"
    ).format(pid=busy.pid)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert ran.stdout.count("refused ") == 3, (ran.stdout, ran.stderr)
