//! What a process really has in memory while results leave it: within a fifth of the limit, and the base that the library
//! states.
//!
//! Each statement runs in a process of its own, whose peak the kernel tells when it ends. Gathered before it is written, each
//! of these results would take more.

mod atoll;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

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

/// Bytes in memory that are pages of the program and its libraries.
fn file_pages(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssFile:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
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
    for executor in ["fused", "stream", "staged"] {
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
            "fused",
            "quantiles of texts",
            "select n % 2, percentile_disc(0.5) within group (order by s), median(d) from t group by n % 2",
        ),
        (
            "stream",
            "groups by texts",
            "select s, count(*) from t group by s",
        ),
        ("staged", "distinct", "select distinct s, n from t"),
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

/// A client of PostgreSQL's protocol that does nothing but what a test of memory needs.
struct Client(TcpStream);

impl Client {
    fn new(port: u16) -> Client {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        let mut client = Client(socket);
        client.send(b"\0\0\0\x12\0\x03\0\0user\0ann\0\0");
        client.wait();
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Asks, and takes nothing yet.
    fn ask(&mut self, text: &str) {
        let length = u32::try_from(text.len() + 5).unwrap().to_be_bytes();
        self.send(&[b"Q", &length[..], text.as_bytes(), b"\0"].concat());
    }

    /// Takes everything up to the end of the answer; how many rows there were, and whether there was an error.
    fn wait(&mut self) -> (u64, bool) {
        let (mut rows, mut failed) = (0, false);
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            self.0.read_exact(&mut vec![0; length - 4]).unwrap();
            match head[0] {
                b'D' => rows += 1,
                b'E' => failed = true,
                b'Z' => return (rows, failed),
                _ => {}
            }
        }
    }
}

/// Clients that read slowly or send much, and statements whose rows are theirs to take: a server has no more in memory for
/// them than the limit says.
#[test]
fn the_limit_bounds_what_a_server_has_for_its_clients() {
    let folder = Folder::new();
    let mut command = folder.command(&["serve", "s.atoll", "--create", "--listen", "127.0.0.1:0"]);
    command.args(["--memory-limit", LIMIT, "--threads", "2"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // It stays open: the server may say more.
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let port = line.trim().rsplit(':').next().unwrap().parse().unwrap();
    let mut client = Client::new(port);
    client.ask("create table t (a int, b text)");
    client.wait();
    client.ask("insert into t select x, repeat('reef', 250) from generate_series(1, 100000) a(x)");
    assert!(!client.wait().1);
    // 200 MB, as they come.
    client.ask("prepare p as select b, b || 'x' from t");
    client.wait();
    client.ask("execute p");
    assert_eq!(client.wait(), (100_000, false));
    // Rows that a statement keeps until it is done: it has the memory for them, or is refused.
    client.ask("update t set a = a + 1 returning b || 'x', b || 'y', b || 'z'");
    client.wait();
    // Rows that nobody takes.
    let mut slow: Vec<Client> = (0..8).map(|_| Client::new(port)).collect();
    for client in &mut slow {
        client.ask("select b || 'x', b || 'y', b || 'z' from t");
    }
    std::thread::sleep(Duration::from_secs(2));
    drop(slow);
    // Messages that do not end: 40 of 200 MiB.
    let mut unfinished: Vec<Client> = (0..6).map(|_| Client::new(port)).collect();
    for client in &mut unfinished {
        client.send(&[b"Q", &(200u32 << 20).to_be_bytes()[..]].concat());
        client.send(&vec![b'x'; 40 << 20]);
    }
    client.ask("select count(*) from t");
    assert!(!client.wait().1);
    drop((client, unfinished));
    let code = file_pages(&child);
    child.kill().unwrap();
    let (peak, _) = peak(child);
    // Half of what a program needs at all is its own pages, which are known here: 105 MiB with debug assertions. The rest is
    // threads and buffers of the connections, and what the allocator keeps by thread.
    let most = LIMIT_BYTES / 5 * 6 + ::atoll::BASE_BYTES / 2 + (24 << 20);
    let own = peak.saturating_sub(code);
    assert!(
        own <= most,
        "{} of {} MiB, and {} of the program",
        own >> 20,
        most >> 20,
        code >> 20
    );
}
