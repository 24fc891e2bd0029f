//! `lab elastic` on this machine, in a few seconds: that everything is recorded and judged. How fast
//! anything is depends on what else runs, and is not looked at.

use std::process::Command;

use serde_json::Value;

fn lab(words: &[&str], folder: &std::path::Path) -> std::process::Output {
    let report = folder.join("report.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command
        .arg("elastic")
        .args(words)
        .arg("--report")
        .arg(report);
    command.output().unwrap()
}

fn json(words: &[&str], folder: &std::path::Path) -> Value {
    let output = lab(words, folder);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn all_of_a_run_is_recorded_and_judged() {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        "--workload",
        "step,lock",
        "--mode",
        "dense",
        "--runs",
        "1",
        "--phase",
        "0.2",
        "--period",
        "20",
        "--json",
    ];
    let told = json(&words, folder.path());
    let results = &told["results"];
    let trials = results["trials"].as_array().unwrap();
    let cpus = placement::apply::cpus_of(0).unwrap().len();
    let governed = |trial: &&Value| trial["variant"]["governed"].is_array();
    assert_eq!(trials.iter().filter(governed).count(), 2);
    for trial in trials {
        assert!(trial["throughput"].as_f64().unwrap() > 0.0, "{trial}");
        let (seconds, allocated) = (&trial["seconds"], &trial["allocated"]);
        let most = seconds.as_f64().unwrap() * cpus as f64;
        assert!(allocated.as_f64().unwrap() <= most * 1.000_001, "{trial}");
        assert!(!trial["lives"].as_array().unwrap().is_empty());
        // What was used is read at each decision, else nobody could tell of it or of energy.
        assert!(
            trial["used"].is_f64() && trial["node_moves"].is_u64(),
            "{trial}"
        );
        assert_eq!(trial["energy"]["estimate"], true);
        for moment in trial["moments"].as_array().unwrap() {
            let cores = moment["cores"].as_u64().unwrap();
            assert!((1..=cpus as u64).contains(&cores), "{moment}");
        }
        // Decisions are a function of what was read: the trace gives them again.
        if governed(&trial) {
            assert_eq!(trial["replayed"], trial["decisions"]);
        }
    }
    let bars = results["bars"].as_array().unwrap();
    let of = |workload: &str| {
        bars.iter()
            .filter(|bar| bar["workload"] == workload)
            .count()
    };
    assert!(of("step") >= 4 && of("lock") >= 4, "{bars:?}");
    assert_eq!(
        told["commit"],
        serde_json::json!(report::commit(".".as_ref()))
    );
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("looks every 20 ms") && page.contains("Load before"));
    for part in [
        "life spans of threads",
        "transitions over time",
        "What is asked for",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

/// A program that answers as a database's client does.
const CLIENT: &str = "sh ECHO";
const ECHO: &str = r#"while read -r line; do case "$line" in select*) printf '%s\n' "$line" ;; *) echo 1 ;; esac; done"#;

#[test]
fn clients_of_a_database_are_asked() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("client");
    std::fs::write(&script, ECHO).unwrap();
    let client = CLIENT.replace("ECHO", script.to_str().unwrap());
    let words = [
        "--workload",
        "mixed",
        "--mode",
        "adaptive",
        "--runs",
        "1",
        "--phase",
        "0.2",
        "--json",
        "--client",
        client.as_str(),
        "--statement",
        "q1;",
        "--statement",
        "q6;",
    ];
    let told = json(&words, folder.path());
    let trials = told["results"]["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert!(trial["throughput"].as_f64().unwrap() > 0.0, "{trial}");
    }
    // What is told of the workload is what this client was asked, not what a program of ours would be.
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("the statements, drawn at random") && page.contains("q1; q6;"));
    assert!(!page.contains("of the rows") && !page.contains("program of our own"));
}

#[test]
fn what_cannot_be_run_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for (words, status, part) in [
        (&["--sensor", "traffic"][..], 2, "take load or throughput"),
        (&["--phase", "0"], 2, "take 0.1 to 3600"),
        (&["--client", "psql"], 2, "--statement"),
        (
            &[
                "--workload",
                "lock",
                "--client",
                "true",
                "--statement",
                "q;",
            ],
            1,
            "nothing is left",
        ),
        (
            &[
                "--workload",
                "step",
                "--client",
                "/nonexistent/psql",
                "--statement",
                "q;",
            ],
            1,
            "the load",
        ),
    ] {
        let output = lab(words, folder.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(part), "{said}");
    }
}
