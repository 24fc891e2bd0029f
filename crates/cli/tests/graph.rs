//! `atoll load graph`, `atoll graph` and the functions of SQL over graphs.

mod atoll;

use std::io::Write;

use atoll::{Folder, json as parsed};
use serde_json::json;

/// Two islands: a ring of six with a chord, and a path of three.
const ISLANDS: &str =
    "# From To\n10 20\n20 30\n30 40\n40 50\n50 60\n60 10\n10 30\n30 10\n\n7 8\n8 9\n9 9\n";

fn islands() -> Folder {
    let folder = Folder::new();
    folder.write("islands.txt", ISLANDS);
    folder
        .run(&["load", "graph", "s.atoll", "islands.txt"])
        .succeeded();
    folder
}

#[test]
fn a_graph_is_loaded_listed_and_searched() {
    let folder = Folder::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(ISLANDS.as_bytes()).unwrap();
    folder.write("islands.txt.gz", gzip.finish().unwrap());
    let load = ["load", "graph", "s.atoll", "islands.txt.gz", "--json"];
    let loaded = parsed(&folder.run(&load).succeeded());
    assert_eq!(
        (&loaded["graph"], &loaded["vertices"]),
        (&json!("islands"), &json!(9))
    );
    assert_eq!(
        (&loaded["edges"], &loaded["loops_dropped"]),
        (&json!(10), &json!(1))
    );
    let list = parsed(
        &folder
            .run(&["graph", "s.atoll", "list", "--json"])
            .succeeded(),
    );
    assert_eq!(list["graphs"][0]["name"], "islands");
    assert_eq!(list["graphs"][0]["directed"], true);

    let search = ["graph", "s.atoll", "bfs", "--source", "10", "--json"];
    let found = parsed(&folder.run(&search).succeeded());
    assert_eq!(found["reached"], 6);
    assert_eq!(found["levels"], json!([1, 2, 1, 1, 1]));
    assert!(found["seconds"].as_f64().unwrap() > 0.0);
    // Offsets, neighbours and ids, each in one page, and no more.
    let reads = found["page_reads"].as_u64().unwrap();
    assert!((1..=8).contains(&reads), "{found}");
    let text = folder
        .run(&["graph", "s.atoll", "bfs", "--source", "7"])
        .succeeded();
    assert!(text.contains("from 7 3 of 9 vertices"), "{text}");
    let many = [
        "graph",
        "s.atoll",
        "bfs",
        "--sources",
        "4",
        "--seed",
        "3",
        "--cold",
        "--json",
    ];
    let many = parsed(&folder.run(&many).succeeded());
    assert_eq!(many["searches"].as_array().unwrap().len(), 4);
    assert_eq!(many["searches"][0]["levels"][0], 1);
}

#[test]
fn kernels_find_what_one_finds_by_hand() {
    let folder = islands();
    let run = |words: &[&str]| {
        let all = [&["graph", "s.atoll"], words, &["--json"]].concat();
        parsed(&folder.run(&all).succeeded())
    };
    let components = run(&["components"]);
    assert_eq!(
        (&components["components"], &components["largest"]),
        (&json!(2), &json!(6))
    );
    assert_eq!(run(&["triangles"])["triangles"], 1);
    let again = run(&["triangles", "--repeat", "3"]);
    assert_eq!(again["triangles"], 1);
    assert_eq!(again["runs"].as_array().unwrap().len(), 3);
    assert_eq!(again["page_reads"], 0, "the first run has read them");
    let ranks = run(&[
        "pagerank",
        "--top",
        "2",
        "--tolerance",
        "1e-9",
        "--rounds",
        "100",
    ]);
    assert_eq!(ranks["ranks"].as_array().unwrap().len(), 2);
    assert_eq!(ranks["ranks"][0]["vertex"], 10);
    let none = run(&["pagerank", "--rounds", "0", "--top", "1"]);
    assert_eq!((&none["rounds"], &none["change"]), (&json!(0), &json!(0.0)));
}

#[test]
fn a_graph_in_another_order_is_the_same_graph() {
    let folder = islands();
    for order in ["degree", "dbg", "rcm", "gorder", "ids"] {
        let words = [
            "graph", "s.atoll", "reorder", "--order", order, "--graph", "islands", "--into",
            "other",
        ];
        let more = ["--replace", "--sources", "2", "--json"];
        let made = parsed(&folder.run(&[&words[..], &more[..]].concat()).succeeded());
        assert_eq!(
            (&made["order"], &made["vertices"]),
            (&json!(order), &json!(9))
        );
        assert!(made["before"]["page_reads"].as_u64().unwrap() > 0, "{made}");
        let search = [
            "graph", "s.atoll", "bfs", "--graph", "other", "--source", "10", "--json",
        ];
        let found = parsed(&folder.run(&search).succeeded());
        assert_eq!(found["levels"], json!([1, 2, 1, 1, 1]), "by {order}");
    }
    let text = folder
        .run(&["graph", "s.atoll", "reorder", "--graph", "islands"])
        .succeeded();
    assert!(
        text.contains("by gorder") && text.contains("before"),
        "{text}"
    );
    folder.run(&["pages", "s.atoll", "check"]).succeeded();
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = islands();
    folder.write("bad.txt", "1 2\n1 x\n");
    folder.write("empty.txt", "# nothing\n");
    for (line, said) in [
        ("load graph n.atoll bad.txt", "bad.txt, line 2"),
        ("load graph n.atoll empty.txt", "has no edges"),
        ("load graph n.atoll absent.txt", "absent.txt"),
        ("load graph n.atoll -", "--name"),
        ("load graph n.atoll bad.txt --page-size 5000", "page"),
        (
            "load graph s.atoll bad.txt --page-size 4KiB",
            "leave out --page-size",
        ),
        ("load graph s.atoll islands.txt", "--replace"),
        (
            "load graph s.atoll islands.txt --memory-limit 1MiB",
            "--memory-limit",
        ),
        ("load graph s.atoll bad.txt --name=", "name"),
        ("graph n.atoll bfs", "no such store"),
        ("graph s.atoll bfs --source 11", "no vertex 11"),
        ("graph s.atoll bfs --graph reef", "no graph 'reef'"),
        ("graph s.atoll bfs --top 3", "--top is for pagerank"),
        ("graph s.atoll pagerank --damping 1.5", "from 0 to 1"),
        (
            "graph s.atoll triangles --pool 64MiB --memory-limit 32MiB",
            "--pool",
        ),
    ] {
        folder.run(&words(line)).failed(1, &[said]);
    }
    assert!(
        !folder.path("n.atoll").exists(),
        "a failed load leaves no store"
    );
    folder
        .run(&words("graph s.atoll dance"))
        .failed_usage(&["dance"]);
    // It is still what it was.
    folder.run(&words("pages s.atoll check")).succeeded();
}

#[test]
fn of_several_graphs_one_is_to_be_chosen() {
    let folder = islands();
    let second = "load graph s.atoll islands.txt --name second --undirected --loops --repeats";
    folder.run(&words(second)).succeeded();
    let choose = "choose one of islands, second with --graph";
    folder.run(&words("graph s.atoll bfs")).failed(1, &[choose]);
    // A store of raw pages has no graphs.
    folder
        .run(&words("pages create r.pages --pages 10"))
        .succeeded();
    folder
        .run(&words("graph r.pages list"))
        .failed(1, &["raw pages"]);
}

#[cfg(feature = "sql")]
#[test]
fn graphs_are_tables_and_searches_are_functions() {
    let folder = islands();
    folder.write("tolls.txt", "1 2 0.5\n2 3 1.25\n");
    let tolls = [
        "load",
        "graph",
        "s.atoll",
        "tolls.txt",
        "--undirected",
        "--weighted",
    ];
    folder.run(&tolls).succeeded();
    let rows = |query: &str| {
        let ran = folder.run(&["sql", "s.atoll", query, "--format", "csv"]);
        ran.succeeded().trim().replace('\n', " ")
    };
    assert_eq!(
        rows("select name, vertices, edges, directed, weighted from graphs() order by name"),
        "name,vertices,edges,directed,weighted islands,9,10,true,false tolls,3,2,false,true"
    );
    assert_eq!(
        rows("select * from bfs('islands', 10) order by vertex"),
        "vertex,level 10,0 20,1 30,1 40,2 50,3 60,4"
    );
    assert_eq!(
        rows("select source, target, weight from edges('tolls') order by 1, 2"),
        "source,target,weight 1,2,0.5 2,1,0.5 2,3,1.25 3,2,1.25"
    );
    assert_eq!(rows("select count(*) from edges('islands')"), "count 10");
    assert_eq!(
        rows("select count(distinct component), min(component) from components('islands')"),
        "count,min 2,7"
    );
    assert_eq!(
        rows("select triangles from triangles('islands')"),
        "triangles 1"
    );
    let sum =
        "select round(sum(rank), 6) as sum from pagerank('islands', tolerance=0e-4, rounds=7)";
    assert_eq!(rows(sum), "sum 1.0");
    // Attributes of vertices are tables beside.
    folder
        .run(&["sql", "s.atoll", "create table town (id bigint, name text)"])
        .succeeded();
    folder
        .run(&[
            "sql",
            "s.atoll",
            "insert into town values (10, 'Alt'), (40, 'Neu')",
        ])
        .succeeded();
    assert_eq!(
        rows(
            "select name, bfs.level, edges_out from bfs('islands', 10) join town on id = vertex join vertices('islands') v using (vertex) order by name"
        ),
        "name,level,edges_out Alt,0,2 Neu,2,1"
    );
    // To explain is not to search.
    let plan = rows("explain select * from bfs('islands', 10)");
    assert!(plan.contains("stage 0"), "{plan}");
}

#[cfg(feature = "sql")]
#[test]
fn calls_that_make_no_sense_are_refused() {
    let folder = islands();
    for (query, said) in [
        ("select * from bfs('islands', 11)", "no vertex 11"),
        ("select * from bfs('reef', 11)", "no graph 'reef'"),
        (
            "select * from bfs('islands')",
            "bfs takes the name of a graph and the id",
        ),
        ("select * from bfs('islands', -1)", "no vertex -1"),
        ("select * from bfs(islands, 1)", "bfs takes"),
        ("select * from triangles('islands', 3)", "triangles takes"),
        (
            "select * from pagerank('islands', damping=2)",
            "from 0 to 1",
        ),
        (
            "select * from pagerank('islands', speed=2)",
            "no option speed",
        ),
        (
            "select * from edges('islands') tablesample (10)",
            "tablesample",
        ),
    ] {
        folder.run(&["sql", "s.atoll", query]).failed(1, &[said]);
    }
}

#[test]
fn ids_of_vertices_have_a_sign() {
    let folder = Folder::new();
    // JSON has what is beyond 2^53 as a text.
    let low = i64::MIN.to_string();
    folder.write("web.txt", format!("-1 2\n2 -3\n-3 -1\n{low} -1\n"));
    let load = ["load", "graph", "s.atoll", "web.txt"];
    folder.run(&load).succeeded();
    let ask = |query: &str| {
        let answer = parsed(&folder.run(&["sql", "s.atoll", query, "--json"]).succeeded());
        answer["rows"].clone()
    };
    assert_eq!(
        ask("select vertex, edges_out, edges_in from vertices('web') order by vertex"),
        json!([[low, 1, 0], [-3, 1, 1], [-1, 1, 2], [2, 1, 1]])
    );
    assert_eq!(
        ask("select source, target from edges('web') order by source"),
        json!([[low, -1], [-3, -1], [-1, 2], [2, -3]])
    );
    assert_eq!(
        ask("select vertex, level from bfs('web', -3) order by level"),
        json!([[-3, 0], [-1, 1], [2, 2]])
    );
    let query = format!("select count(*) from bfs('web', {low})");
    assert_eq!(ask(&query), json!([[4]]));
    assert_eq!(
        ask(
            "select vertex from pagerank('web', tolerance=1e-4, rounds => 3) order by rank limit 1"
        ),
        json!([[low]])
    );
    assert_eq!(
        ask("select count(distinct component) from components('web')"),
        json!([[1]])
    );
    for source in [["--source", "-3"].as_slice(), &["--source=-3"]] {
        let search = [&["graph", "s.atoll", "bfs", "--json"], source].concat();
        let found = parsed(&folder.run(&search).succeeded());
        assert_eq!(
            (&found["source"], &found["reached"]),
            (&json!(-3), &json!(3))
        );
    }
    let absent = ["sql", "s.atoll", "select * from bfs('web', -4)"];
    folder.run(&absent).failed(1, &["has no vertex -4"]);
    let wrong = [
        "sql",
        "s.atoll",
        "select * from pagerank('web', rounds=1e1)",
    ];
    folder.run(&wrong).failed(1, &["not 10."]);
    folder.write("far.txt", "9223372036854775808 1\n");
    let far = ["load", "graph", "s.atoll", "far.txt"];
    folder
        .run(&far)
        .failed(1, &["line 1", "from -9223372036854775808 to"]);
}
