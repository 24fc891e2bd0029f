"""Kernels over a graph: breadth-first search, PageRank, components and triangles. Atoll, NetworKit and Ladybug in turn.

    python3 -m venv bench/.graphs && bench/.graphs/bin/pip install -r bench/graphs.txt
    cargo build --release -p cli --no-default-features
    bench/.graphs/bin/python bench/graphs.py [--million 10] [--repeat 5] [--threads 2] [--seed 1] [--kernels bfs,..] [--atoll PATH] [--data DIRECTORY]

The graph is a skewed random one (R-MAT, undirected, without loops and repeated edges, ids shuffled), drawn from a seed. Atoll reads it from the
pages of a store, once with a pool that holds it and once with a tenth of that; NetworKit has it in memory, Ladybug in its own store. Each
engine's own seconds of the kernel, without loading; who begins changes with each round. What takes more than a minute is run only once,
which is said. Answers are compared: the vertices on each level of each
search, components, triangles; ranks by their greatest difference. Ladybug runs only searches, since its other kernels are
an extension that must be downloaded. Every timing goes to bench/results. The exit status is 1 when answers differ.
"""

import argparse
import datetime
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import numpy

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ["bfs", "pagerank", "components", "triangles"]
SEARCHES = 8
ROUNDS = 20
TOLERANCE = 1e-4
# Seconds; what takes longer is not repeated.
LONG = 60


def rmat(edges, seed):
    """Ends of the edges of an undirected R-MAT graph, each once; vertices are numbered from 0 without gaps."""
    random = numpy.random.default_rng(seed)
    bits = max(4, int(numpy.ceil(numpy.log2(edges / 8))))
    ends = numpy.zeros((2, edges), dtype=numpy.uint64)
    for _ in range(bits):
        draw = random.random(edges)
        down, right = draw >= 0.76, ((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95)
        ends = ends * 2 + numpy.array([down, right], dtype=numpy.uint64)
    shuffled = random.permutation(1 << bits).astype(numpy.uint64)
    ends = shuffled[ends]
    low, high = ends.min(axis=0), ends.max(axis=0)
    keys = numpy.unique((low << numpy.uint64(32) | high)[low != high])
    ends = numpy.array([keys >> numpy.uint64(32), keys & numpy.uint64(0xFFFFFFFF)])
    ids, numbers = numpy.unique(ends, return_inverse=True)
    return numbers.reshape(ends.shape).astype(numpy.int64), len(ids)


class Atoll:
    """The program, its kernels over a store; pages of the pool are warm after the first of two runs."""

    def __init__(self, name, program, store, threads, pool):
        self.name, self.program, self.store = name, program, store
        self.options = ["--threads", str(threads), "--pool", str(pool), "--json"]

    def ask(self, *words):
        command = [self.program, "graph", str(self.store), *words, *self.options]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def run(self, kernel, sources):
        if kernel == "bfs":
            # The first searches fill the pool.
            found = [self.ask("bfs", "--sources", str(2 * SEARCHES), "--seed", "1")["searches"][SEARCHES:]]
            return sum(one["seconds"] for one in found[0]), {one["source"]: one["levels"] for one in found[0]}
        found = self.ask(kernel, "--repeat", "2", *(["--top", "100"] if kernel == "pagerank" else []))
        answer = found.get("components", found.get("triangles"))
        self.rounds = found.get("rounds")
        if kernel == "pagerank":
            answer = {one["vertex"]: one["rank"] for one in found["ranks"]}
        return found["runs"][-1], answer


class NetworKit:
    name = "networkit"

    def __init__(self, ends, vertices, threads):
        import networkit
        self.kit = networkit
        networkit.setNumberOfThreads(threads)
        self.graph = networkit.GraphFromCoo((ends[0], ends[1]), n=vertices)
        self.graph.sortEdges()
        self.version = networkit.__version__

    def run(self, kernel, sources):
        kit, graph = self.kit, self.graph
        if kernel == "bfs":
            seconds, levels = 0, {}
            for source in sources:
                search = kit.distance.BFS(graph, source, storePaths=False)
                begun = time.perf_counter()
                search.run()
                seconds += time.perf_counter() - begun
                far = numpy.array(search.getDistances())
                levels[source] = numpy.bincount(far[far < 1e9].astype(int)).tolist()
            return seconds, levels
        if kernel == "pagerank":
            work = kit.centrality.PageRank(graph, 0.85, TOLERANCE)
            work.maxIterations = ROUNDS
            work.norm = kit.centrality.Norm.L1_NORM
        elif kernel == "components":
            work = kit.components.ParallelConnectedComponents(graph, False)
        else:
            return self.triangles()
        begun = time.perf_counter()
        work.run()
        seconds = time.perf_counter() - begun
        self.rounds = work.numberOfIterations() if kernel == "pagerank" else None
        return seconds, work.numberOfComponents() if kernel == "components" else numpy.array(work.scores())

    def triangles(self):
        """Its counter of triangles per edge, which needs numbered edges: those are made before the clock runs."""
        if not self.graph.hasEdgeIds():
            self.graph.indexEdges()
        work = self.kit.sparsification.TriangleEdgeScore(self.graph)
        begun = time.perf_counter()
        work.run()
        return time.perf_counter() - begun, int(sum(work.scores())) // 3


class Ladybug:
    name = "ladybug"

    def __init__(self, ends, vertices, threads, folder):
        import ladybug
        self.version = ladybug.__version__
        path = folder / "ladybug"
        self.database = ladybug.Database(str(path))
        self.session = ladybug.Connection(self.database, num_threads=threads)
        (folder / "v.csv").write_text("\n".join(map(str, range(vertices))) + "\n")
        numpy.savetxt(folder / "e.csv", ends.T, fmt="%d", delimiter=",")
        self.session.execute("create node table v(id int64 primary key)")
        self.session.execute("create rel table e(from v to v)")
        self.session.execute(f"copy v from '{folder / 'v.csv'}'")
        self.session.execute(f"copy e from '{folder / 'e.csv'}'")

    def run(self, kernel, sources):
        if kernel != "bfs":
            return None
        seconds, levels = 0, {}
        for source in sources:
            begun = time.perf_counter()
            rows = self.session.execute(
                f"match (a:v)-[e:e* shortest 1..30]-(b:v) where a.id = {source} return length(e), count(*)").get_all()
            seconds += time.perf_counter() - begun
            # The source is no row, unless a way leads back to it.
            counts = {level: count for level, count in rows}
            levels[source] = [1] + [counts[level] for level in range(1, max(counts) + 1)]
        return seconds, levels


def agree(kernel, ours, theirs):
    if kernel == "pagerank":
        # Both stop when ranks change by less than the tolerance.
        return max(abs(rank - theirs[vertex]) for vertex, rank in ours.items()) < TOLERANCE
    return ours == theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--million", type=float, default=10, help="edges drawn, in millions")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", default=",".join(KERNELS), help="of these some, between commas")
    parser.add_argument("--atoll", default=str(ROOT / "target/release/atoll"))
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "bench/data/graphs")
    args = parser.parse_args()
    unknown = set(args.kernels.split(",")) - set(KERNELS)
    if unknown:
        parser.error(f"--kernels: {', '.join(sorted(unknown))}: take some of {', '.join(KERNELS)}")
    shutil.rmtree(args.data, ignore_errors=True)
    args.data.mkdir(parents=True)
    ends, vertices = rmat(int(args.million * 1e6), args.seed)
    numpy.savetxt(args.data / "edges.txt", ends.T, fmt="%d", delimiter="\t")
    store = args.data / "graph.atoll"
    load = [args.atoll, "load", "graph", str(store), str(args.data / "edges.txt"), "--name", "g", "--undirected"]
    subprocess.run(load, check=True, capture_output=True)
    size = store.stat().st_size
    engines = [
        Atoll("atoll", args.atoll, store, args.threads, 2 * size),
        Atoll("atoll, a tenth in the pool", args.atoll, store, args.threads, max(size // 10, 8 << 20)),
        NetworKit(ends, vertices, args.threads),
        Ladybug(ends, vertices, args.threads, args.data),
    ]
    print(f"{vertices} vertices, {ends.shape[1]} edges, {size >> 20} MiB in the store, {args.threads} threads", flush=True)
    first = engines[0].run("bfs", [])[1]
    sources = list(first)
    times, wrong = {}, []
    for kernel in args.kernels.split(","):
        took, expected = engines[2].run(kernel, sources)
        once = {}
        if took > LONG:
            once[engines[2].name] = took
            times[kernel, engines[2].name] = [took]
        for at in range(args.repeat):
            for engine in engines[at % len(engines):] + engines[:at % len(engines)]:
                if engine.name in once:
                    continue
                ran = engine.run(kernel, sources)
                if ran is None:
                    continue
                times.setdefault((kernel, engine.name), []).append(ran[0])
                if ran[0] > LONG:
                    once[engine.name] = ran[0]
                ours = isinstance(engine, Atoll)
                if not (agree(kernel, ran[1], expected) if ours or kernel == "bfs" else True):
                    wrong.append((kernel, engine.name))
        base = statistics.median(times[kernel, "atoll"])
        for engine in engines[1:]:
            if (kernel, engine.name) in times:
                ratio = statistics.median(times[kernel, engine.name]) / base
                said = ", run once" if engine.name in once else ""
                print(f"{kernel:10} {engine.name:27} {ratio:8.2f} times the time of atoll ({base:.4f} s){said}", flush=True)
        if kernel == "pagerank":
            print(f"{kernel:10} rounds: atoll {engines[0].rounds}, networkit {engines[2].rounds}", flush=True)
    about = machine.describe()
    results = {
        "what": "graphs", "commit": machine.commit(ROOT), "machine": about, "vertices": vertices, "edges": int(ends.shape[1]),
        "threads": args.threads, "seed": args.seed, "store_bytes": size,
        "versions": {engine.name: engine.version for engine in engines[2:]},
        "seconds": [{"kernel": kernel, "engine": name, "seconds": list_} for (kernel, name), list_ in times.items()],
    }
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H%M%S")
    path = ROOT / "bench/results" / f"{stamp}-graphs-{machine.slug(about)}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(path.relative_to(ROOT))
    shutil.rmtree(args.data)
    for kernel, name in sorted(set(wrong)):
        print(f"WRONG: {kernel} of {name} is not what NetworKit finds", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
