//! Where memory lies, and processes over time.

mod atoll;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use atoll::{Folder, json};
use serde_json::Value;

/// A process that does nothing, and ends with this.
struct Idle(Child);

impl Idle {
    fn start() -> Idle {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        // Until it is the program itself.
        let name = format!("/proc/{}/comm", child.id());
        while std::fs::read_to_string(&name).unwrap().trim() != "sleep" {
            std::thread::sleep(Duration::from_millis(1));
        }
        Idle(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn numbers(list: &Value) -> Vec<u64> {
    let list = list.as_array().unwrap_or_else(|| panic!("a list: {list}"));
    list.iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn where_a_process_is() {
    let (folder, idle) = (Folder::new(), Idle::start());
    let found = json(
        &folder
            .run(&["where", "--pid", &idle.pid(), "--json"])
            .succeeded(),
    );
    assert_eq!(found["process"].as_u64(), Some(u64::from(idle.0.id())));
    assert_eq!(found["name"], "sleep");
    let bytes = numbers(&found["bytes"]);
    assert_eq!(bytes.len(), numbers(&found["nodes"]).len());
    let total = found["total_bytes"].as_u64().unwrap();
    assert!(total > 0);
    assert_eq!(bytes.iter().sum::<u64>(), total);
    let groups = found["groups"].as_array().unwrap();
    let sum: u64 = groups
        .iter()
        .flat_map(|group| numbers(&group["bytes"]))
        .sum();
    assert_eq!(sum, total);
    assert!(
        groups
            .iter()
            .any(|group| group["name"].as_str().unwrap().ends_with("/sleep"))
    );
    assert_eq!(found["threads"].as_array().unwrap().len(), 1);
    assert_eq!(found["source"], "numa_maps");

    let text = folder.run(&["where", "--pid", &idle.pid()]).succeeded();
    for part in ["sleep (", "stack of the main thread", "total", "1 thread"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let short = folder
        .run(&["where", "--pid", &idle.pid(), "--rows", "1"])
        .succeeded();
    assert!(short.contains("others") && short.lines().count() < text.lines().count());
    let sampled = folder.run(&["where", "--pid", &idle.pid(), "--sample", "4096", "--json"]);
    if sampled.code == Some(0) {
        let sampled = json(&sampled.stdout);
        assert_eq!(sampled["source"], "move_pages");
        assert!(sampled["sampled_addresses"].as_u64().is_some_and(|n| n > 0));
    } else {
        notrun::not_run(&sampled.stderr);
        sampled.failed(1, &["move_pages"]);
    }
}

#[test]
fn what_cannot_be_looked_at_is_told() {
    let folder = Folder::new();
    for command in ["where", "watch"] {
        folder
            .run(&[command, "--pid", "4294967296"])
            .failed_usage(&["4294967296"]);
        folder
            .run(&[command, "--pid", "4194304"])
            .failed(1, &["no process 4194304"]);
    }
    folder.run(&["where"]).failed_usage(&["--pid"]);
    folder
        .run(&["where", "s.atoll", "--pid", "1"])
        .failed_usage(&["--pid"]);
    folder
        .run(&["where", "absent.atoll"])
        .failed(1, &["absent.atoll"]);
    folder.run(&["watch"]).failed_usage(&["--pid"]);
    let own = std::process::id().to_string();
    folder
        .run(&["watch", "--pid", &own, "--interval", "1ms"])
        .failed_usage(&["10ms"]);
    folder
        .run(&["watch", "--pid", &own, "--for", "soon"])
        .failed_usage(&["soon"]);
    folder
        .run(&["watch", "--pid", &own, "--plot", "none/page.html"])
        .failed(1, &["none/page.html"]);
}

/// An interval is watched, and what is told adds up, in each form.
#[test]
fn a_process_is_watched_for_a_time() {
    let (folder, idle) = (Folder::new(), Idle::start());
    let pid = idle.pid();
    let base = [
        "watch",
        "--pid",
        &pid,
        "--interval",
        "50ms",
        "--for",
        "220ms",
    ];
    let with = |more: &[&str]| {
        let all: Vec<&str> = base.iter().chain(more).copied().collect();
        folder.run(&all).succeeded()
    };
    let object = json(&with(&["--json"]));
    let looks = object["looks"].as_array().unwrap();
    assert!((2..=5).contains(&looks.len()), "{}", looks.len());
    let summary = &object["summary"];
    assert_eq!(summary["looks"].as_u64(), Some(looks.len() as u64));
    assert_eq!(summary["end"], "time");
    assert_eq!(summary["name"], "sleep");
    assert_eq!(summary["migrations"].as_u64(), Some(0));
    assert!(summary["mean_load"].as_f64().unwrap() < 0.1);
    for look in looks {
        assert_eq!(look["threads"].as_u64(), Some(1));
        assert!(numbers(&look["memory_bytes"]).iter().sum::<u64>() > 0);
    }
    let lines = with(&["--json-lines"]);
    let lines: Vec<Value> = lines.lines().map(json).collect();
    let (last, looks) = lines.split_last().unwrap();
    assert_eq!(last["summary"]["looks"].as_u64(), Some(looks.len() as u64));
    assert!(
        looks
            .windows(2)
            .all(|pair| pair[0]["seconds"].as_f64() < pair[1]["seconds"].as_f64())
    );
    let text = with(&[]);
    assert!(
        !text.contains('\x1b'),
        "no drawing where there is no terminal: {text:?}"
    );
    for part in ["load", "migrations", "faults", "the time was over"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    with(&["--plot", "page.html"]);
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.contains("Memory by node") && page.contains("<svg"));
    let numbers = json(&std::fs::read_to_string(folder.path("page.json")).unwrap());
    assert_eq!(numbers["results"]["summary"]["name"], "sleep");
}

/// A page made on an emulated machine says so, and no other does.
#[test]
fn the_plots_of_an_emulated_machine_say_so() {
    let (folder, idle) = (Folder::new(), Idle::start());
    let pid = idle.pid();
    for (machine, emulated) in [(None, false), (Some(""), false), (Some("2x2"), true)] {
        let arguments = ["watch", "--pid", &pid, "--for", "100ms", "--plot", "p.html"];
        let mut command = folder.command(&arguments);
        command.env_remove("ATOLL_LAB_MACHINE");
        if let Some(machine) = machine {
            command.env("ATOLL_LAB_MACHINE", machine);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let page = std::fs::read_to_string(folder.path("p.html")).unwrap();
        assert_eq!(page.contains("Emulated machine"), emulated, "{machine:?}");
        let numbers = json(&std::fs::read_to_string(folder.path("p.json")).unwrap());
        assert_eq!(numbers["emulated"], emulated);
        assert_eq!(
            numbers["facts"]["emulated machine"].as_str(),
            machine.filter(|_| emulated)
        );
    }
}

#[test]
fn a_process_that_forks_and_dies_while_it_is_watched() {
    let folder = Folder::new();
    let script = "for i in 1 2 3; do sleep 0.1; done; exit 3";
    let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
    let pid = child.id().to_string();
    let run = folder.run(&[
        "watch",
        "--pid",
        &pid,
        "--interval",
        "20ms",
        "--children",
        "--json",
    ]);
    let object = json(&run.succeeded());
    assert_eq!(object["summary"]["end"], "process ended");
    assert!(
        object["summary"]["processes"].as_u64().unwrap() >= 2,
        "{}",
        object["summary"]
    );
    assert_eq!(child.wait().unwrap().code(), Some(3), "it is not disturbed");
    folder.run(&["where", "--pid", &pid]).failed(1, &[&pid]);
}

/// Ctrl-C ends watching, with the summary.
#[test]
fn interrupted_it_tells_what_it_saw() {
    let (folder, idle) = (Folder::new(), Idle::start());
    let mut command = folder.command(&["watch", "--pid", &idle.pid(), "--interval", "20ms"]);
    let watch = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(600));
    // SAFETY: a signal to a process of ours.
    assert_eq!(unsafe { libc::kill(watch.id() as i32, libc::SIGINT) }, 0);
    let output = watch.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("interrupted") && text.contains("migrations"),
        "{text}"
    );
}

/// Tables `p` and `t`: `t` refers to `p`, has a dictionary, and three rows in no block yet.
fn store_of_all_parts(folder: &Folder) {
    let parents: String = (0..2000).map(|n| format!("{}\n", n * 7 % 2000)).collect();
    folder.write("p.csv", parents);
    let rows: String = (0..20_000)
        .map(|n| format!("{},text {},colour {}\n", n * 13 % 2000, n * 7919, n % 30))
        .collect();
    folder.write("t.csv", rows);
    let import = |words: &[&str]| {
        let all = ["import", "s.atoll"].iter().chain(words);
        let all: Vec<&str> = all.chain(&["--header", "no"]).copied().collect();
        folder.run(&all).succeeded();
    };
    import(&["p", "p.csv", "--schema", "create table p (id bigint)"]);
    import(&[
        "t",
        "t.csv",
        "--schema",
        "create table t (a bigint, b varchar, c varchar)",
        "--foreign-key",
        "a=p(id)",
    ]);
    let insert = "insert into t values (1, 'x', 'y'), (2, 'x', 'y'), (3, 'x', 'y')";
    folder.run(&["sql", "s.atoll", insert]).succeeded();
}

#[test]
fn where_a_store_is() {
    let folder = Folder::new();
    store_of_all_parts(&folder);
    let look = |more: &[&str]| {
        let words = ["where", "s.atoll", "--json"].iter().chain(more);
        json(&folder.run(&words.copied().collect::<Vec<_>>()).succeeded())
    };
    let sum = |list: &Value| numbers(list).iter().sum::<u64>();
    let cold = look(&[]);
    let named = |list: &str, field: &str| -> Vec<String> {
        let all = cold[list].as_array().unwrap().iter();
        all.map(|part| format!("{}.{}", part["table"], part[field]).replace('"', ""))
            .collect()
    };
    assert_eq!(named("columns", "column"), ["p.id", "t.a", "t.b", "t.c"]);
    assert_eq!(named("dictionaries", "column"), ["t.c"]);
    assert_eq!(
        cold["row_indexes"],
        Value::Array(vec![]),
        "only 0.1 made them"
    );
    assert_eq!(named("tails", "rows"), ["t.3"]);
    assert!(cold["tails"][0]["bytes"].as_u64() > Some(3 * 8));
    for list in ["columns", "dictionaries"] {
        for part in cold[list].as_array().unwrap() {
            assert!(sum(&part["pages"]) > 0, "{list}: {part}");
        }
    }
    assert_eq!(sum(&cold["resident_pages"]), 0);
    // No page of the store is left out.
    let stat = json(
        &folder
            .run(&["pages", "s.atoll", "stat", "--json"])
            .succeeded(),
    );
    assert_eq!(stat["pages"]["pages"].as_u64(), Some(sum(&cold["pages"])));

    let warm = look(&["--load"]);
    assert_eq!(warm["pages"], cold["pages"]);
    assert_eq!(warm["resident_pages"], warm["pages"]);
    // As on a machine of two nodes.
    let spread = look(&["--machine", "2x2"]);
    assert_eq!(numbers(&spread["pages"]).len(), 2);
    assert_eq!(sum(&spread["pages"]), sum(&cold["pages"]));
    let text = folder.run(&["where", "s.atoll", "--load"]).succeeded();
    for part in [
        "1 dictionary",
        "t.a",
        "t.c, dictionary",
        "t: 3 rows in no block yet",
        "in the pool",
        "total",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}
