//! `atoll pin` and `atoll tune` from end to end, with the real binary.

mod atoll;

use atoll::{Folder, json};

#[test]
fn a_dry_run_shows_the_placement() {
    let folder = Folder::new();
    let run = |more: &[&str]| {
        let base = [
            "pin",
            "--dry-run",
            "--machine",
            "xeon-2630",
            "--threads",
            "4",
        ];
        folder.run(&[&base[..], more].concat())
    };
    let object = json(&run(&["--strategy", "sparse", "--json"]).succeeded());
    assert_eq!(
        object["placements"],
        serde_json::json!([[0], [6], [1], [7]])
    );
    assert_eq!(
        (&object["strategy"], &object["classes"]),
        (&"sparse".into(), &8.into())
    );
    let text = run(&["--strategy", "compact"]).succeeded();
    assert!(
        text.contains("thread 3 (group 0): cpu 3 on node 0"),
        "{text}"
    );
    // What is printed can be read again.
    let printed = run(&["--strategy", "shared", "--json"]).succeeded();
    folder.write("shared.json", printed);
    let again = json(&run(&["--strategy", "shared.json", "--json"]).succeeded());
    assert_eq!(again["placements"], serde_json::json!([[0], [1], [6], [7]]));
}

#[test]
fn exhaustive_lists_every_placement() {
    let folder = Folder::new();
    let list = |threads: &str, machine: &str| {
        let arguments = ["pin", "--strategy", "exhaustive", "--dry-run", "--json"];
        folder.run(
            &[
                &arguments[..],
                &["--machine", machine, "--threads", threads],
            ]
            .concat(),
        )
    };
    let object = json(&list("12", "xeon-2630").succeeded());
    assert_eq!(object["classes"], 462);
    assert_eq!(object["all"].as_array().unwrap().len(), 462);
    list("128", "8x16").failed(1, &["too many for exhaustive", "tune"]);
}

#[test]
fn a_command_runs_on_its_placement() {
    let folder = Folder::new();
    folder.write("one.map", "0 # the first cpu\n");
    let script = "sleep 0.5; grep Cpus_allowed_list /proc/self/status";
    let arguments = ["pin", "--strategy", "./one.map", "--threads", "1", "--json"];
    let run = folder.run(&[&arguments[..], &["--", "sh", "-c", script]].concat());
    let object = json(&run.succeeded());
    assert_eq!(
        (&object["exit"], &object["placements"]),
        (&0.into(), &serde_json::json!([[0]]))
    );
    assert!(object["seconds"].as_f64().unwrap() >= 0.5 && object["placed"].as_u64().unwrap() >= 1);
    let allowed = run
        .stderr
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list"));
    assert_eq!(
        allowed.and_then(|line| line.split_whitespace().nth(1)),
        Some("0")
    );
}

/// The runs of a role in what `tune --json` prints.
fn of_role<'a>(object: &'a serde_json::Value, role: &str) -> Vec<&'a serde_json::Value> {
    let history = object["history"].as_array().unwrap().iter();
    history.filter(|run| run["role"] == role).collect()
}

#[test]
fn tune_recommends_nothing_for_a_command_that_does_not_care() {
    let folder = Folder::new();
    let arguments = ["tune", "--json", "--runs", "2", "--", "sleep", "0.03"];
    let object = json(&folder.run(&arguments).succeeded());
    assert_eq!(
        (&object["recommended"], &object["strategy"]),
        (&false.into(), &"os".into())
    );
    let runs = object["runs"].as_u64().unwrap();
    assert!((1..=2).contains(&runs) && object["classes"].as_u64().unwrap() >= runs);
    assert_eq!(of_role(&object, "candidate").len() as u64, runs);
    assert_eq!(of_role(&object, "warm-up").len(), 1);
    assert!(of_role(&object, "baseline").len() >= 3);
    assert!(object["baseline"]["seconds"].as_f64().unwrap() >= 0.03);
    assert!(
        object["baseline"]["joules"].is_null(),
        "what is not measured is no zero"
    );
    // What is recommended can be used: all cpus for each thread.
    folder.write("tuned.json", object.to_string());
    let again = ["pin", "--strategy", "./tuned.json", "--threads", "1"];
    folder
        .run(&[&again[..], &["--", "true"]].concat())
        .succeeded();
    let text = folder.run(&["tune", "--runs", "1", "--", "sleep", "0.03"]);
    assert!(text.succeeded().contains("leave the threads to the system"));
}

/// Takes its time only while it may run on several cpus: on one it is much faster, as a program whose threads share a
/// cache is.
const FASTER_ON_ONE: &str = r#"read -r _ cpus <<END
$(grep Cpus_allowed_list /proc/self/status)
END
case "$cpus" in *[-,]*) sleep 0.3 ;; esac"#;

#[test]
fn tune_recommends_what_is_better_in_fresh_pairs() {
    let folder = Folder::new();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let head = [
        "tune",
        "--json",
        "--runs",
        "1",
        "--pairs",
        "6",
        "--threads",
        "1",
    ];
    let run = folder.run(&[&head[..], &["--", "sh", "-c", FASTER_ON_ONE]].concat());
    let object = json(&run.succeeded());
    let pairs = object["candidate"]["pairs"].as_array().unwrap().len();
    match cpus {
        // The same with a placement and without: nothing may be recommended.
        1 => assert_eq!(object["recommended"], false, "{object}"),
        _ => {
            assert_eq!(
                (&object["recommended"], pairs),
                (&true.into(), 6),
                "{object}"
            );
            assert_eq!(object["strategy"], "tuned");
            assert_eq!(object["placements"], object["candidate"]["placements"]);
            assert!(
                object["candidate"]["median"].as_f64().unwrap() < 0.8,
                "{object}"
            );
        }
    }
}

#[test]
fn a_dry_run_shows_what_would_be_done_and_does_nothing() {
    let folder = Folder::new();
    let pin = [
        "pin",
        "--strategy",
        "compact",
        "--threads",
        "1",
        "--dry-run",
    ];
    let shown = folder
        .run(&[&pin[..], &["--", "touch", "made"]].concat())
        .succeeded();
    assert!(shown.contains("thread 0 (group 0): cpu"), "{shown}");
    assert!(
        shown.contains("nothing is run") && shown.contains("touch made"),
        "{shown}"
    );
    assert!(!folder.path("made").exists());

    let mut sleeper = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let pid = sleeper.id().to_string();
    let cpus = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed_list"));
        line.unwrap().to_owned()
    };
    let before = cpus();
    let shown = folder
        .run(&[&pin[..], &["--pid", &pid]].concat())
        .succeeded();
    assert!(
        shown.contains(&format!("process {pid}")) && shown.contains("(sleep)"),
        "{shown}"
    );
    let object = json(
        &folder
            .run(&[&pin[..], &["--pid", &pid, "--json"]].concat())
            .succeeded(),
    );
    assert_eq!(object["would_change"][0]["thread"], sleeper.id());
    assert_eq!(cpus(), before);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let gone = [&pin[..], &["--pid", "1073741823"]].concat();
    folder.run(&gone).failed(1, &["there is no process"]);
}

#[test]
fn bad_input_is_told_in_one_line() {
    let folder = Folder::new();
    let usage: [&[&str]; 5] = [
        &["pin", "--strategy", "dense", "--dry-run"],
        &["pin", "--strategy", "compact"],
        &["pin", "--strategy", "compact", "--pid", "1", "--", "true"],
        &["tune"],
        &["tune", "--metric", "speed", "--", "true"],
    ];
    for arguments in usage {
        assert_eq!(folder.run(arguments).code, Some(2), "{arguments:?}");
    }
    let fails: [(&[&str], &str); 7] = [
        (&["--dry-run", "--threads", "0"], "0 threads"),
        (&["--dry-run", "--machine", "nonsense"], "unknown machine"),
        (
            &["--dry-run", "--threads", "2", "--groups", "3"],
            "3 groups",
        ),
        (&["--pid", "1073741823"], "there is no process"),
        (&["--", "./no-such-command"], "no-such-command"),
        (&["--", "sh", "-c", "exit 3"], "ended with"),
        (&["--strategy", "./none.map", "--dry-run"], "none.map"),
    ];
    for (arguments, part) in fails {
        let strategy: &[&str] = if arguments.contains(&"--strategy") {
            &["pin"]
        } else {
            &["pin", "--strategy", "compact"]
        };
        let run = folder.run(&[strategy, arguments].concat());
        assert_eq!(run.code, Some(1), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{arguments:?}: {}", run.stderr);
    }
    let groups = [
        "--strategy",
        "shared",
        "--machine",
        "2x6",
        "--threads",
        "12",
    ];
    let shared = [&["pin", "--dry-run", "--groups", "1"], &groups[..]].concat();
    folder
        .run(&shared)
        .failed(1, &["last-level cache", "more groups"]);
}

/// A store with an array of several chunks.
fn shots(folder: &Folder) -> &'static str {
    let load = ["load", "seismic", "s.atoll", "--trials", "--name", "shots"];
    folder
        .run(&[&load[..], &["--chunks", "6", "--chunk", "20,40,40"]].concat())
        .succeeded();
    "aggregate(subarray(shots, 0, 0, 0, 0, 5, 15, 35, 35), count(*), max(speed))"
}

/// The threads of groups that share chunks, and of instances that own them, from outside (rows T4 and T5).
#[test]
fn strategies_place_the_threads_of_array_queries_from_outside() {
    let folder = Folder::new();
    let query = shots(&folder);
    let program = env!("CARGO_BIN_EXE_atoll");
    let expected = folder.run(&["afl", "s.atoll", query, "--format", "csv"]);
    let expected = expected.succeeded();
    // Long enough to be found and placed while it runs.
    let often = vec![query; 1000].join("; ");
    for strategy in ["os", "compact", "sparse", "shared"] {
        for sharing in [["--groups", "1"], ["--groups", "2"], ["--instances", "2"]] {
            let pin = [
                "pin",
                "--strategy",
                strategy,
                "--threads",
                "2",
                "--groups",
                "1",
                "--skip",
                "1",
                "--json",
                "--",
            ];
            let afl = [
                program,
                "afl",
                "s.atoll",
                often.as_str(),
                "--affinity",
                "off",
                "--threads",
                "2",
                "--format",
                "csv",
            ];
            let run = folder.run(&[&pin[..], &afl, &sharing].concat());
            let object = json(&run.succeeded());
            assert_eq!(object["exit"], 0, "{strategy} {sharing:?}");
            assert!(object["placed"].as_u64().unwrap() >= 2, "{object}");
            assert!(run.stderr.contains(expected.trim_end()), "{}", run.stderr);
        }
    }
    let more = [
        "afl",
        "s.atoll",
        query,
        "--threads",
        "1",
        "--instances",
        "2",
    ];
    folder.run(&more).failed(1, &["2 instances", "--threads"]);
}

/// Which threads would best read what, and what that takes by a model (row T11).
#[test]
fn the_threads_of_an_array_query_are_explained() {
    let folder = Folder::new();
    let query = shots(&folder);
    let shown = folder.run(&[
        "afl",
        "s.atoll",
        query,
        "--machine",
        "xeon-2630",
        "--threads",
        "12",
        "--explain",
    ]);
    let shown = shown.succeeded();
    assert!(
        shown.contains("threads: ") && shown.contains("of 6 chunks"),
        "{shown}"
    );
    assert!(
        shown.contains("node 0, ") && shown.contains("node 1, "),
        "{shown}"
    );
    let choices = shown.lines().filter(|line| line.contains("J by a model"));
    let choices: Vec<&str> = choices.collect();
    assert!(
        choices[0].starts_with("threads: 6, as quick as can be, take"),
        "{shown}"
    );
    let ends = |line: &&str| line.ends_with("by a model of xeon-2630");
    assert!(choices.iter().all(ends), "{shown}");
}

/// The same inside a program: each strategy's cpus are those of the workers, and change no result.
#[test]
fn strategies_place_the_threads_of_array_queries_in_process() {
    use placement::{Site, Strategy, Threads, apply};
    use workers::{Layout, Place, Workers};

    let folder = Folder::new();
    let query = shots(&folder);
    let options = store::Options {
        access: store::Access::Read,
        ..store::Options::default()
    };
    let store = store::Store::open(folder.path("s.atoll"), &options).unwrap();
    let plan = afl::compile(query, &store.snapshot()).unwrap();
    let live = topology::Machine::live().unwrap();
    let site = Site::new(&live);
    let count = site.cpus().min(4);
    let workers = Workers::new(Layout::of(&live, &live, count, true)).unwrap();
    if !workers.notes().is_empty() {
        return notrun::not_run(format!(
            "threads cannot be bound here: {:?}",
            workers.notes()
        ));
    }
    let run = |run: array::Run| {
        let plan = plan.clone();
        let ran = workers.block_on(async move { plan.run(&run).await?.to_block() });
        ran.unwrap().column(0).unwrap().get(0)
    };
    let expected = run(array::Run::new());
    for strategy in [Strategy::Compact, Strategy::Sparse, Strategy::Shared] {
        let threads = Threads::in_groups(count, 1).unwrap();
        let placement = strategy.place(&site, &threads).unwrap();
        let cpus: Vec<u32> = placement
            .sets()
            .iter()
            .filter_map(|set| set.iter().next())
            .collect();
        let place = |&cpu: &u32| Place {
            node: live.node_of_cpu(cpu).unwrap(),
            cpu,
        };
        workers
            .place(&cpus.iter().map(place).collect::<Vec<_>>())
            .unwrap();
        for groups in 1..=count {
            let shared = array::Run::new().on(&workers, groups, count / groups);
            assert_eq!(run(shared), expected, "{strategy}, {groups} groups");
        }
        let instances = [workers.clone(), workers.clone()];
        assert_eq!(run(array::Run::new().on_instances(&instances, 2)), expected);
        let mut wanted = cpus;
        wanted.sort_unstable();
        let bound = || -> Vec<u32> {
            let threads = workers.thread_ids();
            let sets = threads
                .iter()
                .map(|&thread| apply::cpus_of(thread as i32).unwrap());
            let mut cpus: Vec<u32> = sets
                .flat_map(|set| set.iter().collect::<Vec<_>>())
                .collect();
            cpus.sort_unstable();
            cpus
        };
        // They move as their tasks suspend.
        let begun = std::time::Instant::now();
        while bound() != wanted && begun.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        assert_eq!(bound(), wanted, "{strategy}");
    }
}

#[test]
fn statements_are_kept_to_some_of_the_nodes() {
    let folder = Folder::new();
    let on = |nodes: &[&str], statement: &str| {
        let sql = ["sql", "s.atoll", "--create", "--machine", "4x1", "--json"];
        folder.run(&[&sql[..], nodes, &[statement]].concat())
    };
    on(&[], "create table t as select * from range(300000)").succeeded();
    let analyze = "explain analyze select sum(value) from t";
    let nodes = |text: &str| text.matches("read").count();
    let all = on(&[], analyze).succeeded();
    let some = on(&["--nodes", "1,3"], analyze).succeeded();
    assert!(all.contains("node 3 read") && nodes(&all) > nodes(&some));
    assert!(
        some.contains("node 1 read") && !some.contains("node 2 read"),
        "{some}"
    );
    let sum = on(&["--nodes", "2"], "select sum(value) as s from t").succeeded();
    assert!(sum.contains("44999850000"), "{sum}");
    on(&["--nodes", "0,4"], "select 1").failed(1, &["no node 4", "0 to 3"]);
    on(&["--nodes", "0", "--affinity", "off"], "select 1").failed(1, &["--affinity on"]);
    for wrong in ["", "x", "2-1", "0-999", "-1"] {
        on(&[&format!("--nodes={wrong}")], "select 1").failed_usage(&["are no nodes"]);
    }
}

#[test]
fn energy_is_estimated_where_nothing_counts_it() {
    let folder = Folder::new();
    let run = folder.run(&[
        "tune",
        "--metric",
        "energy",
        "--runs",
        "2",
        "--pairs",
        "6",
        "--threads",
        "1",
        "--json",
        "--",
        "sleep",
        "0.05",
    ]);
    let object = json(&run.succeeded());
    // Hardware that counts is believed instead.
    if object["energy_estimated"] == true {
        assert!(
            run.stderr.contains("does not count joules"),
            "{}",
            run.stderr
        );
    }
    let joules = object["baseline"]["joules"].as_f64().unwrap();
    assert!(joules > 0.0, "{object}");
}
