//! Costs of placements, as recorded in `bench/placements`.

use std::fmt::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{Error, Result};

/// The cost of one placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The cpu of each thread, in the order of creation.
    pub cpus: Vec<u32>,
    /// Lines read from memory, weighted with the distance they came from: 1 for a local one.
    pub cost: f64,
    /// Lines read from the reader's own node.
    pub local: u64,
    /// Lines read from other nodes.
    pub remote: u64,
}

/// The cost of a named strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// The strategy.
    pub strategy: String,
    /// The median of its runs.
    pub cost: f64,
    /// Lines read from the reader's own node, in the run of that cost.
    pub local: u64,
    /// Lines read from other nodes.
    pub remote: u64,
}

/// The costs of all placements that differ, for one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// The machine.
    pub machine: String,
    /// How many threads were placed.
    pub threads: usize,
    /// The workload's name.
    pub workload: String,
    /// A description of the workload.
    #[serde(default)]
    pub about: String,
    /// The name of a cost, with its unit.
    #[serde(default)]
    pub metric: String,
    /// How it was recorded.
    #[serde(default)]
    pub command: String,
    /// The date of the recording.
    #[serde(default)]
    pub date: String,
    /// The commit of the program that recorded it.
    #[serde(default)]
    pub commit: String,
    /// The caches that were modelled.
    #[serde(default)]
    pub caches: String,
    /// Strategies by name, for comparison.
    #[serde(default)]
    pub strategies: Vec<Named>,
    /// One placement of each class, in the order of their ranks.
    pub placements: Vec<Measured>,
}

impl Costs {
    /// Reads a recorded table.
    ///
    /// # Errors
    ///
    /// [`Error::Table`], which names the file, if it does not exist, is no table of costs, or has no placements.
    pub fn read(path: &Path) -> Result<Costs> {
        let wrong = |why: String| Error::Table {
            path: path.to_owned(),
            why,
        };
        let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let costs: Costs =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        let sound = |one: &Measured| one.cpus.len() == costs.threads && one.cost.is_finite();
        if costs.placements.is_empty() || !costs.placements.iter().all(sound) {
            return Err(wrong(
                "it has no placements, or some that do not fit its number of threads".to_owned(),
            ));
        }
        Ok(costs)
    }

    /// Writes the table, with one placement per line.
    ///
    /// # Errors
    ///
    /// [`Error::Write`].
    pub fn write(&self, path: &Path) -> Result<()> {
        let head = json!({
            "machine": self.machine, "threads": self.threads, "workload": self.workload,
            "about": self.about, "metric": self.metric, "command": self.command, "date": self.date,
            "commit": self.commit, "caches": self.caches,
        });
        let mut text = String::from("{\n");
        for (name, value) in head.as_object().into_iter().flatten() {
            let _ = writeln!(text, "  {}: {value},", json!(name));
        }
        list(&mut text, "strategies", &self.strategies);
        text.push_str(",\n");
        list(&mut text, "placements", &self.placements);
        text.push_str("\n}\n");
        std::fs::write(path, text).map_err(|source| Error::Write {
            path: path.to_owned(),
            source,
        })
    }

    /// All costs, ascending.
    pub fn sorted(&self) -> Vec<f64> {
        let mut costs: Vec<f64> = self.placements.iter().map(|one| one.cost).collect();
        costs.sort_by(f64::total_cmp);
        costs
    }
}

fn list<T: Serialize>(text: &mut String, name: &str, items: &[T]) {
    let lines: Vec<String> = items
        .iter()
        .map(|item| format!("    {}", json!(item)))
        .collect();
    let _ = write!(text, "  \"{name}\": [\n{}\n  ]", lines.join(",\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Costs {
        let one = |cost| Measured {
            cpus: vec![0, 6],
            cost,
            local: 10,
            remote: 3,
        };
        Costs {
            machine: "2x6 \"quoted\"".to_owned(),
            threads: 2,
            workload: "w".to_owned(),
            about: String::new(),
            metric: String::new(),
            command: "it's".to_owned(),
            date: String::new(),
            commit: "5afe76295d01".to_owned(),
            caches: "12 of 2 KiB".to_owned(),
            strategies: vec![Named {
                strategy: "os".to_owned(),
                cost: 2.5,
                local: 1,
                remote: 1,
            }],
            placements: vec![one(13.9), one(10.0)],
        }
    }

    #[test]
    fn tables_come_back_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        costs().write(&path).unwrap();
        assert_eq!(Costs::read(&path).unwrap(), costs());
        assert_eq!(costs().sorted(), [10.0, 13.9]);
    }

    #[test]
    fn what_is_no_table_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        for text in [
            "",
            "{}",
            r#"{"machine":"m","threads":2,"workload":"w","placements":[]}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Costs::read(&path).unwrap_err().to_string();
            assert!(error.contains("t.json"), "{error}");
        }
        let mut short = costs();
        short.placements[1].cpus.pop();
        short.write(&path).unwrap();
        assert!(Costs::read(&path).is_err());
        assert!(Costs::read(&folder.path().join("none")).is_err());
    }
}
