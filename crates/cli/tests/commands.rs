//! Every command from end to end, with the real binary.

mod atoll;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use atoll::{Folder, json};

#[test]
fn quickstart_builds_queries_and_reuses() {
    let folder = Folder::new();
    let run = folder.run(&[
        "quickstart",
        "--scale",
        "0.01",
        "--store",
        "t.atoll",
        "--repeat",
        "1",
        "--json",
    ]);
    let first = json(&run.succeeded());
    for member in [
        "store",
        "scale",
        "load_seconds",
        "store_bytes",
        "raw_bytes",
        "queries",
    ] {
        assert!(!first[member].is_null(), "{member} is missing");
    }
    assert_eq!(
        (&first["scale"], &first["reused"]),
        (&0.01.into(), &false.into())
    );
    let queries = first["queries"].as_array().unwrap();
    assert_eq!(queries.len(), 22);
    for (at, query) in queries.iter().enumerate() {
        assert_eq!(query["query"], at + 1);
        let number = |member: &str| query[member].as_f64().unwrap();
        assert!(number("seconds") > 0.0 && number("rows") >= 1.0);
        assert!(number("bytes") > 0.0 && number("local_bytes") <= number("bytes"));
    }
    assert!(run.stderr.contains("lineitem"), "progress: {}", run.stderr);

    let again = folder.run(&[
        "quickstart",
        "--scale",
        "0.01",
        "--store",
        "t.atoll",
        "--repeat",
        "1",
    ]);
    let text = again.succeeded();
    assert!(again.stderr.contains("used as it is"), "{}", again.stderr);
    assert!(
        text.contains("Q22") && text.contains("atoll sql t.atoll"),
        "{text}"
    );

    let other = folder.run(&["quickstart", "--scale", "0.02", "--store", "t.atoll"]);
    other.failed(1, &["t.atoll", "scale 0.01", "--store"]);
}

#[test]
fn topology_draws_and_describes() {
    let folder = Folder::new();
    for machine in [
        "live",
        "opteron-8387",
        "xeon-4114",
        "xeon-2630",
        "xeon-4657l",
        "4x4",
    ] {
        let text = folder.run(&["topology", "--machine", machine]).succeeded();
        assert!(text.contains("node 0"), "{machine}: {text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "wider than 80: {text}"
        );
        let object = json(
            &folder
                .run(&["topology", "--machine", machine, "--json"])
                .succeeded(),
        );
        assert!(
            object["nodes"]
                .as_array()
                .is_some_and(|nodes| !nodes.is_empty()),
            "{object}"
        );
    }
    folder
        .run(&["topology", "--machine", "nonsense"])
        .failed(1, &["nonsense", "opteron-8387"]);
}

#[test]
fn lab_machine_says_what_is_wrong_or_missing() {
    let folder = Folder::new();
    let refused = |options: &[&str], parts: &[&str]| {
        let words = [&["lab", "machine"], options, &["--", "true"]].concat();
        folder.run(&words).failed(1, parts);
    };
    refused(&["--machine", "nonsense"], &["nonsense", "opteron-8387"]);
    refused(&["--nodes", "200"], &["200 nodes", "at most"]);
    refused(&["--nodes", "0"], &["node:0"]);
    refused(&["--mem", "1"], &["1 MiB", "at least"]);
    assert_eq!(folder.run(&["lab", "machine"]).code, Some(2));
    assert_eq!(
        folder
            .run(&["lab", "machine", "--limit", "0", "--", "true"])
            .code,
        Some(2)
    );

    let mut command = folder.command(&["lab", "machine", "--mem", "64", "--", "true"]);
    let output = command.env("PATH", folder.path("empty")).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("apt-get install") && error.contains("qemu-system-x86"),
        "{error}"
    );
}

#[test]
fn sql_writes_every_format() {
    let folder = Folder::new();
    let create = "create table t (a bigint, b varchar, c decimal(9,2), d date, e double);
                  insert into t values (9007199254740993, 'x,\"y\"', 1.50, date '2024-02-29', 'NaN'), (1, null, null, null, 0.5)";
    folder.run(&["sql", "s.atoll", create]).succeeded();
    let select = "select * from t order by a";
    let csv = folder
        .run(&["sql", "s.atoll", select, "--format", "csv"])
        .succeeded();
    assert_eq!(
        csv,
        "a,b,c,d,e\n1,,,,0.5\n9007199254740993,\"x,\"\"y\"\"\",1.50,2024-02-29,NaN\n"
    );
    let objects = json(
        &folder
            .run(&["sql", "s.atoll", select, "--format", "json"])
            .succeeded(),
    );
    assert_eq!(
        objects[0],
        serde_json::json!({"a": 1, "b": null, "c": null, "d": null, "e": 0.5})
    );
    assert_eq!(objects[1]["a"], "9007199254740993");
    let object = json(
        &folder
            .run(&["sql", "s.atoll", select, "--json"])
            .succeeded(),
    );
    let wanted = serde_json::json!([
        [1, null, null, null, 0.5],
        ["9007199254740993", "x,\"y\"", "1.50", "2024-02-29", "NaN"]
    ]);
    assert_eq!(object["rows"], wanted);
    assert_eq!(object["columns"][2]["name"], "c");
    assert!(object["columns"][2]["type"].is_string() && object["ran_on"].is_string());
    assert!(object["seconds"].as_f64().unwrap() > 0.0 && object["bytes"][0][0].is_u64());
    let table = folder.run(&["sql", "s.atoll", select]).succeeded();
    assert!(
        table.contains("NULL") && table.ends_with("2 rows\n"),
        "{table}"
    );

    // What it writes it reads.
    for (format, file) in [
        ("parquet", "o.parquet"),
        ("arrow", "o.arrow"),
        ("csv", "o.csv"),
    ] {
        folder
            .run(&[
                "sql", "s.atoll", select, "--format", format, "--output", file,
            ])
            .succeeded();
        folder.run(&["import", "s.atoll", format, file]).succeeded();
        let count = folder.run(&[
            "sql",
            "s.atoll",
            &format!("select a, c from \"{format}\" order by a"),
            "--format",
            "csv",
        ]);
        assert!(
            count
                .succeeded()
                .starts_with("a,c\n1,\n9007199254740993,1.5"),
            "{format}"
        );
    }
}

#[test]
fn statements_on_standard_input_are_answered_as_they_come() {
    let folder = Folder::new();
    let mut child = folder
        .command(&["sql", "s.atoll", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |text: &str| {
        input.write_all(text.as_bytes()).unwrap();
        // Not answered before the next is read: this would wait for ever otherwise.
        json(&lines.next().unwrap().unwrap())
    };
    assert_eq!(
        ask("create table t (a int);\n")["rows"],
        serde_json::json!([])
    );
    assert_eq!(ask("insert into t\n values (1), (2);\n")["changed"], 2);
    assert!(
        ask("select b from t;\n")["error"]
            .as_str()
            .unwrap()
            .contains("\"b\"")
    );
    assert_eq!(ask("select sum(a) from t;\n")["rows"][0][0], 3);
    drop(input);
    assert_eq!(
        child.wait().unwrap().code(),
        Some(1),
        "one statement failed"
    );
}

#[test]
fn statements_come_from_files_too() {
    let folder = Folder::new();
    folder.write("all.sql", "create table t (a int);\n-- a comment; with a semicolon\ninsert into t values (7);\nselect a from t;");
    let run = folder.run(&[
        "sql", "s.atoll", "-f", "all.sql", "--format", "csv", "--timing",
    ]);
    assert_eq!(run.succeeded(), "a\n7\n");
    assert!(run.stderr.contains("planning"), "{}", run.stderr);
    folder.write("wrong.sql", "select 1;\nselect\n  nothing from t;");
    folder
        .run(&["sql", "s.atoll", "-f", "wrong.sql"])
        .failed(1, &["line 3", "nothing"]);
}

#[test]
fn pages_shows_and_checks() {
    let folder = Folder::new();
    folder.write("a.csv", format!("a,b\n{}", "1,one\n2,two\n".repeat(1000)));
    folder.run(&["import", "s.atoll", "t", "a.csv"]).succeeded();
    let stat = json(
        &folder
            .run(&["pages", "s.atoll", "stat", "--json"])
            .succeeded(),
    );
    assert!(
        stat["pages"]["pages"].as_u64().unwrap() >= 2 && stat["file_bytes"].as_u64().unwrap() > 0,
        "{stat}"
    );
    assert_eq!(stat["blocks_by_node"], serde_json::json!([1]));
    assert!(
        folder
            .run(&["pages", "s.atoll", "stat"])
            .succeeded()
            .contains("values")
    );
    let check = json(
        &folder
            .run(&["pages", "s.atoll", "check", "--json"])
            .succeeded(),
    );
    assert_eq!(check["problems"], serde_json::json!([]));

    let dump = folder.run(&["pages", "s.atoll", "dump"]).succeeded();
    assert!(dump.contains("t.a\n") && dump.contains("t.b"), "{dump}");
    let dump = json(
        &folder
            .run(&["pages", "s.atoll", "dump", "--json"])
            .succeeded(),
    );
    let pages = dump["pages"].as_array().unwrap();
    assert_eq!(pages.len() as u64, stat["pages"]["pages"].as_u64().unwrap());
    let number = |page: &serde_json::Value, member: &str| page[member].as_u64().unwrap();
    for pair in pages.windows(2) {
        let end = number(&pair[0], "offset") + number(&pair[0], "stored_bytes");
        assert!(end <= number(&pair[1], "offset"), "{pair:?}");
    }
    let stored: u64 = pages.iter().map(|page| number(page, "stored_bytes")).sum();
    assert_eq!(stored, number(&stat["pages"], "stored_bytes"));

    // Every byte of the pages' part of the file is covered by some checksum.
    let mut bytes = std::fs::read(folder.path("s.atoll")).unwrap();
    let place = bytes.len() - 4096;
    for byte in &mut bytes[place..] {
        *byte ^= 0x10;
    }
    std::fs::write(folder.path("s.atoll"), bytes).unwrap();
    folder
        .run(&["pages", "s.atoll", "check"])
        .failed(1, &["s.atoll"]);
}

#[test]
fn a_damaged_log_is_given_up_only_by_repair() {
    let folder = Folder::new();
    let path = folder.path("r.pages");
    let options = ::atoll::PageOptions {
        page_size: 4096,
        ..Default::default()
    };
    let store = ::atoll::PageStore::create(&path, &options).unwrap();
    for _ in 0..2 {
        let mut batch = store.begin().unwrap();
        batch.alloc().unwrap();
        batch.commit().unwrap();
    }
    // Not closed: the last two commits are in the log.
    drop(store);
    let log = folder.path("r.pages.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    for what in ["stat", "check"] {
        folder.run(&["pages", "r.pages", what]).failed(
            1,
            &[
                "r.pages.log",
                "log record of version 3",
                "atoll pages STORE repair",
            ],
        );
    }
    assert!(
        std::fs::read(&log).unwrap() == bytes,
        "nothing is written over it"
    );
    let text = folder.run(&["pages", "r.pages", "repair"]).succeeded();
    assert!(text.contains("pages read"), "{text}");
    let kept = std::fs::read(folder.path("r.pages.log.damaged")).unwrap();
    assert!(kept == bytes, "a copy is kept");
    let stat = json(
        &folder
            .run(&["pages", "r.pages", "stat", "--json"])
            .succeeded(),
    );
    assert_eq!(stat["version"], 2);
}

#[test]
fn pages_knows_stores_of_raw_pages() {
    let folder = Folder::new();
    let path = folder.path("r.pages");
    let options = ::atoll::PageOptions {
        page_size: 4096,
        ..Default::default()
    };
    let store = ::atoll::PageStore::create(&path, &options).unwrap();
    let mut batch = store.begin().unwrap();
    let pages: Vec<u32> = (0..3).map(|_| batch.alloc().unwrap()).collect();
    batch.write(pages[2], &[7; 4096]).unwrap();
    batch.release(pages[1]).unwrap();
    batch.commit().unwrap();
    store.close().unwrap();

    let look = |what| {
        json(
            &folder
                .run(&["pages", "r.pages", what, "--json"])
                .succeeded(),
        )
    };
    let stat = look("stat");
    assert_eq!(
        (&stat["page_size"], &stat["allocated"]),
        (&4096.into(), &3.into())
    );
    assert_eq!(
        look("dump")["allocated"],
        serde_json::json!([[0, 1], [3, 3]])
    );
    assert_eq!(look("check")["problems"], serde_json::json!([]));
    for (what, says) in [
        ("stat", "3 allocated"),
        ("dump", "protected"),
        ("check", "pages read"),
    ] {
        let text = folder.run(&["pages", "r.pages", what]).succeeded();
        assert!(text.contains(says), "{text}");
    }
    folder
        .run(&["sql", "r.pages", "select 1"])
        .failed(1, &["r.pages", "raw pages", "atoll pages"]);

    folder
        .run(&["sql", "s.atoll", "create table t (a int)"])
        .succeeded();
    let error = ::atoll::PageStore::open(folder.path("s.atoll"), &options).unwrap_err();
    assert!(
        error.to_string().contains("open it as a database"),
        "{error}"
    );
}

#[test]
fn affinity_and_cold_caches_change_no_answer() {
    let folder = Folder::new();
    folder
        .run(&[
            "sql",
            "s.atoll",
            "create table t as select * from range(100000)",
        ])
        .succeeded();
    let query = "select count(*), sum(value) from t; select max(value) from t";
    let warm = folder.run(&["sql", "s.atoll", query]).succeeded();
    assert!(warm.contains("4999950000"), "{warm}");
    for affinity in ["on", "off"] {
        for cache in ["warm", "cold"] {
            let asked = [
                "sql",
                "s.atoll",
                query,
                "--affinity",
                affinity,
                "--cache",
                cache,
            ];
            assert_eq!(folder.run(&asked).succeeded(), warm, "{asked:?}");
        }
    }
    let dropped = folder.run(&["sql", "s.atoll", query, "--cache", "cold-system"]);
    match dropped.code {
        Some(0) => assert_eq!(dropped.stdout, warm),
        _ => dropped.failed(1, &["drop_caches", "root"]),
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = Folder::new();
    for wrong in [
        &["nothing"][..],
        &[],
        &["sql", "--create"],
        &["import", "s.atoll"],
        &["quickstart", "--scale", "0"],
        &["sql", "s.atoll", "select 1", "--pool", "1XB"],
        &["import", "s.atoll", "t", "f.csv", "--append", "--replace"],
        &["sql", "s.atoll", "select 1", "--format", "xml"],
        &["import", "s.atoll", "t", "f.csv", "--foreign-key", "a=b"],
    ] {
        assert_eq!(folder.run(wrong).code, Some(2), "{wrong:?}");
    }
    assert!(
        folder
            .run(&["--version"])
            .succeeded()
            .starts_with("atoll 0.")
    );
    assert!(folder.run(&["--help"]).succeeded().contains("quickstart"));
}

#[test]
fn a_closed_pipe_is_quiet() {
    let folder = Folder::new();
    let query = "select * from generate_series(1, 300000)";
    let many = "with recursive n as (select 1 as a union all select a + 1 from n where a < 20000) select a from n";
    let text = if folder.run(&["sql", "s.atoll", "--create", query]).code == Some(0) {
        query
    } else {
        many
    };
    let mut child = folder
        .command(&["sql", "s.atoll", text, "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(
        (
            ended.status.code(),
            String::from_utf8_lossy(&ended.stderr).as_ref()
        ),
        (Some(0), "")
    );
}

#[test]
fn a_store_keeps_a_plan() {
    let folder = Folder::new();
    folder
        .run(&[
            "sql",
            "s.atoll",
            "create table t (a int); insert into t values (1), (2)",
        ])
        .succeeded();
    let plan = |options: &[&str]| {
        let query = ["sql", "s.atoll", "explain analyze select sum(a) from t"];
        let shown = folder.run(&[&query, options].concat()).succeeded();
        let plans = ["obliv", "shard", "distr"];
        plans.map(|plan| shown.contains(&format!("executor, plan {plan}")))
    };
    assert_eq!(plan(&[]), [false, true, false]);
    folder.run(&["set", "s.atoll", "plan=distr"]).succeeded();
    assert_eq!(plan(&[]), [false, false, true]);
    assert_eq!(plan(&["--plan", "obliv"]), [true, false, false]);
    let shown = folder.run(&["set", "s.atoll", "--json"]).succeeded();
    assert_eq!(json(&shown)["plan"], "distr");
    let wrong = folder.run(&["set", "s.atoll", "plan=fast"]);
    wrong.failed(1, &["fast", "obliv, shard and distr"]);
    let wrong = folder.run(&["set", "s.atoll", "colour=red"]);
    wrong.failed(1, &["colour", "plan"]);
    folder
        .run(&["set", "none.atoll", "plan=shard"])
        .failed(1, &["none.atoll"]);
    folder.run(&["set", "s.atoll", "plan="]).succeeded();
    assert_eq!(plan(&[]), [false, true, false]);
    assert_eq!(
        json(&folder.run(&["set", "s.atoll", "--json"]).succeeded())["plan"],
        json("null")
    );
}
