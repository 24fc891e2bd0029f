//! Bytes and accesses between nodes, as the engine or an emulated machine counts them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memory::Traffic;
use serde::Deserialize;

use crate::{Nodes, Reading, Reason, Scope, Sensor, Source, Unit, Value, Why};

/// The bytes that the engine counted: `traffic.bytes` per node pair, and their local share,
/// `traffic.local_ratio`.
#[derive(Debug)]
pub struct EngineBytes {
    traffic: Arc<Traffic>,
    nodes: Nodes,
}

impl EngineBytes {
    /// What `traffic` counts between the nodes of a machine, by index.
    pub fn new(traffic: Arc<Traffic>, nodes: &Nodes) -> EngineBytes {
        let nodes = nodes.clone();
        EngineBytes { traffic, nodes }
    }
}

impl Sensor for EngineBytes {
    fn read(&mut self) -> Vec<Reading> {
        let matrix = self.traffic.matrix();
        let number = |index: usize| {
            let numbers = self.nodes.numbers();
            numbers.get(index).copied().unwrap_or(index as u32)
        };
        let mut readings = pairs(
            "traffic.bytes",
            &matrix,
            Unit::Bytes,
            Source::Engine,
            number,
        );
        readings.push(local("traffic.local_ratio", &matrix, Source::Engine));
        readings
    }
}

/// What an emulated machine counted: a matrix of accesses to memory, and the share of accesses
/// that its modelled last-level caches missed.
///
/// ```
/// let text = r#"{"exit": 0, "dram": [[90, 10], [0, 0]], "llc_miss_ratio": 0.25}"#;
/// let counted = counters::EmulatorCounts::parse(text)?;
/// assert_eq!((counted.local(), counted.total()), (90, 100));
/// assert_eq!(counted.llc_miss_ratio, Some(0.25));
/// # Ok::<(), counters::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct EmulatorCounts {
    /// Accesses by `[node of the core][node of the page]`.
    pub dram: Vec<Vec<u64>>,
    /// 0..=1; `None` where nothing was counted.
    pub llc_miss_ratio: Option<f64>,
}

impl EmulatorCounts {
    /// Reads the object that `atoll lab machine --count` writes; other fields are left aside.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`](crate::Error::Parse) where it is not such an object, or the matrix is
    /// not square.
    pub fn parse(text: &str) -> crate::Result<EmulatorCounts> {
        let wrong = |why: String| crate::Error::parse("counts of an emulated machine", 0, why);
        let counts: EmulatorCounts =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let nodes = counts.dram.len();
        if nodes == 0 || counts.dram.iter().any(|row| row.len() != nodes) {
            return Err(wrong("\"dram\" is not a square matrix".to_owned()));
        }
        Ok(counts)
    }

    /// Accesses to the core's own node.
    pub fn local(&self) -> u64 {
        let own = |(node, row): (usize, &Vec<u64>)| row.get(node).copied().unwrap_or(0);
        self.dram.iter().enumerate().map(own).sum()
    }

    /// All accesses.
    pub fn total(&self) -> u64 {
        self.dram.iter().flatten().sum()
    }

    /// The readings: `dram.accesses` per node pair, `dram.local_ratio` and `llc.miss_ratio`.
    pub fn readings(&self) -> Vec<Reading> {
        let source = Source::Emulator;
        let number = |index| index as u32;
        let mut readings = pairs("dram.accesses", &self.dram, Unit::Accesses, source, number);
        readings.push(local("dram.local_ratio", &self.dram, source));
        let ratio = match self.llc_miss_ratio {
            Some(ratio) => Value::Number(ratio),
            None => Value::unavailable(Why::NotYet, "no access was counted"),
        };
        let scope = Scope::Machine;
        readings.push(Reading::new(
            "llc.miss_ratio",
            ratio,
            Unit::Ratio,
            source,
            scope,
        ));
        readings
    }
}

/// A file that an emulated machine's counter writes.
#[derive(Debug)]
pub struct EmulatorFile(PathBuf);

impl EmulatorFile {
    /// The file at this path, which need not be there yet.
    pub fn new(path: &Path) -> EmulatorFile {
        EmulatorFile(path.to_owned())
    }
}

impl Sensor for EmulatorFile {
    fn read(&mut self) -> Vec<Reading> {
        let read = std::fs::read_to_string(&self.0)
            .map_err(|error| (Why::Absent, format!("{}: {error}", self.0.display())));
        let read = read.and_then(|text| {
            EmulatorCounts::parse(&text)
                .map_err(|error| (Why::NotUnderstood, format!("{}: {error}", self.0.display())))
        });
        let mut readings = match &read {
            Ok(counts) => counts.readings(),
            Err((why, text)) => ["dram.accesses", "dram.local_ratio", "llc.miss_ratio"]
                .map(|name| {
                    let value = Value::Unavailable(Reason {
                        why: *why,
                        text: text.clone(),
                    });
                    let unit = if name == "dram.accesses" {
                        Unit::Accesses
                    } else {
                        Unit::Ratio
                    };
                    Reading::new(name, value, unit, Source::Emulator, Scope::Machine)
                })
                .to_vec(),
        };
        // What a file says is as old as the file.
        let written = std::fs::metadata(&self.0).and_then(|about| about.modified());
        let age = written.ok().and_then(|at| at.elapsed().ok());
        for reading in &mut readings {
            reading.age = age.unwrap_or_default();
        }
        readings
    }
}

fn pairs(
    name: &'static str,
    matrix: &[Vec<u64>],
    unit: Unit,
    source: Source,
    number: impl Fn(usize) -> u32,
) -> Vec<Reading> {
    let mut readings = Vec::new();
    for (reader, row) in matrix.iter().enumerate() {
        for (page, count) in row.iter().enumerate() {
            let scope = Scope::NodePair {
                reader: number(reader),
                page: number(page),
            };
            readings.push(Reading::new(
                name,
                Value::Count(*count),
                unit,
                source,
                scope,
            ));
        }
    }
    readings
}

fn local(name: &'static str, matrix: &[Vec<u64>], source: Source) -> Reading {
    let all: u64 = matrix.iter().flatten().sum();
    let own: u64 = matrix
        .iter()
        .enumerate()
        .filter_map(|(node, row)| row.get(node))
        .sum();
    let value = match all {
        0 => Value::unavailable(Why::NotYet, "nothing was read"),
        _ => Value::Number(own as f64 / all as f64),
    };
    Reading::new(name, value, Unit::Ratio, source, Scope::Machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_engines_matrix_pair_by_pair() {
        let machine = topology::Machine::parse("2x2").unwrap();
        let traffic = Arc::new(Traffic::new(2));
        let mut sensor = EngineBytes::new(traffic.clone(), &Nodes::new(&machine));
        let ratio = sensor.read().pop().unwrap();
        assert_eq!(ratio.value.number(), None, "no bytes, no share: {ratio}");
        traffic.add(0, 0, 60);
        traffic.add(1, 0, 40);
        let readings = sensor.read();
        assert_eq!(readings.len(), 5);
        assert_eq!(readings[2].scope, Scope::NodePair { reader: 1, page: 0 });
        assert_eq!(readings[2].value, Value::Count(40));
        assert_eq!(readings[4].value, Value::Number(0.6));
    }

    #[test]
    fn a_file_that_comes_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.json");
        let mut sensor = EmulatorFile::new(&path);
        let unavailable = |readings: &[Reading], why| {
            assert_eq!(readings.len(), 3);
            for reading in readings {
                let Value::Unavailable(reason) = &reading.value else {
                    panic!("{reading}");
                };
                assert_eq!(reason.why, why);
                assert!(reason.text.contains("counts.json"), "{reading}");
            }
        };
        unavailable(&sensor.read(), Why::Absent);
        for wrong in [
            "",
            "{}",
            r#"{"dram": []}"#,
            r#"{"dram": [[1, 2]]}"#,
            r#"{"dram": [[-1]]}"#,
        ] {
            std::fs::write(&path, wrong).unwrap();
            unavailable(&sensor.read(), Why::NotUnderstood);
        }
        std::fs::write(&path, r#"{"dram": [[0]], "llc_miss_ratio": null}"#).unwrap();
        let readings = sensor.read();
        assert_eq!(readings[0].value, Value::Count(0));
        assert_eq!(
            (readings[1].value.number(), readings[2].value.number()),
            (None, None)
        );
    }

    proptest! {
        #[test]
        fn any_matrix_is_kept(nodes in 1usize..6, seed in any::<u32>(), ratio in 0.0..1.0f64) {
            let cell = |at: usize| u64::from(seed) * at as u64 % 1000;
            let dram: Vec<Vec<u64>> = (0..nodes)
                .map(|row| (0..nodes).map(|column| cell(row * nodes + column)).collect())
                .collect();
            let text = serde_json::json!({ "dram": dram, "llc_miss_ratio": ratio }).to_string();
            let counts = EmulatorCounts::parse(&text).unwrap();
            prop_assert_eq!(&counts.dram, &dram);
            prop_assert_eq!(counts.readings().len(), nodes * nodes + 2);
            prop_assert!(counts.local() <= counts.total());
        }

        #[test]
        fn any_text_is_answered(text in ".{0,60}") {
            let _ = EmulatorCounts::parse(&text);
        }
    }
}
