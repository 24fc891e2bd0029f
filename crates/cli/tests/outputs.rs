//! Files of results, stores that are not there, and options that do nothing.

mod atoll;

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use atoll::{Folder, json};

fn with_table() -> Folder {
    let folder = Folder::new();
    folder
        .run(&[
            "sql",
            "s.atoll",
            "create table t (a int, b varchar); insert into t values (1, 'x'), (2, null)",
        ])
        .succeeded();
    folder
}

/// The names in the folder that are not of its store.
fn others(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(".")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with("s.atoll")).collect();
    names.sort();
    names
}

#[test]
fn the_extension_tells_the_format() {
    let folder = with_table();
    let select = "select * from t order by a";
    let write = |more: &[&str]| folder.run(&[&["sql", "s.atoll", select], more].concat());
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    write(&["-o", "o.csv"]).succeeded();
    assert_eq!(read("o.csv"), "a,b\n1,x\n2,\n");
    write(&["-o", "o.JSON"]).succeeded();
    assert_eq!(
        json(&read("o.JSON")),
        serde_json::json!([{"a": 1, "b": "x"}, {"a": 2, "b": null}])
    );
    write(&["-o", "o.txt"]).succeeded();
    assert!(read("o.txt").contains("NULL") && read("o.txt").ends_with("2 rows\n"));
    // What is said wins.
    write(&["-o", "odd.csv", "--format", "json"]).succeeded();
    assert_eq!(json(&read("odd.csv"))[1]["a"], 2);
    write(&["-o", "odd.parquet", "--json"]).succeeded();
    assert_eq!(json(&read("odd.parquet"))["rows"][1][0], 2);
    for name in ["o.arrow", "o.arrows", "o.parquet"] {
        write(&["-o", name]).succeeded();
        let first = std::fs::read(folder.path(name)).unwrap();
        let magic: &[u8] = match name {
            "o.arrow" => b"ARROW1",
            "o.arrows" => b"\xff\xff\xff\xff",
            _ => b"PAR1",
        };
        assert!(first.starts_with(magic), "{name}");
        let table = name.replace('.', "_");
        folder.run(&["import", "s.atoll", &table, name]).succeeded();
        let sum = folder.run(&[
            "sql",
            "s.atoll",
            &format!("select sum(a) as s from {table}"),
            "--format",
            "csv",
        ]);
        assert_eq!(sum.succeeded(), "s\n3\n", "{name}");
    }
    // A name says of a file how it is compressed, whatever is said of its format.
    for name in [
        "o.csv.gz",
        "o.csv.zst",
        "o.csv.bz2",
        "o.csv.xz",
        "o.csv.lz4",
        "o.csv.snappy",
    ] {
        write(&["-o", name]).failed(1, &[name, "compress"]);
        write(&["-o", name, "--format", "csv"]).failed(1, &[name, "compress"]);
        assert!(!folder.path(name).exists());
    }
    write(&["-o", "o.xlsx"]).failed(1, &["o.xlsx", "--format", ".csv"]);
    assert!(!folder.path("o.xlsx").exists());
}

#[test]
fn null_and_empty_texts_differ_in_every_format() {
    let folder = Folder::new();
    let create =
        "create table t (a int, b varchar); insert into t values (1, ''), (2, null), (3, 'x')";
    folder.run(&["sql", "s.atoll", create]).succeeded();
    let select = "select * from t order by a";
    let wanted = "a,b\n1,\"\"\n2,\n3,x\n";
    let csv = folder.run(&["sql", "s.atoll", select, "--format", "csv"]);
    assert_eq!(csv.succeeded(), wanted);
    let rows = folder
        .run(&["sql", "s.atoll", select, "--json"])
        .succeeded();
    assert_eq!(
        json(&rows)["rows"],
        serde_json::json!([[1, ""], [2, null], [3, "x"]])
    );
    let array = folder.run(&["sql", "s.atoll", select, "--format", "json"]);
    assert_eq!(
        json(&array.succeeded()),
        serde_json::json!([{"a": 1, "b": ""}, {"a": 2, "b": null}, {"a": 3, "b": "x"}])
    );
    let plain = folder.run(&[
        "sql",
        "s.atoll",
        "select null as n, '' as e",
        "--format",
        "csv",
    ]);
    assert_eq!(plain.succeeded(), "n,e\n,\"\"\n");
    // As `copy` writes them.
    let copy = format!("copy ({select}) to 'o.csv'");
    folder.run(&["sql", "s.atoll", &copy]).succeeded();
    assert_eq!(
        std::fs::read_to_string(folder.path("o.csv")).unwrap(),
        wanted
    );
    let copy = format!("copy ({select}) to 'n.csv' (null 'x', header false)");
    folder.run(&["sql", "s.atoll", &copy]).succeeded();
    assert_eq!(
        std::fs::read_to_string(folder.path("n.csv")).unwrap(),
        // With another text for NULL an empty one needs no quotes, as in PostgreSQL.
        "1,\n2,x\n3,\"x\"\n"
    );
}

#[test]
fn a_failure_leaves_no_file_or_the_one_before() {
    let folder = with_table();
    folder.write("old.csv", "before\n");
    let big = "select value, 1 / (value - 290000) as q from generate_series(1, 300000) g(value)";
    for (query, file) in [
        ("select nothing from t", "new.csv"),
        ("select nothing from t", "old.csv"),
        (big, "new.csv"),
        (big, "old.csv"),
        (big, "new.parquet"),
        ("select 1; select 2", "new.csv"),
    ] {
        let run = folder.run(&["sql", "s.atoll", query, "-o", file]);
        assert_eq!(run.code, Some(1), "{query} {file}: {}", run.stderr);
        assert_eq!(others(&folder), ["old.csv"], "{query} {file}");
    }
    assert_eq!(
        std::fs::read_to_string(folder.path("old.csv")).unwrap(),
        "before\n"
    );
    folder
        .run(&["sql", "s.atoll", "select 1", "-o", "none/o.csv"])
        .failed(1, &["none/o.csv", "folder"]);
    folder
        .run(&["sql", "s.atoll", "select 1", "-o", "."])
        .failed(1, &["directory"]);

    // A store is no file of results, nor is its log.
    for file in ["s.atoll", "s.atoll.log"] {
        folder
            .run(&["sql", "s.atoll", "select 1", "-o", file])
            .failed(1, &[file, "a store"]);
    }
    folder
        .run(&["sql", "s.atoll", "select * from t"])
        .succeeded();

    // A limit on the size of files stands in for a full disk.
    let mut full = folder.command(&[
        "sql",
        "s.atoll",
        "select value from generate_series(1, 300000) g(value)",
        "-o",
        "new.csv",
    ]);
    // SAFETY: between fork and exec only two system calls are made, both async-signal-safe.
    unsafe {
        full.pre_exec(|| {
            let limit = libc::rlimit {
                rlim_cur: 1 << 20,
                rlim_max: 1 << 20,
            };
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            Ok(())
        });
    }
    let output = full.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.starts_with("atoll: cannot write new.csv: ") && errors.lines().count() == 1,
        "{errors}"
    );
    assert_eq!(others(&folder), ["old.csv"]);
}

#[test]
fn a_full_standard_output_is_told() {
    let folder = with_table();
    for command in [
        &["sql", "s.atoll", "select * from t"][..],
        &["sql", "s.atoll", "select * from t", "--json"],
        &["pages", "s.atoll", "stat"],
        &["pages", "s.atoll", "dump"],
        &["pages", "s.atoll", "check"],
        &["topology"],
        &["set", "s.atoll"],
        &["where", "s.atoll"],
        &["pin", "--strategy", "compact", "--dry-run"],
        &["govern", "net"],
        &["top", "--once", "--interval", "10ms"],
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = folder
            .command(command)
            .stdout(Stdio::from(full))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {errors}");
        assert!(errors.contains("No space left"), "{command:?}: {errors}");
        let closed = folder
            .command(command)
            .stdout(closed_pipe())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&closed.stderr);
        assert_eq!(
            (closed.status.code(), &*errors),
            (Some(0), ""),
            "{command:?}"
        );
    }
}

/// The end for writing of a pipe whose reader has gone.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_mistyped_store_creates_nothing() {
    let folder = with_table();
    let before = others(&folder);
    for command in [
        &["sql", "s.atol", "select * from t"][..],
        &["sql", "s.atol", "insert into t values (3, 'y')"],
        &["sql", "s.atol", "drop table t; create table t (a int)"],
        &["sql", "S"],
        &["sql", "s.atol", "select 1", "--read-only"],
        &["sql", "s.atol", "create table t (a int)", "--read-only"],
        &["laq", "s.atol", "return(sum(t.a))"],
        &["pages", "s.atol", "stat"],
        &["where", "s.atol"],
        &["set", "s.atol"],
    ] {
        folder
            .run(command)
            .failed(1, &[command[1], "no such store", "did you mean s.atoll?"]);
        assert_eq!(others(&folder), before, "{command:?}");
    }
    folder
        .run(&["sql", "none/s.atoll", "select 1"])
        .failed(1, &["there is no folder none"]);

    // What makes a table may make its store, unless it fails.
    folder
        .run(&["sql", "new.atoll", "create table t as select nothing"])
        .failed(1, &["nothing"]);
    assert_eq!(others(&folder), before);
    folder
        .run(&["sql", "new.atoll", "/* first */ create table t (a int)"])
        .succeeded();
    assert!(folder.path("new.atoll").exists());
    folder
        .run(&["sql", "empty.atoll", "--create", "select 1"])
        .succeeded();
    folder.run(&["sql", "empty.atoll", "select 1"]).succeeded();
    folder
        .run(&["sql", "empty.atoll", "--create", "--read-only"])
        .failed_usage(&["--read-only"]);
}

#[test]
fn options_are_there_where_they_act() {
    let folder = with_table();
    for command in ["pages", "where", "import", "set"] {
        let help = folder.run(&[command, "--help"]).succeeded();
        for option in [
            "--executor",
            "--ring",
            "--queue",
            "--channel",
            "--reuse",
            "--tasks",
            "--block",
        ] {
            assert!(
                !help.contains(&format!("{option} ")),
                "atoll {command} {option}"
            );
        }
    }
    let sql = |more: &[&str]| {
        folder.run(
            &[
                &[
                    "sql",
                    "s.atoll",
                    "select sum(a) as s from t",
                    "--format",
                    "csv",
                ],
                more,
            ]
            .concat(),
        )
    };
    for wrong in [
        &["--ring", "3"][..],
        &["--queue", "3", "--executor", "staged"],
        &["--channel", "ring"],
        &["--tasks", "1,2"],
        &["--reuse", "off"],
    ] {
        sql(wrong).failed_usage(&[wrong[0], "--executor"]);
    }
    for right in [
        &[
            "--ring",
            "3",
            "--tasks",
            "1,1",
            "--reuse",
            "off",
            "--executor",
            "staged",
        ][..],
        &[
            "--queue",
            "3",
            "--channel",
            "lock-free",
            "--tasks",
            "1",
            "--executor",
            "stream",
        ],
        &["--block", "4Ki", "--plan", "obliv"],
    ] {
        assert_eq!(sql(right).succeeded(), "s\n3\n", "{right:?}");
    }
}

#[test]
fn failures_of_a_script_name_the_file() {
    let folder = with_table();
    folder.write("wrong.sql", "select 1;\nselect\n  nothing from t;\n");
    folder
        .run(&["sql", "s.atoll", "-f", "wrong.sql"])
        .failed(1, &["wrong.sql: no column \"nothing\" at line 3, column 3"]);
    folder.write("bytes.sql", b"select '\xff\xfe'");
    folder
        .run(&["sql", "s.atoll", "-f", "bytes.sql"])
        .failed(1, &["bytes.sql", "UTF-8"]);
    folder
        .run(&["sql", "s.atoll", "-f", "."])
        .failed(1, &["cannot read ."]);
}

#[test]
fn nothing_is_written_over_a_store() {
    let folder = Folder::new();
    let create = "create table t as select 7 as a";
    folder.run(&["sql", "kept.csv", create]).succeeded();
    let before = std::fs::read(folder.path("kept.csv")).unwrap();
    let copy = ["sql", "kept.csv", "copy t to 'kept.csv'"];
    folder.run(&copy).failed(1, &["kept.csv", "store"]);
    let other = [
        "sql",
        "other.atoll",
        "--create",
        "copy (select 1) to 'kept.csv'",
    ];
    folder.run(&other).failed(1, &["kept.csv", "store"]);
    folder
        .run(&["sql", "kept.csv", "select a from t", "-o", "kept.csv"])
        .failed(1, &["kept.csv", "store"]);
    assert_eq!(std::fs::read(folder.path("kept.csv")).unwrap(), before);
}
