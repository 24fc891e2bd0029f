//! How much of the time work waits, `/proc/pressure`.

use crate::{Reading, Scope, Sensor, Source, System, Unit, Value, Why};

/// The files, and the names of their readings.
const RESOURCES: [(&str, [&str; 2]); 3] = [
    ("cpu", ["pressure.cpu.some", "pressure.cpu.full"]),
    ("memory", ["pressure.memory.some", "pressure.memory.full"]),
    ("io", ["pressure.io.some", "pressure.io.full"]),
];

/// Pressure stall information of the machine, `Documentation/accounting/psi.rst`: for cpu,
/// memory and io, the share of the last ten seconds in which some task, and in which every
/// task that had work, waited for it.
#[derive(Debug)]
pub struct Pressure {
    system: System,
}

impl Pressure {
    /// Of this system.
    pub fn new(system: &System) -> Pressure {
        Pressure {
            system: system.clone(),
        }
    }
}

impl Sensor for Pressure {
    fn read(&mut self) -> Vec<Reading> {
        let mut readings = Vec::new();
        for (resource, [some, full]) in RESOURCES {
            let path = format!("/proc/pressure/{resource}");
            let text = self.system.text(&path);
            for (line, name) in [("some", some), ("full", full)] {
                let value = match &text {
                    Ok(text) => average(text, line).unwrap_or_else(|| {
                        Value::unavailable(
                            Why::NotUnderstood,
                            format!("{path} has no '{line} avg10='"),
                        )
                    }),
                    Err(error) => Value::unreadable(&path, error),
                };
                let scope = Scope::Machine;
                readings.push(Reading::new(
                    name,
                    value,
                    Unit::Ratio,
                    Source::Pressure,
                    scope,
                ));
            }
        }
        readings
    }
}

/// The average over ten seconds as a ratio.
fn average(text: &str, line: &str) -> Option<Value> {
    let rest = text.lines().find_map(|text| text.strip_prefix(line))?;
    let word = rest
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("avg10="))?;
    let percent: f64 = word.parse().ok()?;
    percent
        .is_finite()
        .then_some(Value::Number(percent / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(cpu: &str, memory: &str) -> (tempfile::TempDir, Pressure) {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("proc/pressure");
        std::fs::create_dir_all(&files).unwrap();
        std::fs::write(files.join("cpu"), cpu).unwrap();
        std::fs::write(files.join("memory"), memory).unwrap();
        let pressure = Pressure::new(&System::at(folder.path()));
        (folder, pressure)
    }

    /// The formats are those of Documentation/accounting/psi.rst: cpu has no line "full" there.
    #[test]
    fn as_the_kernel_documents_it() {
        let (_folder, mut pressure) = system(
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        );
        let readings = pressure.read();
        let values: Vec<_> = readings.iter().map(|r| r.value.number()).collect();
        assert_eq!(values, [Some(0.0), None, Some(0.0), Some(0.0), None, None]);
        assert!(readings[1].to_string().contains("full"), "{}", readings[1]);
        assert!(
            readings[5].to_string().contains("/proc/pressure/io"),
            "{}",
            readings[5]
        );
    }

    #[test]
    fn percent_becomes_a_ratio() {
        let (_folder, mut pressure) =
            system("some avg10=12.50 avg60=1 total=9\n", "some avg10=x\n");
        let readings = pressure.read();
        assert_eq!(readings[0].value, Value::Number(0.125));
        assert_eq!(readings[2].value.number(), None);
    }

    #[test]
    fn of_this_machine() {
        for reading in Pressure::new(&System::real()).read() {
            match reading.value.number() {
                Some(ratio) => assert!((0.0..=1.0).contains(&ratio), "{reading}"),
                None => notrun::not_run(reading),
            }
        }
    }
}
