"""Drivers of other languages: pgjdbc, node-postgres, pgx. Each is installed into target/clients by its language's own tool, and its test is a program here."""
import os, shutil, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PLACE = os.path.join(os.path.dirname(HERE), "target", "clients")
# The newest that was tried.
PGJDBC = "org.postgresql:postgresql:42.7.8"


def missing(*names):
    """Why a test is not run, if a program that it needs is not installed."""
    absent = [name for name in names if not shutil.which(name)]
    return f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not installed" if absent else None


def done(words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=600, **options)


def passes(words, **options):
    told = done(words, **options)
    assert told.returncode == 0, told.stderr + told.stdout


def jdbc(port, *_):
    if why := missing("java", "mvn"):
        return why
    folder = os.path.join(PLACE, "jdbc")
    name = PGJDBC.split(":")
    jar = os.path.join(folder, f"{name[1]}-{name[2]}.jar")
    if not os.path.exists(jar):
        done(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={PGJDBC}", f"-DoutputDirectory={folder}"])
    if not os.path.exists(jar):
        return f"{PGJDBC} cannot be installed"
    for program in ["Jdbc.java", "Metadata.java"]:
        passes(["java", "-cp", jar, os.path.join(HERE, "jdbc", program), str(port)])


def node(port, *_):
    if why := missing("node", "npm"):
        return why
    folder = os.path.join(PLACE, "node")
    os.makedirs(folder, exist_ok=True)
    for file in ["package.json", "package-lock.json"]:
        shutil.copy(os.path.join(HERE, "node", file), folder)
    told = done(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder)
    if told.returncode:
        lines = told.stderr.strip().splitlines()
        return f"pg cannot be installed: {lines[0] if lines else told.returncode}"
    passes(["node", os.path.join(HERE, "node", "postgres.js"), str(port)], env={**os.environ, "NODE_PATH": os.path.join(folder, "node_modules")})


def go(port, *_):
    if why := missing("go"):
        return why
    program = os.path.join(PLACE, "pgx")
    folder = os.path.join(HERE, "go")
    told = done(["go", "mod", "download"], cwd=folder)
    if told.returncode:
        lines = told.stderr.strip().splitlines()
        return f"pgx cannot be installed: {lines[-1] if lines else told.returncode}"
    os.makedirs(PLACE, exist_ok=True)
    passes(["go", "build", "-o", program, "."], cwd=folder)
    passes([program, str(port)])
