//! Queries on a store that is mapped: the answers of the buffer pool, and a clear error where the file is cut.

mod atoll;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use atoll::Folder;

/// Rows of the table.
const ROWS: usize = 300_000;

/// A store with one table, its pages as they are.
fn filled() -> Folder {
    let folder = Folder::new();
    let lines: Vec<String> = (0..ROWS)
        .map(|row| {
            let text = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{row},{},{text:016x}", row * 7919 % 1000)
        })
        .collect();
    folder.write("t.csv", format!("id,k,s\n{}\n", lines.join("\n")));
    let import = ["import", "s.atoll", "t", "t.csv", "--uncompressed"];
    folder.run(&import).succeeded();
    folder
}

#[test]
fn answers_are_those_of_the_buffer_pool() {
    let folder = filled();
    for query in [
        "select count(*), sum(id), min(s), max(s) from t",
        "select k, count(*), sum(id) from t where id % 3 = 0 group by k order by k",
        "select a.id, b.s from t a join t b on a.id = b.k where a.k = 5 order by 1, 2 limit 100",
    ] {
        for executor in ["fused", "stream", "staged"] {
            let arguments = ["sql", "s.atoll", query, "--executor", executor];
            let framed = folder.run(&arguments).succeeded();
            // The pool could not hold a tenth of the table.
            let mapped = [&arguments[..], &["--mapped", "--pool", "8MiB"]].concat();
            assert_eq!(
                folder.run(&mapped).succeeded(),
                framed,
                "{executor}: {query}"
            );
        }
    }
}

#[test]
fn changes_are_seen_and_kept() {
    let folder = filled();
    let change = "update t set k = k + 1 where id < 1000; delete from t where id >= 299000;
                  select count(*), sum(k) from t";
    let changed = folder
        .run(&["sql", "s.atoll", change, "--mapped"])
        .succeeded();
    let kept = folder
        .run(&["sql", "s.atoll", "select count(*), sum(k) from t"])
        .succeeded();
    assert!(changed.ends_with(&kept), "{changed}\n{kept}");
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_an_error_and_no_crash() {
    let folder = filled();
    let path = folder.path("s.atoll");
    let mut child = folder
        .command(&["sql", "s.atoll", "--mapped", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    use std::io::Write;
    writeln!(input, "select sum(id), max(s) from t;").unwrap();
    input.flush().unwrap();
    let mut line = String::new();
    while !line.contains("44999850000") {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "no answer");
    }
    // Half of what was just read, and is mapped, is gone.
    let length = std::fs::metadata(&path).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(length / 2).unwrap();
    writeln!(input, "select sum(id), max(s) from t;").unwrap();
    drop(input);
    drop(output);
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(
        told.contains("was lost") && told.contains("s.atoll"),
        "{told}"
    );
}
