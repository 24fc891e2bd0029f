//! What is in the program, and what is not.

use std::process::Command;

/// Crates of DataFusion's that run plans, or read and write for them. Atoll's own engine does that.
const REFUSED: [&str; 14] = [
    "datafusion",
    "datafusion-catalog",
    "datafusion-catalog-listing",
    "datafusion-common-runtime",
    "datafusion-datasource",
    "datafusion-datasource-arrow",
    "datafusion-datasource-csv",
    "datafusion-datasource-json",
    "datafusion-datasource-parquet",
    "datafusion-functions-table",
    "datafusion-physical-optimizer",
    "datafusion-physical-plan",
    "datafusion-pruning",
    "datafusion-session",
];

/// The names of all crates that a crate of ours is built of, but for its tests.
fn built_of(name: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--edges", "normal,build"])
        .args(["--prefix", "none", "--package", name])
        .current_dir(tidy::root())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn nothing_but_the_engine_runs_plans() {
    for package in ["cli", "python", "adbc"] {
        let names = built_of(package);
        assert!(names.iter().any(|name| name == "engine"), "{package}");
        let found: Vec<&str> = REFUSED
            .into_iter()
            .filter(|refused| names.iter().any(|name| name == refused))
            .collect();
        assert!(found.is_empty(), "{package} is built of {found:?}");
    }
}
