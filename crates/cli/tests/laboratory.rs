//! `atoll lab laq`, with the real binary, on a small store of TPC-H.

mod atoll;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::OnceLock;

use atoll::{Folder, json};
use serde_json::Value;

/// A small store of TPC-H, made once.
fn store() -> &'static Folder {
    static STORE: OnceLock<Folder> = OnceLock::new();
    STORE.get_or_init(|| {
        let folder = Folder::new();
        let path = folder.path("t.atoll");
        let database = ::atoll::Database::create(path, &::atoll::Options::default()).unwrap();
        ::atoll::tpch::load(&database, 0.01, &()).unwrap();
        database.close().unwrap();
        folder
    })
}

fn names(rows: &Value, key: &str) -> Vec<String> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[key].to_string()).collect()
}

/// The times of Q6, by size of blocks and by threads.
fn says_times(query: &Value) {
    let by_block = names(&query["by_block"], "executor");
    assert_eq!(by_block.len(), 9);
    assert_eq!(
        by_block.iter().filter(|name| *name == "\"staged\"").count(),
        3
    );
    assert_eq!(names(&query["by_threads"], "threads").concat(), "121212");
    for row in query["by_threads"].as_array().unwrap() {
        let time = &row["seconds"];
        let (least, median) = (
            time["least"].as_f64().unwrap(),
            time["median"].as_f64().unwrap(),
        );
        assert!(0.0 < least && least <= median, "{row}");
        assert!(row["speedup"].as_f64().unwrap() > 0.0, "{row}");
    }
}

/// The operators of Q6, and the roofs above them.
fn says_operators(query: &Value) {
    // Three filters on stored codes, what they leave read, multiplied, added up.
    let operators = query["operators"].as_array().unwrap();
    let first = &operators[0];
    assert!(
        first["name"]
            .as_str()
            .unwrap()
            .starts_with("filter codes of lineitem (l_shipdate"),
        "{first}"
    );
    assert!(first["page_bytes"].as_u64().unwrap() > 60_000, "{first}");
    for part in ["lift", "fold"] {
        let found = operators
            .iter()
            .any(|one| one["name"].as_str().unwrap().starts_with(part));
        assert!(found, "{part} in {operators:?}");
    }
    for one in operators {
        let share = one["share"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&share), "{one}");
    }
}

/// The tasks of both executors that have some.
fn says_tasks(query: &Value) {
    let tasks = names(&query["tasks"], "executor");
    assert!(tasks.contains(&"\"stream\"".to_string()) && tasks.contains(&"\"staged\"".to_string()));
}

/// Ways to allocate blocks, to pass them on and to share them out, and how many threads were busy.
fn says_what_was_compared(results: &Value, query: &Value) {
    let compared = query["compared"].as_array().unwrap();
    let of = |what: &str| compared.iter().filter(|one| one["what"] == what).count();
    assert_eq!(
        ["allocation", "channels", "threads for a block"].map(of),
        [8, 6, 3]
    );
    let whole = compared.iter().filter(|one| one["way"] == "all at first");
    assert!(
        whole
            .clone()
            .all(|one| one["blocks"][0].as_u64().unwrap() > 2)
    );
    // For each query and executor, the shares of 0, 1 and 2 busy threads.
    let busy = results["busy_threads"].as_array().unwrap();
    assert_eq!(busy.len(), 6);
    for one in busy {
        let shares = one["shares"].as_array().unwrap().iter();
        let shares: Vec<f64> = shares.map(|share| share.as_f64().unwrap()).collect();
        assert!(
            shares.len() == 3 && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-6,
            "{one}"
        );
    }
}

#[test]
fn queries_are_measured_and_reported() {
    let folder = store();
    let own = "return(count(nation.n_name) as n) order by n\n";
    folder.write("own.laq", own);
    let run = folder.run(&[
        "lab",
        "laq",
        "t.atoll",
        "--bare",
        "8",
        "--query",
        "6,own.laq",
        "--blocks",
        "2Ki..8Ki",
        "--threads",
        "1,2",
        "--out",
        "made/here",
        "--json",
    ]);
    let told = json(&run.succeeded());
    let written = std::fs::read_to_string(folder.path("made/here/lab-laq.json")).unwrap();
    assert_eq!(json(&written)["results"], told["results"]);
    assert_eq!(told["emulated"], false);
    let results = &told["results"];
    assert_eq!(results["rounds"], 5);
    assert_eq!(results["ended_early"], false);
    assert_eq!(results["block_rows"].to_string(), "[2048,4096,8192]");
    let query = &results["queries"][0];
    assert_eq!(
        (&query["query"], &query["rows"]),
        (&Value::from("Q6"), &Value::from(1))
    );
    assert_eq!(results["queries"][1]["query"], "own");
    assert_eq!(results["queries"][1]["rows"], 25);

    says_times(query);
    let runs = results["runs"].as_array().unwrap();
    assert!(
        runs.iter()
            .all(|run| run["seconds"].as_array().unwrap().len() == 5)
    );

    // Without reuse each block that is handed on is a new one.
    for row in query["reuse"].as_array().unwrap() {
        assert!(row["blocks_made"].as_u64().unwrap() > 0, "{row}");
        if row["reuse"] == false {
            assert_eq!(row["blocks_reused"], 0, "{row}");
        }
        assert!(row["peak_bytes"].as_f64().unwrap() > 1e6, "{row}");
    }
    says_operators(query);
    says_what_was_compared(results, query);
    says_tasks(query);
    for plan in query["plans"].as_array().unwrap() {
        assert!(plan["local"].as_u64().unwrap() > 0, "{plan}");
    }
    assert_eq!(
        names(&query["plans"], "plan"),
        ["\"obliv\"", "\"shard\"", "\"distr\""]
    );

    let page = std::fs::read_to_string(folder.path("made/here/lab-laq.html")).unwrap();
    for part in [
        "what each thread did, and when",
        "one to many",
        "operations per byte",
        "speed-up",
        "bare loop",
        "Q6: blocks used again",
        "lab laq t.atoll",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script"));
}

#[test]
fn bytes_are_counted_by_node_as_laid_out() {
    let folder = store();
    let run = folder.run(&[
        "lab",
        "laq",
        "t.atoll",
        "--bare",
        "8",
        "--blocks",
        "64Ki",
        "--threads",
        "2",
        "--executors",
        "fused",
        "--machine",
        "2x1",
        "--json",
    ]);
    let told = json(&run.succeeded());
    let plans = &told["results"]["queries"][0]["plans"];
    let bytes = |plan: usize| {
        plans[plan]["local"].as_u64().unwrap() + plans[plan]["remote"].as_u64().unwrap()
    };
    assert_eq!(bytes(0), bytes(1));
    assert_eq!(
        plans[2]["remote"], 0,
        "each node's workers take its own pieces: {plans}"
    );
    assert_eq!(plans[0]["bytes"].as_array().unwrap().len(), 2);
    assert!(folder.path("lab-laq.html").exists());
}

#[test]
fn what_cannot_be_measured_is_refused_in_a_line() {
    let folder = store();
    let lab = |arguments: &[&str]| folder.run(&[&["lab", "laq"], arguments].concat());
    lab(&["t.atoll", "--query", "23"]).failed_usage(&["TPC-H has no query 23"]);
    lab(&["t.atoll", "--blocks", "512..2Ki"]).failed_usage(&["1Ki to 2Mi"]);
    lab(&["t.atoll", "--blocks", "2Mi..64Ki"]).failed_usage(&["is empty"]);
    lab(&["t.atoll", "--threads", "2..1"]).failed_usage(&["is empty"]);
    lab(&["t.atoll", "--threads", "0"]).failed_usage(&["number of threads"]);
    lab(&["t.atoll", "--executors", "fast"]).failed_usage(&["fused, stream, staged"]);
    lab(&["t.atoll", "--repeat", "1"]).failed_usage(&["5..=1000"]);
    lab(&["missing.atoll"]).failed(1, &["missing.atoll"]);
    folder
        .run(&[
            "lab",
            "elastic",
            "--workload",
            "lock,step",
            "--clients",
            "2",
        ])
        .failed(1, &["--clients is for"]);
    lab(&["t.atoll", "--query", "missing.laq"]).failed(1, &["missing.laq"]);
    folder.write("bad.laq", "return(sum(lineitem.l_quantitty))");
    lab(&["t.atoll", "--query", "bad.laq"])
        .failed(1, &["query bad", "line 1, column 21", "l_quantity"]);
    folder.write("no.atoll", "no store");
    lab(&["no.atoll"]).failed(1, &["no.atoll"]);
    lab(&["t.atoll", "--out", "no.atoll/x"]).failed(1, &["no.atoll/x"]);
}

#[test]
fn what_was_measured_until_ctrl_c_is_reported() {
    let folder = store();
    let mut command = folder.command(&[
        "lab",
        "laq",
        "t.atoll",
        "--blocks",
        "64Ki",
        "--threads",
        "1",
        "--executors",
        "fused",
        "--bare",
        "1",
        "--repeat",
        "1000",
        "--out",
        "ended",
    ]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let third = lines.find(|line| line.as_ref().unwrap().contains("round 3 of 1000"));
    assert!(third.is_some());
    // SAFETY: it sends a signal to a child of ours that nobody has waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(
        rest.iter().any(|line| line.contains("ended early")),
        "{rest:?}"
    );
    let told = json(&std::fs::read_to_string(folder.path("ended/lab-laq.json")).unwrap());
    let results = &told["results"];
    assert_eq!(results["ended_early"], true);
    assert!(results["rounds"].as_u64().unwrap() >= 2);
    assert!(
        results["queries"][0]["by_block"][0]["seconds"]["median"]
            .as_f64()
            .unwrap()
            > 0.0
    );
}

/// The share of the first row of a figure with this strategy.
fn busiest(rows: &Value, case: &str, variant: &str) -> f64 {
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| row["case"] == case && row["variant"] == variant);
    row.unwrap()["counted"]["busiest"].as_f64().unwrap()
}

#[test]
fn figures_are_listed_and_run() {
    let folder = Folder::new();
    let told = json(&folder.run(&["lab", "figures", "--json"]).succeeded());
    let figures = told["results"]["figures"].as_array().unwrap();
    assert!(figures.len() > 100, "{}", figures.len());
    let run = folder.run(&["lab", "figures", "T", "--run", "all", "--quick", "--json"]);
    let told = json(&run.succeeded());
    for figure in told["results"]["figures"].as_array().unwrap() {
        if !figure["command"].is_null() {
            assert!(figure["last"]["failed"].is_null(), "{figure}");
            let name = figure["figure"].as_str().unwrap();
            assert!(
                folder
                    .path(&format!("lab-figures/T-{name}/printed.txt"))
                    .exists()
            );
        }
    }
    // Without --run the last results are shown.
    let told = json(&folder.run(&["lab", "figures", "t", "--json"]).succeeded());
    assert!(
        told["results"]["figures"][3]["last"]["seconds"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let run = folder.run(&["lab", "figures", "L", "--run", "q6-matrices", "--json"]);
    let told = json(&run.succeeded());
    let failed = told["results"]["figures"][0]["last"]["failed"]
        .as_str()
        .unwrap();
    assert!(failed.starts_with("NOT RUN: it needs --store"), "{failed}");
    folder
        .run(&["lab", "figures", "T", "--run", "44"])
        .failed(1, &["44"]);
    folder
        .run(&["lab", "figures", "--run", "4"])
        .failed(1, &["lab figures T --run 4"]);
    folder.run(&["lab", "figures", "Z"]).failed_usage(&["Z"]);
}

#[test]
fn the_model_is_held_against_loops() {
    let folder = Folder::new();
    let run = folder.run(&["lab", "model", "--quick", "--threads", "2", "--json"]);
    let told = json(&run.succeeded());
    let held = told["results"]["held"].as_array().unwrap();
    assert_eq!(held.len(), 11);
    for own in held {
        let (model, measured) = (&own["model"]["seconds"], &own["measured"]);
        assert!(model.as_f64().unwrap() > 0.0, "{own}");
        assert_eq!(measured.as_array().unwrap().len(), 2, "{own}");
    }
    let page = std::fs::read_to_string(folder.path("lab-model.html")).unwrap();
    for part in [
        "1.36×",
        "1.32×",
        "opteron-8387",
        "one thread, from memory, 8 steps",
    ] {
        assert!(page.contains(part), "{part}");
    }
    folder
        .run(&["lab", "model", "--threads", "0"])
        .failed_usage(&["0"]);
}

#[test]
fn arrays_are_counted_timed_and_reported() {
    let folder = Folder::new();
    let arguments = [
        "lab", "arrays", "--quick", "--scale", "30", "--gib", "0.002", "--json",
    ];
    let run = folder.run(&arguments);
    let told = json(&run.succeeded());
    let written = std::fs::read_to_string(folder.path("lab-arrays.json")).unwrap();
    let results = &told["results"];
    assert_eq!(&json(&written)["results"], results);
    for figure in ["4", "5", "6", "7", "8", "9", "scheduler", "times"] {
        assert!(results.get(figure).is_some(), "{figure}");
    }
    // The scheduler's bar (T11): within 5 % of the best mapping.
    let scheduler = &results["scheduler"];
    assert!(
        scheduler["worst_busiest"].as_f64().unwrap() <= 1.05,
        "{scheduler}"
    );
    assert!(
        scheduler["worst_remote"].as_f64().unwrap() <= 0.0,
        "{scheduler}"
    );
    // The texts' factors of remote memory, and the order that the model gives the strategies.
    let factors = results["9"]["counted"].as_array().unwrap();
    let factors: Vec<f64> = factors.iter().filter_map(|own| own[1].as_f64()).collect();
    assert!((factors[0] - 1.36).abs() < 0.01 && (factors[1] - 1.32).abs() < 0.01);
    let four = &results["4"]["rows"];
    let seconds = |variant: &str| {
        let rows = four.as_array().unwrap().iter();
        let mut rows = rows.filter(|row| row["case"] == "100 chunks");
        let row = rows.find(|row| row["variant"] == variant).unwrap();
        row["counted"]["seconds"].as_f64().unwrap()
    };
    assert!(seconds("scheduler") < seconds("compact") && seconds("compact") < seconds("sparse"));
    for case in ["10 chunks", "100 chunks", "1000 chunks"] {
        assert!(
            busiest(four, case, "scheduler") < busiest(four, case, "os"),
            "{case}"
        );
    }
    let timed = results["times"]["timed"].as_array().unwrap();
    assert_eq!(
        timed.iter().filter(|one| one["strategy"] == "os").count(),
        8
    );
    let seconds = |one: &Value| one["seconds"].as_array().unwrap().len();
    assert!(timed.iter().all(|one| seconds(one) == 2), "{timed:?}");
    let page = std::fs::read_to_string(folder.path("lab-arrays.html")).unwrap();
    for part in [
        "<svg",
        "subarray(shots, 0, 0, 0, 0, 209, 199, 450, 450)",
        "SAVIME",
        "462",
    ] {
        assert!(page.contains(part), "{part}");
    }
    folder
        .run(&["lab", "arrays", "--figure", "3"])
        .failed_usage(&["no figure from 4 to 9"]);
    folder
        .run(&["lab", "arrays", "--report", "none/a.html"])
        .failed(1, &["none"]);
}

#[test]
fn a_statement_leaves_a_page_of_what_each_thread_did() {
    let folder = store();
    let query =
        "select l_returnflag, sum(l_quantity) from lineitem where l_discount > 0.02 group by 1";
    for executor in ["fused", "stream", "staged"] {
        let page = format!("{executor}.html");
        let how = [
            "sql",
            "t.atoll",
            "--executor",
            executor,
            "--time-line",
            &page,
            query,
        ];
        let run = folder.run(&how);
        assert!(run.stderr.contains(&page), "{}", run.stderr);
        run.succeeded();
        let html = std::fs::read_to_string(folder.path(&page)).unwrap();
        assert!(html.contains("Operators by thread") && html.contains("worker 0, node 0"));
        let raw = std::fs::read_to_string(folder.path(&format!("{executor}.json"))).unwrap();
        let results = &json(&raw)["results"];
        assert!(results["spans"].as_array().unwrap().len() > 2, "{executor}");
        assert!(results["busy"].as_f64().unwrap() > 0.0, "{executor}");
        assert_eq!(results["spans_lost"], 0);
    }
    let program = "return(sum(lift(lineitem.l_quantity)) as q)\n";
    folder
        .run(&["laq", "t.atoll", "--time-line", "laq.html", program])
        .succeeded();
    assert!(folder.path("laq.html").exists());
    folder
        .run(&[
            "sql",
            "t.atoll",
            "--time-line",
            "no/such/folder.html",
            query,
        ])
        .failed(1, &["no/such/folder.html", "make its folder first"]);
    folder
        .run(&["sql", "t.atoll", "--time-line", "none.html", "begin"])
        .failed(1, &["none.html", "no operator ran"]);
}
