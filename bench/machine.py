"""What a figure was measured on. Names the hardware, not the host or its owner."""

import os
import pathlib
import platform
import re
import subprocess


def output(*command, cwd=None):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=30).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def fields(path):
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines) if value}


def read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return None


def topology():
    nodes = []
    for node in sorted(pathlib.Path("/sys/devices/system/node").glob("node[0-9]*"), key=lambda p: int(p.name[4:])):
        memory = re.search(r"MemTotal:\s+(\d+) kB", read(node / "meminfo") or "")
        nodes.append({"cpus": read(node / "cpulist"), "memory_bytes": int(memory[1]) * 1024 if memory else None,
                      "distance": read(node / "distance")})
    caches = []
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        caches.append({name: read(index / name) for name in ("level", "type", "size", "shared_cpu_list")})
    return {"nodes": nodes, "caches": caches}


def describe():
    cpu, memory = fields("/proc/cpuinfo"), fields("/proc/meminfo")
    return {
        "cpu": cpu.get("model name") or platform.processor() or platform.machine(),
        "architecture": platform.machine(),
        "cpus": os.cpu_count(),
        "usable_cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": int(memory.get("MemTotal", "0 kB").split()[0]) * 1024,
        "kernel": platform.release(),
        "hypervisor": "hypervisor" in cpu.get("flags", "").split(),
        "topology": topology(),
        "load_average": list(os.getloadavg()),
    }


def slug(machine):
    cpu = re.sub(r"\(r\)|\(tm\)|cpu|processor|@.*$", " ", machine["cpu"].lower())
    return "-".join(re.findall(r"[a-z0-9.]+", cpu)[:5] + [f"{machine['cpus']}cpu"])


def commit(folder):
    """The commit, and whether the tree differs from it."""
    return {"commit": output("git", "rev-parse", "HEAD", cwd=folder) or None,
            "changed": bool(output("git", "status", "--porcelain", "--untracked-files=no", cwd=folder))}
