//! `atoll govern`, `atoll top`, `atoll man`.

mod atoll;

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use atoll::{Folder, json};
use serde_json::Value;

/// The objects of lines.
fn lines(text: &str) -> Vec<Value> {
    let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    text.lines().map(object).collect()
}

/// A process to be governed; it ends with this.
struct Idle(Child);

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A decision says what it was made of.
fn says_all(decision: &Value) {
    for field in [
        "time",
        "readings",
        "place",
        "transitions",
        "action",
        "cpus",
        "why",
        "decision_seconds",
    ] {
        assert!(!decision[field].is_null(), "{field} in {decision}");
    }
    let busy = &decision["readings"]["busy"];
    assert_eq!(busy["unit"], "cpus");
    assert!(busy["source"].is_string() && busy["age_seconds"].is_number());
}

#[test]
fn a_command_is_governed_until_it_ends() {
    let folder = Folder::new();
    let run = folder.run(&[
        "govern",
        "--state",
        "state",
        "--settle",
        "1ms",
        "--period",
        "20ms",
        "--trace",
        "t.jsonl",
        "--core-watts",
        "20",
        "--json",
        "--",
        "sh",
        "-c",
        "sleep 1; echo done",
    ]);
    let mut decisions = lines(&run.succeeded());
    let spent = decisions.pop().unwrap()["spent"][0].clone();
    let number = |field: &str| spent[field].as_f64().unwrap();
    assert!(
        number("seconds") > 0.5 && number("core_seconds") >= number("used"),
        "{spent}"
    );
    assert_eq!(spent["energy"]["estimate"], true);
    assert_eq!(spent["power"]["core_watts"], 20.0);
    assert_eq!(
        spent["energy"]["cpu_joules"].as_f64().unwrap(),
        number("used") * 20.0
    );
    assert!(
        run.stderr.contains("done"),
        "its output goes aside: {}",
        run.stderr
    );
    assert!(decisions.len() >= 2);
    decisions.iter().for_each(says_all);
    assert_eq!(decisions[0]["action"], "allocate");
    assert_eq!(decisions[0]["cpus"].as_array().unwrap().len(), 1);
    let again = folder.run(&["govern", "replay", "t.jsonl", "--json"]);
    let again = lines(&again.succeeded());
    let cpus = |of: &[Value]| of.iter().map(|d| d["cpus"].clone()).collect::<Vec<_>>();
    assert_eq!(cpus(&again), cpus(&decisions));
    let plain = folder.run(&[
        "govern", "replay", "t.jsonl", "--mode", "dense", "--plain", "--all",
    ]);
    assert_eq!(plain.succeeded().lines().count(), decisions.len());
    let failed = folder.run(&["govern", "--state", "state", "--", "sh", "-c", "exit 3"]);
    assert_eq!(failed.code, Some(1));
    assert!(
        failed.stderr.contains("exit status: 3"),
        "{}",
        failed.stderr
    );
}

#[test]
fn a_process_is_seen_by_top_and_put_back_by_undo() {
    let folder = Folder::new();
    let idle = Idle(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = idle.0.id().to_string();
    let mut governor = folder
        .command(&["govern", "--pid", &pid, "--state", "state"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let look = || {
        json(
            &folder
                .run(&["top", "--json", "--interval", "10ms", "--state", "state"])
                .succeeded(),
        )
    };
    let limit = Instant::now() + Duration::from_secs(120);
    let target = loop {
        let seen = look();
        assert!(seen["nodes"][0]["cpus"].is_array(), "{seen}");
        let target = seen["governors"][0]["targets"][0].clone();
        if target["last"].is_object() {
            break target;
        }
        assert!(Instant::now() < limit, "{seen}");
    };
    assert_eq!(target["target"], format!("process {pid}"));
    let text = folder
        .run(&["top", "--once", "--interval", "10ms", "--state", "state"])
        .succeeded();
    assert!(
        text.contains(&format!("A process {pid}")) && text.contains("busy"),
        "{text}"
    );
    assert!(
        text.contains("core-seconds used") && text.contains("estimated"),
        "{text}"
    );
    let second = folder.run(&["govern", "--pid", &pid, "--state", "state"]);
    assert_eq!(second.code, Some(1));
    assert!(
        second.stderr.contains("governed already"),
        "{}",
        second.stderr
    );
    // Somebody has to collect it for it to be gone.
    let waiter = std::thread::spawn(move || governor.wait().unwrap());
    let undone = json(
        &folder
            .run(&["govern", "undo", "--state", "state", "--json"])
            .succeeded(),
    );
    assert_eq!(
        undone["undone"][0]["target"],
        format!("process {pid}"),
        "{undone}"
    );
    assert!(
        waiter.join().unwrap().success(),
        "it ends well when it is asked to"
    );
    let nothing = folder
        .run(&["govern", "undo", "--state", "state"])
        .succeeded();
    assert!(nothing.contains("nothing is governed"), "{nothing}");
}

/// What a database counts of itself is read by who governs it from outside.
#[test]
fn a_database_says_what_it_does() {
    let folder = Folder::new();
    let made = folder.run(&["sql", "s.atoll", "create table t (n bigint)"]);
    made.succeeded();
    let mut command = folder.command(&["sql", "s.atoll", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut database = Idle(command.spawn().unwrap());
    let pid = database.0.id().to_string();
    let mut to = database.0.stdin.take().unwrap();
    // It ends when the database does.
    std::thread::spawn(move || {
        while writeln!(to, "select count(*) from t;").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let begun = Instant::now();
    loop {
        let run = folder.run(&[
            "govern",
            "--pid",
            &pid,
            "--state",
            "state",
            "--dry-run",
            "--throughput",
            "atoll-statements",
            "--for",
            "1s",
            "--period",
            "50ms",
            "--all",
            "--json",
        ]);
        let mut decisions = lines(&run.succeeded());
        assert!(decisions.pop().unwrap()["spent"].is_array());
        let rates = decisions.iter().map(|one| &one["readings"]["throughput"]);
        let mut rates = rates.filter(|rate| rate["value"].as_f64().is_some_and(|rate| rate > 0.0));
        if let Some(rate) = rates.next() {
            assert_eq!(rate["source"], "Atoll's own counter");
            assert_eq!(rate["unit"], "statements per second");
            break;
        }
        // It may take long to start.
        assert!(begun.elapsed() < Duration::from_secs(60), "{decisions:?}");
    }
}

#[test]
fn what_is_typed_wrong_is_said() {
    let folder = Folder::new();
    folder.run(&["govern"]).failed_usage(&["--name"]);
    folder
        .run(&["govern", "--pid", "1", "--", "true"])
        .failed_usage(&["alone"]);
    folder
        .run(&["govern", "--pid", "1", "--weight", "1,2"])
        .failed_usage(&["--weight"]);
    folder
        .run(&["govern", "--pid", "1", "--mode", "wide"])
        .failed_usage(&["sparse, dense, adaptive"]);
    folder
        .run(&["govern", "--pid", "1", "--throughput", "x"])
        .failed_usage(&["postgres:CONNECTION"]);
    folder
        .run(&["govern", "--pid", "1", "--min-cores", "0"])
        .failed_usage(&["min_cores"]);
    folder
        .run(&[
            "govern",
            "--pid",
            "1",
            "--min-cores",
            "3",
            "--max-cores",
            "2",
        ])
        .failed_usage(&["max_cores 2 is below min_cores 3"]);
}

#[test]
fn root_is_shown_what_a_name_stands_for_before_it_is_governed() {
    if !governor_live::is_root() {
        return notrun::not_run("only root reaches the processes of others, and is asked");
    }
    let folder = Folder::new();
    // A name of its own, so that no other test's processes have it.
    let name = format!("nap{}", std::process::id() % 100_000);
    let program = folder.path(&name);
    std::fs::copy("/bin/sleep", &program).unwrap();
    let mut child = std::process::Command::new(&program)
        .arg("60")
        .spawn()
        .unwrap();
    let govern = ["govern", "--state", "s", "--name", &name, "--for", "300ms"];
    let run = folder.run(&govern);
    run.failed(
        1,
        &[
            "--yes",
            &format!("process {} of user root", child.id()),
            "60",
        ],
    );
    let cpus = |pid: u32| placement::apply::cpus_of(pid.cast_signed()).unwrap();
    let before = cpus(child.id());
    let run = folder.run(&[&govern[..], &["--dry-run"]].concat());
    run.succeeded();
    let run = folder.run(&[&govern[..], &["--yes"]].concat());
    assert!(run.stderr.contains("as before"), "{}", run.stderr);
    run.succeeded();
    assert_eq!(cpus(child.id()), before);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_net_is_shown_as_matrices() {
    let run = Folder::new().run(&["govern", "net", "--format", "matrix"]);
    for part in ["Pre: what", "Post: what", "Post - Pre", "Provision", "t7"] {
        assert!(run.stdout.contains(part), "{}", run.stdout);
    }
    run.succeeded();
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::new();
    folder.write("bad.jsonl", "{\"time\": 1}\n");
    folder.write("bad.json", "{\"th_min\": 80}");
    folder.write("bad.toml", "x = 1");
    let run = folder.run(&[
        "govern",
        "--state",
        "s",
        "--min-cores",
        "99999",
        "--settle",
        "1ms",
        "--",
        "true",
    ]);
    assert!(
        run.stderr.contains("at least 99999 cores"),
        "{}",
        run.stderr
    );
    run.succeeded();
    let cases: [(&[&str], &str); 8] = [
        (
            &["govern", "--state", "s", "--name", "no-such-one"][..],
            "no-such-one",
        ),
        (
            &["govern", "--state", "s", "--pid", "1073741823"],
            "1073741823",
        ),
        (
            &["govern", "--state", "s", "--", "/no/such/program"],
            "/no/such/program",
        ),
        (&["govern", "--policy", "bad.json", "--pid", "1"], "th_min"),
        (
            &["govern", "--policy", "none.json", "--pid", "1"],
            "none.json",
        ),
        (
            &["govern", "replay", "bad.jsonl"],
            "line 1: it is no decision",
        ),
        (&["govern", "replay", "none.jsonl"], "none.jsonl"),
        (&["govern", "replay", "bad.json"], "bad.json"),
    ];
    for (words, part) in cases {
        let run = folder.run(words);
        assert_eq!(run.code, Some(1), "{words:?}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{words:?}: {}", run.stderr);
        assert_eq!(
            run.stderr.trim_end().lines().count(),
            1,
            "{words:?}: {}",
            run.stderr
        );
    }
}

#[test]
fn nets_and_manual_pages() {
    let folder = Folder::new();
    let net = folder.run(&["govern", "net"]).succeeded();
    folder.write("net.toml", &net);
    let run = folder.run(&[
        "govern", "--state", "s", "--net", "net.toml", "--settle", "1ms", "--", "sleep", "0.2",
    ]);
    assert!(run.succeeded().contains("it starts with 1"));
    for (format, part) in [("dot", "digraph"), ("pnml", "<pnml")] {
        let drawn = folder
            .run(&["govern", "net", "--format", format])
            .succeeded();
        assert!(drawn.contains(part), "{drawn}");
    }
    folder.run(&["man", "pages"]).succeeded();
    let page = std::fs::read_to_string(folder.path("pages/atoll-govern.1")).unwrap();
    assert!(
        page.contains("throughput") && !page.contains("guard"),
        "{page}"
    );
}

/// A systemd that says which group a unit has, and keeps what it is asked for; it changes nothing.
const SYSTEMCTL: &str = r#"#!/bin/sh
case "$*" in
    *ControlGroup*) echo / ;;
    *AllowedCPUs\ --value*) echo "$ALLOWED" ;;
    set-property*) echo "$@" >>"$SAID" ;;
    *) exit 1 ;;
esac
"#;

#[test]
fn a_unit_is_governed_by_its_property() {
    use std::os::unix::fs::PermissionsExt;
    let groups = [
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/cpuset/cgroup.procs",
    ];
    if !groups
        .iter()
        .any(|file| std::path::Path::new(file).exists())
    {
        return notrun::not_run("no hierarchy of control groups is mounted");
    }
    let folder = Folder::new();
    let program = folder.path("systemctl");
    std::fs::write(&program, SYSTEMCTL).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let said = folder.path("said");
    // The last cpu there is, which is not what it would begin with by itself.
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let allowed = online.trim().rsplit([',', '-']).next().unwrap().to_owned();
    let mut places = vec![program.parent().unwrap().to_owned()];
    places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let run = |words: &[&str]| {
        let mut command = folder.command(words);
        command.env("PATH", std::env::join_paths(&places).unwrap());
        command.env("SAID", &said).env("ALLOWED", &allowed);
        command.output().unwrap()
    };
    let words = [
        "govern",
        "--unit",
        "db.service",
        "--state",
        "state",
        "--for",
        "500ms",
    ];
    let dry = run(&[&words[..], &["--dry-run"]].concat());
    assert!(
        dry.status.success(),
        "{}",
        String::from_utf8_lossy(&dry.stderr)
    );
    assert!(!said.exists(), "nothing is changed");
    let ran = run(&words);
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let said = std::fs::read_to_string(&said).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let set = "set-property --runtime -- db.service AllowedCPUs=";
    assert!(
        lines.len() >= 2 && lines.iter().all(|line| line.starts_with(set)),
        "{said}"
    );
    assert!(
        lines.iter().all(|line| *line == format!("{set}{allowed}")),
        "what it is allowed from the start on, and as before at the end: {said}"
    );
}
