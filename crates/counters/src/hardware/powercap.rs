//! Energy by zone, `Documentation/power/powercap/powercap.rst`.

use crate::{Reading, Reason, Scope, Sensor, Source, System, Unit, Value, Why};

/// Where zones are.
const ZONES: &str = "/sys/class/powercap";

/// Energy that each zone (packages, and their cores, memory and rest) has used since the sensor
/// was made: `energy`.
///
/// Never run on hardware that has it. The counters wrap: a sensor must be read more often than
/// they do, about once a minute.
#[derive(Debug)]
pub struct Powercap {
    system: System,
    zones: Vec<Zone>,
}

/// A zone and what it has used.
#[derive(Debug)]
struct Zone {
    folder: String,
    /// Its name after that of the zone it is part of: `package-0/dram`.
    name: String,
    /// The counter when it was last read, in microjoules.
    last: Option<u64>,
    /// The greatest value before it starts again at zero, in microjoules.
    range: Option<u64>,
    /// In microjoules.
    used: u64,
}

impl Powercap {
    /// The zones of this system; counting begins now.
    pub fn new(system: &System) -> Powercap {
        let mut zones: Vec<Zone> = Vec::new();
        for folder in system.names(ZONES).unwrap_or_default() {
            // Control types have no counter; "-mmio" are the same packages once more.
            let Some((parent, _)) = folder.rsplit_once(':') else {
                continue;
            };
            if folder.contains("-mmio") {
                continue;
            }
            let name = system.text(&format!("{ZONES}/{folder}/name"));
            let name = name.map_or_else(|_| folder.clone(), |name| name.trim().to_owned());
            // In order of name, so that what it is part of has come already.
            let whole = zones.iter().find(|zone| zone.folder == parent);
            zones.push(Zone {
                name: whole.map_or(name.clone(), |whole| format!("{}/{name}", whole.name)),
                last: number(system, &folder, "energy_uj").ok(),
                range: number(system, &folder, "max_energy_range_uj").ok(),
                used: 0,
                folder,
            });
        }
        Powercap {
            system: system.clone(),
            zones,
        }
    }
}

/// A file of a zone, which holds a number.
fn number(system: &System, folder: &str, file: &str) -> Result<u64, Reason> {
    let path = format!("{ZONES}/{folder}/{file}");
    let text = system
        .text(&path)
        .map_err(|error| Reason::unreadable(&path, &error))?;
    text.trim().parse().map_err(|_| Reason {
        why: Why::NotUnderstood,
        text: format!("{path}: '{}'", text.trim()),
    })
}

impl Zone {
    fn read(&mut self, system: &System) -> Value {
        let now = match number(system, &self.folder, "energy_uj") {
            Ok(now) => now,
            Err(mut reason) => {
                if reason.why == Why::Refused {
                    reason.text += "; only root may read it";
                }
                return Value::Unavailable(reason);
            }
        };
        let Some(last) = self.last.replace(now) else {
            return Value::unavailable(Why::NotYet, "counting has begun only now");
        };
        self.used += match (now.checked_sub(last), self.range) {
            (Some(used), _) => used,
            (None, Some(range)) => range.saturating_sub(last).saturating_add(now),
            // Started again, nobody says where.
            (None, None) => now,
        };
        Value::Number(self.used as f64 / 1e6)
    }
}

impl Sensor for Powercap {
    fn read(&mut self) -> Vec<Reading> {
        let new =
            |value, scope| Reading::new("energy", value, Unit::Joules, Source::Powercap, scope);
        if self.zones.is_empty() {
            let text = format!("there are no power zones in {ZONES} (virtual machines show none)");
            return vec![new(Value::unavailable(Why::Absent, text), Scope::Machine)];
        }
        let system = &self.system;
        self.zones
            .iter_mut()
            .map(|zone| new(zone.read(system), Scope::Part(zone.name.clone())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &tempfile::TempDir, zone: &str, file: &str, text: &str) {
        let zone = folder.path().join(&ZONES[1..]).join(zone);
        std::fs::create_dir_all(&zone).unwrap();
        std::fs::write(zone.join(file), text).unwrap();
    }

    /// Folders and the name "package-0" from Documentation/power/powercap/powercap.rst, "Example
    /// sysfs interface tree"; "core" and "uncore" from the text below it. The counters are ours.
    #[test]
    fn zones_as_the_kernel_documents_them() {
        let folder = tempfile::tempdir().unwrap();
        for (zone, name) in [
            ("intel-rapl", ""),
            ("intel-rapl:0", "package-0\n"),
            ("intel-rapl:0:0", "core\n"),
            ("intel-rapl:0:1", "uncore\n"),
            ("intel-rapl:1", "package-1\n"),
            ("intel-rapl-mmio:0", "package-0\n"),
        ] {
            write(&folder, zone, "name", name);
            write(&folder, zone, "energy_uj", "900000\n");
            write(&folder, zone, "max_energy_range_uj", "1000000\n");
        }
        let mut powercap = Powercap::new(&System::at(folder.path()));
        write(&folder, "intel-rapl:0", "energy_uj", "950000\n");
        write(&folder, "intel-rapl:0:0", "energy_uj", "100000\n");
        std::fs::remove_file(
            folder
                .path()
                .join("sys/class/powercap/intel-rapl:1/energy_uj"),
        )
        .unwrap();
        let readings = powercap.read();
        let told: Vec<_> = readings
            .iter()
            .map(|r| (r.scope.to_string(), r.value.number()))
            .collect();
        assert_eq!(
            told,
            [
                ("package-0".to_owned(), Some(0.05)),
                ("package-0/core".to_owned(), Some(0.2)),
                ("package-0/uncore".to_owned(), Some(0.0)),
                ("package-1".to_owned(), None),
            ]
        );
        write(&folder, "intel-rapl:0:0", "energy_uj", "150000\n");
        assert_eq!(powercap.read()[1].value, Value::Number(0.25));
    }

    #[test]
    fn where_there_are_none_it_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let readings = Powercap::new(&System::at(folder.path())).read();
        assert_eq!(readings.len(), 1);
        assert!(
            readings[0].to_string().contains("no power zones"),
            "{}",
            readings[0]
        );
    }
}
