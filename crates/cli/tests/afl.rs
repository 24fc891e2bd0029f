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
    folder
        .run(&["afl", "s.atoll", "list()", "--explain"])
        .failed_in_text("no query");
}
