//! Stores that are missing, damaged, busy or without room; processes that are killed.

mod atoll;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use atoll::Folder;

fn with_table() -> Folder {
    let folder = Folder::new();
    folder
        .run(&[
            "sql",
            "s.atoll",
            "create table t (a int); insert into t values (1), (2), (3)",
        ])
        .succeeded();
    folder
}

#[test]
fn what_is_not_a_store_is_refused() {
    let folder = with_table();
    folder.write(
        "text.atoll",
        "not a store, but long enough to look at ".repeat(1000),
    );
    folder
        .run(&["sql", "text.atoll", "select 1"])
        .failed(1, &["text.atoll", "not an Atoll"]);
    let whole = std::fs::read(folder.path("s.atoll")).unwrap();
    folder.write("cut.atoll", &whole[..whole.len() / 2]);
    std::fs::copy(folder.path("s.atoll.log"), folder.path("cut.atoll.log")).unwrap();
    folder
        .run(&["sql", "cut.atoll", "select * from t"])
        .failed(1, &["cut.atoll"]);
    folder
        .run(&["sql", "none/s.atoll", "create table t (a int)"])
        .failed(1, &["none"]);
    folder
        .run(&["sql", "absent.atoll", "select 1", "--read-only"])
        .failed(1, &["absent.atoll"]);
    folder
        .run(&["pages", "absent.atoll", "stat"])
        .failed(1, &["absent.atoll"]);
}

#[test]
fn unknown_names_are_told_with_their_place() {
    let folder = with_table();
    folder
        .run(&["sql", "s.atoll", "select * from tt"])
        .failed(1, &["tt", "line 1"]);
    folder
        .run(&["sql", "s.atoll", "select b from t"])
        .failed(1, &["\"b\"", "line 1, column 8"]);
    folder.run(&["sql", "s.atoll", "selec 1"]).failed(1, &[]);
}

#[test]
fn impossible_pools_are_refused() {
    let folder = with_table();
    folder
        .run(&["sql", "s.atoll", "select * from t", "--pool", "64KiB"])
        .failed(1, &["too small", "--pool"]);
    folder
        .run(&["sql", "s.atoll", "select 1", "--pool", "900TiB"])
        .failed(1, &["--pool"]);
    folder
        .run(&[
            "sql",
            "s.atoll",
            "select 1",
            "--pool",
            "1GiB",
            "--memory-limit",
            "512MiB",
        ])
        .failed(1, &["--pool"]);
}

#[test]
fn a_store_that_may_only_be_read_is_read() {
    let folder = with_table();
    for name in ["s.atoll", "s.atoll.log"] {
        std::fs::set_permissions(folder.path(name), std::fs::Permissions::from_mode(0o444))
            .unwrap();
    }
    let sum = folder.run(&[
        "sql",
        "s.atoll",
        "select sum(a) as s from t",
        "--read-only",
        "--format",
        "csv",
    ]);
    assert_eq!(sum.succeeded(), "s\n6\n");
    folder
        .run(&["sql", "s.atoll", "insert into t values (4)", "--read-only"])
        .failed(1, &["read"]);
}

/// A limit on the size of files stands in for a full disk: mounting a small one needs privileges.
#[test]
fn a_full_disk_leaves_the_last_commit() {
    let folder = with_table();
    let rows: String = (0..300_000u64)
        .map(|n| format!("{},{}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n * n))
        .collect();
    folder.write("a.csv", rows);
    let mut import = folder.command(&[
        "import",
        "s.atoll",
        "big",
        "a.csv",
        "--schema",
        "a decimal(20,0), b bigint",
    ]);
    // SAFETY: between fork and exec only two system calls are made, both async-signal-safe.
    unsafe {
        import.pre_exec(|| {
            let limit = libc::rlimit {
                rlim_cur: 1 << 20,
                rlim_max: 1 << 20,
            };
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            Ok(())
        });
    }
    let output = import.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors
            .lines()
            .last()
            .is_some_and(|line| line.starts_with("atoll: ") && line.contains("s.atoll")),
        "{errors}"
    );
    let left = folder.run(&[
        "sql",
        "s.atoll",
        "select sum(a) as s from t; select count(*) as n from t",
        "--format",
        "csv",
    ]);
    assert_eq!(left.succeeded(), "s\n6\nn\n3\n");
    folder
        .run(&["sql", "s.atoll", "select * from big"])
        .failed(1, &["big"]);
    folder.run(&["pages", "s.atoll", "check"]).succeeded();
}

#[test]
fn a_killed_import_leaves_the_last_commit() {
    let folder = with_table();
    let rows: String = (0..1_000_000u64)
        .map(|n| format!("{n},name {}\n", n % 1000))
        .collect();
    folder.write("a.csv", rows);
    for wait in [20, 60, 150, 400] {
        let mut import = folder.command(&["import", "s.atoll", "big", "a.csv", "--replace"]);
        let mut import = import
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        import.kill().unwrap();
        import.wait().unwrap();
        let left = folder.run(&[
            "sql",
            "s.atoll",
            "select sum(a) as s from t",
            "--format",
            "csv",
        ]);
        assert_eq!(left.succeeded(), "s\n6\n");
        let big = folder.run(&[
            "sql",
            "s.atoll",
            "select count(*) as n from big",
            "--format",
            "csv",
        ]);
        assert!(
            big.code == Some(1) || big.stdout == "n\n1000000\n",
            "all or nothing: {}",
            big.stdout
        );
        folder.run(&["pages", "s.atoll", "check"]).succeeded();
    }
}

#[test]
fn ctrl_c_stops_an_import_and_keeps_the_last_commit() {
    let folder = with_table();
    let mut load = folder.command(&["quickstart", "--scale", "10", "--store", "big.atoll"]);
    let child = load
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let ended = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{errors}");
    assert!(errors.ends_with("kept\n"), "{errors}");
    assert!(
        !folder.path("big.atoll").exists(),
        "a store that was made for a load that was stopped goes with it"
    );
}
