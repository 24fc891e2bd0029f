//! What a process really has in memory while results leave it: within a fifth of the limit, and the base that the library
//! states.
//!
//! Each statement runs in a process of its own, whose peak the kernel tells when it ends. Gathered before it is written, each
//! of these results would take more.

mod atoll;

use std::process::{Child, Stdio};

use atoll::Folder;

/// The limit, as an option and in bytes.
const LIMIT: &str = "64MiB";
const LIMIT_BYTES: u64 = 64 << 20;
/// Pages of code that a program which is not optimised has more of in memory than a release.
const CODE_BYTES: u64 = if cfg!(debug_assertions) { 16 << 20 } else { 0 };
/// Rows of the table; as cells of a table or values of JSON, each takes a kilobyte.
const ROWS: usize = 400_000;

/// What a process had in memory at most, in bytes, and whether it succeeded.
fn peak(child: Child) -> (u64, bool) {
    let (mut status, pid) = (0, i32::try_from(child.id()).unwrap());
    // SAFETY: all zero is a value of this plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: waits for a child of this process, which nobody else does; both places are there to be written to.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, pid);
    (usage.ru_maxrss as u64 * 1024, status == 0)
}

/// Runs a command under the limit, its output going nowhere, and checks what it had in memory.
#[track_caller]
fn check(folder: &Folder, what: &str, arguments: &[&str]) {
    let mut command = folder.command(arguments);
    command.args(["--memory-limit", LIMIT, "--threads", "2"]);
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let (peak, succeeded) = peak(child);
    assert!(succeeded, "{what}: {arguments:?}");
    let most = LIMIT_BYTES / 5 * 6 + ::atoll::BASE_BYTES + CODE_BYTES;
    assert!(peak <= most, "{what}: {} of {} MiB", peak >> 20, most >> 20);
}

/// A folder with a store that has table `t`.
fn filled() -> Folder {
    let folder = Folder::new();
    let create = "create table t (id bigint not null, k bigint, d double, s varchar, n bigint)";
    let insert = format!(
        "insert into t select value, (value * 7919) % {ROWS}, value / 3.0,
         'a text of the row with the number ' || ((value * 31) % {ROWS}), value % 100
         from generate_series(0, {ROWS} - 1) g(value)"
    );
    folder.run(&["sql", "s.atoll", create]).succeeded();
    check(&folder, "insert of a series", &["sql", "s.atoll", &insert]);
    folder
}

#[test]
fn the_limit_bounds_what_is_in_memory() {
    let folder = filled();
    for executor in ["fused", "stream", "staged", "datafusion"] {
        let run = |what: &str, query: &str| {
            let arguments = ["sql", "s.atoll", query, "--executor", executor];
            check(&folder, &format!("{executor}, {what}"), &arguments);
        };
        run("result", "select * from t");
        run(
            "scan",
            "select sum(d), max(s), count(*) from t where n < 90",
        );
    }
    for format in ["csv", "json", "arrow", "parquet"] {
        let arguments = ["sql", "s.atoll", "select * from t", "--format", format];
        check(&folder, format, &arguments);
    }
    // As many rows as several blocks have, of which some are deleted before.
    let sql = |statement: &'static str| ["sql", "s.atoll", statement];
    check(&folder, "delete", &sql("delete from t where n < 50"));
    check(&folder, "update", &sql("update t set s = s || '!'"));
    check(
        &folder,
        "insert select",
        &sql("insert into t select * from t"),
    );
    let query = "select count(*), min(s), sum(n) from t";
    let found = folder.run(&["sql", "s.atoll", query, "--format", "csv"]);
    let sum = 2 * (50..100).sum::<usize>() * (ROWS / 100);
    let found = found.succeeded();
    let values: Vec<&str> = found.lines().last().unwrap().split(',').collect();
    assert_eq!(values[0], ROWS.to_string());
    assert!(values[1].ends_with('!'), "{found}");
    assert_eq!(values[2], sum.to_string());
}

/// What must keep all rows, groups or sides of a join until the last has come puts them in files.
#[test]
fn the_limit_bounds_what_operators_keep() {
    let folder = filled();
    for (executor, what, query) in [
        (
            "fused",
            "groups by texts",
            "select s, count(*) from t group by s",
        ),
        (
            "fused",
            "groups by numbers",
            "select k, sum(d) from t group by k",
        ),
        ("fused", "distinct", "select distinct s, n from t"),
        (
            "fused",
            "join",
            "select count(*), min(a.s || b.s) from t a join t b on a.s = b.s",
        ),
        ("fused", "sort", "select * from t order by s"),
        (
            "stream",
            "groups by texts",
            "select s, count(*) from t group by s",
        ),
        ("datafusion", "distinct", "select distinct s, n from t"),
    ] {
        let arguments = ["sql", "s.atoll", query, "--executor", executor];
        check(&folder, &format!("{executor}, {what}"), &arguments);
    }
}

#[test]
fn the_limit_bounds_imports() {
    let folder = filled();
    for name in ["t.csv", "t.parquet", "t.json"] {
        let write = ["sql", "s.atoll", "select * from t", "-o", name];
        check(&folder, name, &write);
        let table = &name.replace('.', "_");
        check(
            &folder,
            &format!("import of {name}"),
            &["import", "i.atoll", table, name],
        );
        let sum = format!("select sum(n), count(distinct k) from '{name}'");
        check(
            &folder,
            &format!("{name} in place"),
            &["sql", "s.atoll", &sum],
        );
    }
}

/// Who reads only the first lines of a large result ends the statement, which says nothing.
#[test]
fn a_closed_pipe_ends_the_statement() {
    let folder = Folder::new();
    let endless = "select * from generate_series(1, 1000000000000)";
    for format in ["table", "csv", "json"] {
        let arguments = ["sql", "s.atoll", "--create", endless, "--format", format];
        let mut command = folder.command(&arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 64];
        std::io::Read::read_exact(&mut child.stdout.take().unwrap(), &mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{format}: {:?}", output.status);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{format}");
    }
}
