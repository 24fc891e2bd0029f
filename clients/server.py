"""`atoll serve` for the tests of its clients, and what they share."""
import glob, shutil, signal, subprocess, threading


def find(name):
    found = [shutil.which(name)] + sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return next((path for path in found if path), None)


class Server:
    """`atoll serve` on a free port; killed or ended by who made it."""

    def __init__(self, atoll, store, *options):
        command = [atoll, "serve", store, "--create", "--listen", "127.0.0.1:0", "--flight", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = ""
        # The last that it says when it starts is where Flight is.
        while "Flight SQL at" not in line:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("the server does not start")
            if "is served at" in line:
                self.port = int(line.rsplit(":", 1)[1])
        self.flight = line.split()[-1]
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(30)


def same(found, wanted, what):
    assert found == wanted, f"{what}:\n  found  {found!r}\n  wanted {wanted!r}"
