//! Several processes with one store.

mod atoll;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use ::atoll::{Access, Database, Options};
use atoll::Folder;

const STORE: &str = "reef.atoll";

fn with_a_table() -> Folder {
    let folder = Folder::new();
    let made = "create table coral (n int); insert into coral values (1)";
    folder.run(&["sql", STORE, "--create", made]).succeeded();
    folder
}

/// A process that runs statements as they come and is idle in between.
struct Idle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Idle {
    fn start(folder: &Folder) -> Idle {
        let mut command = folder.command(&["sql", STORE, "--json"]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Idle {
            child,
            input,
            output,
        }
    }

    /// What comes of a statement, as text.
    fn run(&mut self, statement: &str) -> String {
        writeln!(self.input, "{statement};").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn sum(&mut self) -> i64 {
        let answer = atoll::json(&self.run("select sum(n) as s from coral"));
        answer["rows"][0][0]
            .as_i64()
            .or_else(|| answer["rows"][0]["s"].as_i64())
            .unwrap_or_else(|| panic!("{answer}"))
    }

    fn end(self) {
        drop(self.input);
        let mut child = self.child;
        assert!(child.wait().unwrap().success());
    }
}

/// Whoever waits for the next statement keeps nobody out, sees what others commit, and goes on writing.
#[test]
fn idle_processes_keep_nobody_from_writing() {
    let folder = with_a_table();
    let (mut first, mut second) = (Idle::start(&folder), Idle::start(&folder));
    assert_eq!((first.sum(), second.sum()), (1, 1));
    let insert = |n: i64| format!("insert into coral values ({n})");
    folder.run(&["sql", STORE, &insert(10)]).succeeded();
    assert_eq!((first.sum(), second.sum()), (11, 11));
    first.run(&insert(100));
    assert_eq!((first.sum(), second.sum()), (111, 111));
    second.run(&insert(1_000));
    second.run(&insert(10_000));
    first.run(&insert(100_000));
    folder.write("more.csv", "n\n1000000\n");
    folder
        .run(&["import", STORE, "coral", "more.csv", "--append"])
        .succeeded();
    assert_eq!((first.sum(), second.sum()), (1_111_111, 1_111_111));
    first.end();
    second.end();
    let checked = folder.run(&["pages", STORE, "check"]).succeeded();
    assert!(
        checked.contains("0 problems") || checked.contains("no problem"),
        "{checked}"
    );
}

fn writer(folder: &Folder) -> Database {
    let mut options = Options::default();
    options.access = Access::Write;
    Database::open(folder.path(STORE), &options).unwrap()
}

#[test]
fn who_writes_is_named_and_can_be_waited_for_or_read_beside() {
    let folder = with_a_table();
    let database = writer(&folder);
    let insert = "insert into coral values (2)";
    let process = format!("process {}", std::process::id());
    folder
        .run(&["sql", STORE, insert])
        .failed(1, &[STORE, &process, "is writing", "wait"]);
    folder.write("more.csv", "n\n3\n");
    folder
        .run(&["import", STORE, "coral", "more.csv", "--append"])
        .failed(1, &[STORE, &process]);
    let short = folder.run(&["sql", STORE, insert, "--wait", "100ms"]);
    assert_eq!(short.code, Some(1), "{}", short.stderr);
    assert!(short.stderr.contains("at most"), "{}", short.stderr);
    folder
        .run(&["sql", STORE, insert, "--wait", "soon"])
        .failed_usage(&["soon"]);
    let count = "select count(*) as n from coral";
    let read = |arguments: &[&str]| {
        let text = folder.run(arguments).succeeded();
        assert!(text.contains('1'), "{text}");
    };
    read(&["sql", STORE, count, "--format", "csv"]);
    read(&["sql", STORE, count, "--format", "csv", "--read-only"]);
    let letting_go = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(database);
    });
    let waited = folder.run(&["sql", STORE, insert, "--wait", "1min"]);
    letting_go.join().unwrap();
    waited.succeeded();
    assert!(waited.stderr.contains("waiting for"), "{}", waited.stderr);
}
