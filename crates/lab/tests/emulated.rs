//! Cores that follow the memory of what runs on them. Boots an emulated machine; run by `./test-lab`.

use std::process::Command;

use serde_json::Value;

#[test]
fn few_clients_get_the_cores_of_the_node_with_their_data() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.args([
        "elastic-nodes",
        "--quick",
        "--runs",
        "1",
        "--mode",
        "adaptive",
        "--json",
    ]);
    let output = command.current_dir(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = &told["results"][0];
    // Where the operating system puts two threads is its own affair; these follow the data.
    assert_eq!(found["counted"][1]["variant"], "adaptive, load");
    let lines: Vec<Vec<u64>> =
        serde_json::from_value(found["counted"][1]["runs"][0]["dram"].clone()).unwrap();
    let all: u64 = lines.iter().flatten().sum();
    let local: u64 = (0..lines.len()).map(|node| lines[node][node]).sum();
    assert!(all > 100_000, "{lines:?}");
    // Left to chance it would be a quarter.
    assert!(local * 2 > all, "{lines:?}");
    let trial = &found["trials"][1][0];
    assert_eq!(trial["replayed"], trial["decisions"]);
    let last = trial["moments"].as_array().unwrap().last().unwrap();
    assert!((1..=8).contains(&last["cores"].as_u64().unwrap()), "{last}");
}
