//! The machine as its user sees it.

use std::fs;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use emulator::{Ended, INTERRUPT_STATUS, LIMIT_STATUS, Launch, MACHINE_VARIABLE};

use crate::{run, shape};

/// A shell on a small machine.
fn shell(script: &str) -> Launch {
    Launch::new(shape("2x1", 128), ["sh", "-c", script])
}

#[test]
fn output_exit_status_environment_and_directory_are_passed_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut launch = shell(&format!(
        "pwd; echo \"$WORD ${MACHINE_VARIABLE}\"; echo oops >&2; cat file; exit 7"
    ));
    fs::write(directory.path().join("file"), "from the host\n").unwrap();
    launch.directory = directory.path().to_owned();
    launch.environment.push(("WORD".into(), "a b".into()));
    let run = run(&launch);
    let path = directory.path().display();
    assert_eq!(run.out, format!("{path}\na b 2x1\nfrom the host\n"));
    assert!(run.err.ends_with("oops\n"), "{}", run.err);
    assert_eq!((run.outcome.exit, run.outcome.ended), (7, Ended::Itself));
    assert_eq!((run.outcome.nodes, run.outcome.cores), (2, 2));
    assert!(run.outcome.boot_seconds.unwrap() <= run.outcome.seconds);
}

#[test]
fn a_command_that_is_not_there_is_127_and_one_that_is_killed_137() {
    let run = run(&Launch::new(shape("2x1", 128), ["no-such-command"]));
    assert_eq!(run.outcome.exit, 127);
    assert!(run.err.contains("no-such-command"), "{}", run.err);
    assert_eq!(crate::run(&shell("kill -9 $$")).outcome.exit, 137);
}

#[test]
fn only_the_shared_directory_can_be_written() {
    let (shared, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut launch = shell("echo new > \"$1/file\" && echo new > \"$2/file\" && cat \"$1/file\"");
    launch.command.push("sh".into());
    launch
        .command
        .extend([shared.path(), other.path()].map(|path| path.into()));
    launch.share = Some(shared.path().to_owned());
    let run = run(&launch);
    assert_eq!(
        (run.outcome.exit, run.out.as_str()),
        (0, "new\n"),
        "{}",
        run.err
    );
    let content = fs::read_to_string(shared.path().join("file")).unwrap();
    assert_eq!(content, "new\n");
    assert!(
        !other.path().join("file").exists(),
        "the host must stay as it is"
    );
}

#[test]
fn much_output_arrives_whole() {
    let run = run(&shell("seq 300000"));
    assert_eq!(run.out.lines().count(), 300_000);
    assert!(run.out.ends_with("299999\n300000\n"));
}

#[test]
fn the_time_limit_ends_it() {
    let mut launch = shell("sleep 1000");
    launch.limit = Duration::from_secs(6);
    let begun = Instant::now();
    let run = run(&launch);
    assert_eq!(
        (run.outcome.exit, run.outcome.ended),
        (LIMIT_STATUS, Ended::Limit)
    );
    assert!(
        begun.elapsed() < Duration::from_secs(12),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn it_stops_when_told_and_leaves_nothing_behind() {
    let stop = AtomicBool::new(false);
    let mut launch = shell("sleep 1000");
    let marker = format!("stop-test-{}", std::process::id());
    let shared = tempfile::Builder::new().prefix(&marker).tempdir().unwrap();
    launch.share = Some(shared.path().to_owned());
    let emulators = || {
        let found = Command::new("pgrep")
            .args(["-f", &marker])
            .output()
            .unwrap();
        String::from_utf8_lossy(&found.stdout).lines().count()
    };
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| launch.run(&mut io::sink(), &mut io::sink(), &stop));
        while emulators() == 0 {
            assert!(!run.is_finished(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
        run.join().unwrap().unwrap()
    });
    assert_eq!(
        (outcome.exit, outcome.ended),
        (INTERRUPT_STATUS, Ended::Interrupted)
    );
    assert_eq!(emulators(), 0, "the emulator is still there");
}

#[test]
fn what_is_wrong_with_a_launch_is_named() {
    let refused = |change: fn(&mut Launch)| {
        let mut launch = shell("true");
        change(&mut launch);
        let never = &AtomicBool::new(false);
        let error = launch.run(&mut io::sink(), &mut io::sink(), never);
        error.unwrap_err().to_string()
    };
    let error = refused(|launch| launch.share = Some("/nonexistent/directory".into()));
    assert!(error.contains("/nonexistent/directory"), "{error}");
    let error = refused(|launch| launch.share = Some("/".into()));
    assert!(error.contains("root directory"), "{error}");
    let error = refused(|launch| launch.command.clear());
    assert!(error.contains("command"), "{error}");
}

#[test]
fn hardware_threads_and_shared_caches_are_as_described() {
    let spec = "node:2 core:2 pu:2";
    let script = "grep -h . /sys/devices/system/node/node*/cpulist \
        /sys/devices/system/cpu/cpu3/topology/thread_siblings_list \
        /sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list";
    let run = run(&Launch::new(shape(spec, 128), ["sh", "-c", script]));
    assert_eq!(run.out, "0-3\n4-7\n2-3\n0-3\n");
}
