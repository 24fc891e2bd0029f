//! The memory limit bounds what the process really has in memory: within a fifth, and the base that the library states.
//!
//! Each statement runs in a process of its own, whose peak the kernel tells when it ends. The table is several times as
//! large as the limit.

mod atoll;

use std::process::{Child, Stdio};

use atoll::Folder;

/// The limit, as an option and in bytes.
const LIMIT: &str = "64MiB";
const LIMIT_BYTES: u64 = 64 << 20;
/// Rows of the table; with views of its texts, each takes 120 bytes and more.
const ROWS: usize = 2_000_000;

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
    let most = LIMIT_BYTES / 5 * 6 + ::atoll::BASE_BYTES;
    println!("{what}: {} MiB", peak >> 20);
    assert!(peak <= most, "{what}: {} of {} MiB", peak >> 20, most >> 20);
}

/// A folder with a store that has table `t`.
fn filled() -> Folder {
    let folder = Folder::new();
    let create = "create table t (id bigint not null, k bigint, d double, s varchar, n bigint)";
    let insert = format!(
        "insert into t select value, (value * 7919) % {ROWS}, value / 3.0,
         'a text of the row with the number ' || (value * 31) % {ROWS}, value % 100
         from generate_series(0, {ROWS} - 1)"
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
            let format = ["--format", "csv"];
            check(
                &folder,
                &format!("{executor}, {what}"),
                &[&arguments[..], &format].concat(),
            );
        };
        run("result", "select * from t");
        run(
            "scan",
            "select sum(d), max(s), count(*) from t where n < 90",
        );
        run("sort", "select * from t order by s");
        run(
            "groups",
            "select s, count(*), sum(d), max(id) from t group by s",
        );
        run(
            "join",
            "select a.s, b.s, a.d from t a join t b on a.id = b.k where a.n + b.n < 150",
        );
    }
    for format in ["table", "json", "arrow", "parquet"] {
        check(
            &folder,
            format,
            &["sql", "s.atoll", "select * from t", "--format", format],
        );
    }
    check(
        &folder,
        "--json",
        &["sql", "s.atoll", "select * from t", "--json"],
    );
    let sql = |statement: &'static str| ["sql", "s.atoll", statement];
    check(&folder, "copy to csv", &sql("copy t to 't.csv'"));
    check(&folder, "copy to parquet", &sql("copy t to 't.parquet'"));
    check(
        &folder,
        "copy from",
        &sql("create table u as select * from t limit 0; copy u from 't.csv'"),
    );
    check(
        &folder,
        "import of csv",
        &["import", "s.atoll", "v", "t.csv"],
    );
    check(
        &folder,
        "import of parquet",
        &["import", "s.atoll", "w", "t.parquet"],
    );
    check(
        &folder,
        "scan of parquet",
        &sql("select n, max(s) from 't.parquet' group by n"),
    );
    check(
        &folder,
        "insert select",
        &sql("insert into u select * from t"),
    );
    check(
        &folder,
        "create as",
        &sql("create table x as select * from t order by k"),
    );
    check(
        &folder,
        "update",
        &sql("update t set s = s || '!', d = d + 1"),
    );
    check(&folder, "delete", &sql("delete from t where n < 50"));
    let count = folder.run(&[
        "sql",
        "s.atoll",
        "select count(*), min(s), sum(n) from t",
        "--format",
        "csv",
    ]);
    let sum: usize = (50..100).sum::<usize>() * (ROWS / 100);
    assert_eq!(
        count.succeeded().lines().last().unwrap(),
        format!("{},a text of the row with the number 0!,{sum}", ROWS / 2)
    );
}

/// Who reads only the first lines of a large result ends the statement, which says nothing.
#[test]
fn a_closed_pipe_ends_the_statement() {
    let folder = Folder::new();
    let endless = "select * from generate_series(1, 1000000000000)";
    for format in ["table", "csv", "json"] {
        let arguments = ["sql", "s.atoll", endless, "--format", format];
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
