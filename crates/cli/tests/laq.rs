//! `atoll laq`, with the real binary.

mod atoll;

use std::io::Write;
use std::process::Stdio;

use atoll::{Folder, json};

fn shop() -> Folder {
    let folder = Folder::new();
    let tables = "create table fish (name varchar, weight decimal(9,2), reef int);
                  insert into fish values ('blenny', 0.10, 1), ('wrasse', 0.45, 2), ('wrasse', 0.30, 1)";
    folder.run(&["sql", "s.atoll", tables]).succeeded();
    folder.write(
        "heavy.laq",
        "// what weighs something\nheavy = filter(fish.weight > 0.2)\nreturn(sum(krao(heavy, fish.name, fish.weight)) as weight)\n",
    );
    folder
}

#[test]
fn programs_run_from_a_file_the_command_line_and_standard_input() {
    let folder = shop();
    let run = folder.run(&[
        "laq",
        "s.atoll",
        "-f",
        "heavy.laq",
        "--json",
        "--threads",
        "2",
    ]);
    let answer = json(&run.succeeded());
    assert_eq!(answer["rows"].to_string(), r#"[["wrasse","0.75"]]"#);
    assert_eq!(answer["columns"][1]["name"], "weight");
    assert_eq!(answer["ran_on"], "algebra");

    let run = folder.run(&[
        "laq",
        "s.atoll",
        "return(count(fish.name)) order by name",
        "--format",
        "csv",
    ]);
    run.succeeded();
    assert!(run.stdout.contains("wrasse,2"), "{}", run.stdout);

    let mut command = folder.command(&["laq", "s.atoll", "--format", "csv"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"return(max(fish.weight) as most)")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "most\n0.45\n");
}

#[test]
fn programs_are_explained() {
    let folder = shop();
    let shown = folder
        .run(&["laq", "s.atoll", "-f", "heavy.laq", "--explain"])
        .succeeded();
    for part in [
        "heavy : filtered bit vector 1 x 3 (rows of fish)",
        "fold by krao(name)",
        "scan fish",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

#[test]
fn how_a_program_ran_is_shown_after_it() {
    let folder = shop();
    let arguments = [
        "laq",
        "s.atoll",
        "-f",
        "heavy.laq",
        "--analyze",
        "--read-only",
    ];
    let shown = folder.run(&arguments).succeeded();
    for part in [
        "fold by krao(name)",
        "stage 0: fused, ",
        "rows: 1",
        "bytes read: ",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let both = folder.run(&["laq", "s.atoll", "return(1)", "--analyze", "--explain"]);
    both.failed_usage(&["cannot be used with"]);
}

#[test]
fn statements_are_explained() {
    let folder = shop();
    folder.write(
        "heavy.sql",
        "select name from fish where weight > 0.2; select 1",
    );
    let shown = folder
        .run(&["sql", "s.atoll", "-f", "heavy.sql", "--explain"])
        .succeeded();
    for part in ["scan fish (", "filter fish.weight", "stage 0"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let ran = folder
        .run(&["sql", "s.atoll", "select count(*) from fish", "--analyze"])
        .succeeded();
    assert!(ran.contains("rows: 1"), "{ran}");
    let again = folder.run(&["sql", "s.atoll", "explain select 1", "--explain"]);
    assert!(again.succeeded().contains("stage 0"));
    let wrong = folder.run(&["sql", "s.atoll", "select nam from fish", "--explain"]);
    wrong.failed(1, &["line 1, column 8"]);
    let both = folder.run(&["sql", "s.atoll", "select 1", "--analyze", "--explain"]);
    both.failed_usage(&["cannot be used with"]);
}

#[test]
fn errors_show_the_line_they_are_in() {
    let folder = shop();
    folder.write(
        "bad.laq",
        "x = filter(fish.reef > 1)\ny = dot(x, fish.nam)\nreturn(y)\n",
    );
    let run = folder.run(&["laq", "s.atoll", "-f", "bad.laq"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(
        run.stderr,
        "atoll: bad.laq: line 2, column 17: `fish` has no attribute `nam`; did you mean name?\n\
         2 | y = dot(x, fish.nam)\n  |                 ^^^\n"
    );
    let run = folder.run(&["laq", "s.atoll", "-f", "bad.laq", "--json"]);
    let error = json(&run.stdout)["error"].to_string();
    assert!(
        run.code == Some(1) && error.contains("line 2, column 17"),
        "{error}"
    );

    let run = folder.run(&["laq", "missing.atoll", "return(1)"]);
    assert!(
        run.code == Some(1) && run.stderr.contains("missing.atoll"),
        "{}",
        run.stderr
    );
    let run = folder.run(&["laq", "s.atoll", "-f", "missing.laq"]);
    assert!(
        run.code == Some(1) && run.stderr.contains("cannot read missing.laq"),
        "{}",
        run.stderr
    );
    folder
        .run(&["laq", "s.atoll", "a", "-f", "heavy.laq"])
        .failed_usage(&["cannot be used with"]);
}
