"""Graphs: the functions of SQL, by name."""

import os
import pathlib
import shutil
import subprocess

import pytest

import atoll

ROOT = pathlib.Path(__file__).parents[3]
PROGRAM = os.environ.get("ATOLL_PROGRAM") or shutil.which("atoll", path=f"{ROOT}/target/debug")


@pytest.fixture
def db(tmp_path):
    if PROGRAM is None:
        pytest.fail("no program to load a graph with: build it, or name it in ATOLL_PROGRAM")
    edges = tmp_path / "web.txt"
    edges.write_text("7 1\n1 2\n2 7\n2 3\n9 10\n")
    store = tmp_path / "web.atoll"
    subprocess.run([PROGRAM, "load", "graph", store, edges, "--undirected"], check=True, capture_output=True)
    with atoll.open(store, threads=2, memory_limit=512 << 20) as db:
        yield db


def test_a_graph(db):
    graph = db.graph("web")
    assert (graph.name, len(graph), graph.directed, graph.weighted) == ("web", 6, False, False)
    assert repr(graph) == "graph web: 6 vertices, 5 edges"
    assert sorted(graph.bfs(7).fetchall()) == [(1, 1), (2, 1), (3, 2), (7, 0)]
    assert graph.triangles() == 1
    assert len({component for _, component in graph.components().fetchall()}) == 2
    assert abs(sum(rank for _, rank in graph.pagerank(rounds=50).fetchall()) - 1) < 1e-9
    assert graph.edges().arrow().num_rows == 10 and graph.vertices().df()["edges_out"].sum() == 10


def test_results_are_tables_of_statements(db):
    reached = db.graph("web").bfs(7)
    assert db.sql("select count(*) from reached where level = 1").fetchone() == (2,)


def test_errors(db):
    with pytest.raises(atoll.ProgrammingError, match="no graph 'nothing'; there are web"):
        db.graph("nothing")
    with pytest.raises(atoll.Error, match="5"):
        db.graph("web").bfs(5).fetchall()
