"""Packs a wheel: the package and its module, which has the command line inside. `./package wheel` calls it.

    python3 crates/python/wheel.py --module lib_atoll.so --folder dist
    python3 crates/python/wheel.py --metadata FOLDER      what says that a package in this folder is installed, for tests

Nothing is compiled here, and nothing but Python is needed.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import zipfile

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
# The same bytes for the same contents.
MOMENT = (2020, 1, 1, 0, 0, 0)

# The command, and the engine that xarray finds by this name.
ENTRY_POINTS = b"""[console_scripts]
atoll = atoll._program:main
[xarray.backends]
atoll = atoll._xarray:AtollBackendEntrypoint
"""


def version():
    """That of the workspace."""
    found = re.search(r'^version = "(.*?)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("wheel.py: Cargo.toml has no version")
    return found[1]


def metadata():
    readme = (ROOT / "docs" / "guides" / "python.md").read_text()
    return f"""Metadata-Version: 2.4
Name: atoll
Version: {version()}
Summary: An analytical database that knows where its memory is
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Requires-Python: >=3.10
Provides-Extra: arrow
Requires-Dist: pyarrow; extra == "arrow"
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
Requires-Dist: pyarrow; extra == "pandas"
Provides-Extra: polars
Requires-Dist: polars; extra == "polars"
Provides-Extra: xarray
Requires-Dist: xarray; extra == "xarray"
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: Free Threading :: 1 - Unstable
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Database :: Database Engines/Servers
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{readme}"""


class Wheel:
    """A wheel that is being written."""

    def __init__(self, path, folder):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.folder = folder
        self.records = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, MOMENT)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        self.file.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(content)}")

    def close(self):
        record = f"{self.folder}/RECORD"
        lines = [*self.records, f"{record},,", ""]
        self.file.writestr(zipfile.ZipInfo(record, MOMENT), "\n".join(lines))
        self.file.close()


def installed(place):
    folder = place / f"atoll-{version()}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(metadata())
    (folder / "entry_points.txt").write_bytes(ENTRY_POINTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--metadata", type=pathlib.Path)
    parser.add_argument("--machine", default=platform.machine(), help="that the module is for, if it is not this one")
    parser.add_argument("--free-threaded", metavar="3.14", help="the version of CPython without its global lock that the module is for")
    options = parser.parse_args()
    if options.metadata:
        return installed(options.metadata)
    if not options.module or not options.folder:
        parser.error("give --module and --folder, or --metadata")
    if options.free_threaded:
        # Such interpreters have no stable interface before 3.15: a wheel is of one version.
        number = options.free_threaded.replace(".", "")
        interpreter, suffix = f"cp{number}-cp{number}t", f"cpython-{number}t-{options.machine}-linux-gnu"
    else:
        interpreter, suffix = "cp310-abi3", "abi3"
    tag = f"{interpreter}-linux_{options.machine}"
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"atoll-{version()}-{tag}.whl"
    folder = f"atoll-{version()}.dist-info"
    wheel = Wheel(path, folder)
    for file in sorted((HERE / "atoll").iterdir()):
        if file.suffix in (".py", ".pyi") or file.name == "py.typed":
            wheel.add(f"atoll/{file.name}", file.read_bytes())
    wheel.add(f"atoll/_atoll.{suffix}.so", options.module.read_bytes(), 0o755)
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        wheel.add(f"{folder}/licenses/{name}", (ROOT / name).read_bytes())
    wheel.add(f"{folder}/METADATA", metadata().encode())
    wheel.add(f"{folder}/WHEEL", f"Wheel-Version: 1.0\nGenerator: atoll\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{folder}/entry_points.txt", ENTRY_POINTS)
    wheel.close()
    print(path)


if __name__ == "__main__":
    main()
