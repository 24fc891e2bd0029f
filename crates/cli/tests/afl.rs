//! `atoll afl`, and arrays in SQL.

mod atoll;

use atoll::{Folder, json as parsed};
use serde_json::json;

const DEPTH: &str = "<m:double, station:int32> [lat=-25.420:-25.429:-0.001; year=2000:2004]";

/// A folder with the store `s.atoll`, whose array `depth` has 10 latitudes and 5 years.
fn sea() -> Folder {
    let folder = Folder::new();
    let text = format!(
        "create array empty {DEPTH}; store(apply(build(<m:double> [lat=-25.420:-25.429:-0.001; year=2000:2004], year - 2000), station, 7), depth)"
    );
    folder
        .run(&["afl", "s.atoll", "--create", &text])
        .succeeded();
    folder
}

#[test]
fn statements_create_fill_ask_and_list() {
    let folder = sea();
    let ask = |words: &[&str]| {
        folder
            .run(&[&["afl", "s.atoll"], words].concat())
            .succeeded()
    };
    let listed = parsed(&ask(&["list()", "--json"]));
    let names: Vec<_> = listed["arrays"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| &of["name"])
        .collect();
    assert_eq!(names, [&json!("depth"), &json!("empty")]);
    // Bounds in either order, as they were written.
    let query = "aggregate(subarray(depth, -25.426, 2004, -25.423, 2003), sum(m))";
    for model in ["pipeline", "materialise"] {
        let found = parsed(&ask(&[query, "--model", model, "--json"]));
        assert_eq!(found["cells"].as_array().unwrap().len(), 1, "{model}");
        let values = found["cells"][0].as_array().unwrap();
        assert_eq!(values.last(), Some(&json!(28.0)), "{model}");
    }
    let csv = ask(&[
        "slice(depth, lat, -25.429)",
        "--format",
        "csv",
        "--threads",
        "1",
    ]);
    assert_eq!(csv.lines().count(), 6, "{csv}");
    assert_eq!(csv.lines().nth(1), Some("2000,0.0,7"), "{csv}");
    let shown = ask(&["filter(depth, m > 3)", "--explain"]);
    assert!(
        shown.contains("filter") && !shown.contains("2004"),
        "{shown}"
    );
    let analyzed = ask(&["filter(depth, m > 3)", "--analyze"]);
    assert!(analyzed.contains("10 cells"), "{analyzed}");
}

#[test]
fn an_array_is_a_table_for_sql() {
    let folder = sea();
    let rows = |text: &str| {
        let told = folder.run(&["sql", "s.atoll", text, "--json"]).succeeded();
        parsed(&told)["rows"].clone()
    };
    let query = "select year, count(*), sum(m) from depth where lat between -25.426 and -25.423 group by year order by year limit 2";
    let found = rows(query).to_string();
    assert!(
        found.contains("2000") && found.contains("2001") && !found.contains("2002"),
        "{found}"
    );
}

#[test]
fn each_statement_is_explained() {
    let folder = sea();
    let text = "filter(depth, m > 3); list(); store(opposite(depth), other); create array x <v:int8> [i=0:1]";
    let shown = folder
        .run(&["afl", "s.atoll", text, "--explain"])
        .succeeded();
    // Which threads would read what follows a query.
    let (threads, lines): (Vec<_>, Vec<_>) = shown
        .lines()
        .partition(|line| line.starts_with("threads: "));
    assert!(!threads.is_empty(), "{shown}");
    let expected = [
        "filter(depth)",
        "list: no query, so there is nothing to explain",
        "store(opposite(depth), other)",
        "create array: no query, so there is nothing to explain",
    ];
    assert_eq!(lines, expected);
    let listed = parsed(
        &folder
            .run(&["afl", "s.atoll", "list()", "--json"])
            .succeeded(),
    );
    assert_eq!(
        listed["arrays"].as_array().unwrap().len(),
        2,
        "nothing was made"
    );
    // One that is wrong does not keep the others from being explained.
    let text = "filter(nothing, m > 3); depth";
    let run = folder.run(&["afl", "s.atoll", text, "--explain"]);
    run.failed_in_text("nothing");
}

#[test]
fn an_error_comes_before_anything_is_written() {
    let folder = sea();
    let text = "apply(depth, x, int8(station) % int8(m))";
    for format in ["table", "csv", "json"] {
        let run = folder.run(&["afl", "s.atoll", text, "--format", format, "--threads", "1"]);
        run.failed(1, &["zero"]);
    }
}

#[test]
fn versions_are_listed_with_the_pages_that_they_keep() {
    let folder = sea();
    let afl = |text: &str| folder.run(&["afl", "s.atoll", text, "--json"]).succeeded();
    afl("create version monday of depth; insert(multiply(depth, 2), depth)");
    let array = |words: &[&str]| parsed(&folder.run(words).succeeded());
    let described = array(&["array", "s.atoll", "describe", "--name", "depth", "--json"]);
    assert_eq!(described["versions"], json!(["monday"]));
    assert!(described["kept_pages"].as_u64().unwrap() > 0);
    let listed = parsed(&afl("versions(depth)"));
    assert_eq!(listed["arrays"][0]["name"], "depth@monday");
    let sum = |of: &str| parsed(&afl(&format!("aggregate({of}, sum(m))")))["cells"][0][1].clone();
    assert_eq!(
        (sum("depth"), sum("depth@monday")),
        (json!(200.0), json!(100.0))
    );
    afl("remove(depth@monday)");
    let described = array(&["array", "s.atoll", "describe", "--name", "depth", "--json"]);
    assert_eq!(
        (&described["versions"], &described["kept_pages"]),
        (&json!([]), &json!(0))
    );
}

#[test]
fn wrong_statements_are_named_with_their_place() {
    let folder = sea();
    for (text, wanted) in [
        ("subarray(depth, 1)", "4 bounds"),
        ("filter(depth, deep > 1)", "deep"),
        ("aggregate(nothing, sum(m))", "nothing"),
        ("filter(depth, m >", "column"),
        ("((((", "column"),
        ("create array depth <m:double> [x=0:9]", "exists already"),
        ("subarray(depth, -25.5, 2000, -25.6, 2001)", "lat"),
    ] {
        folder.run(&["afl", "s.atoll", text]).failed_in_text(wanted);
    }
    folder
        .run(&["afl", "none.atoll", "list()"])
        .failed(1, &["none.atoll"]);
    for nothing in ["", " ; ", "/* only a comment */"] {
        folder
            .run(&["afl", "s.atoll", nothing])
            .failed(1, &["nothing was asked", "list()"]);
    }
    // The place is that in the whole text.
    folder
        .run(&[
            "afl",
            "s.atoll",
            "list();\n list(); filter(depth, deep > 1)",
        ])
        .failed_in_text("line 2, column 10");
}
