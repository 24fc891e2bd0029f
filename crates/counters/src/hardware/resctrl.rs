//! Memory bandwidth by cache domain, `Documentation/filesystems/resctrl.rst`.

use crate::{Reading, Scope, Sensor, Source, System, Unit, Value, Why};

/// Where the file system is mounted.
const MOUNT: &str = "/sys/fs/resctrl";

/// The files of a domain, and the names of their readings.
const EVENTS: [(&str, &str); 3] = [
    ("llc_occupancy", "llc.occupancy"),
    ("mbm_total_bytes", "memory.traffic"),
    ("mbm_local_bytes", "memory.local_traffic"),
];

/// What the resource control file system counts for a group of tasks, per domain of a last-level
/// cache: bytes in the cache, bytes to and from memory, and of these those of the own node.
///
/// Never run on hardware that has it.
#[derive(Debug)]
pub struct Resctrl {
    system: System,
    group: String,
}

impl Resctrl {
    /// Of this group: a path below the mount point, empty for all tasks that are in no other.
    pub fn new(system: &System, group: &str) -> Resctrl {
        Resctrl {
            system: system.clone(),
            group: group.trim_matches('/').to_owned(),
        }
    }

    fn domain(&self, folder: &str, name: &str, readings: &mut Vec<Reading>) {
        let part = name.trim_start_matches("mon_").replace('_', " ");
        for (file, name) in EVENTS {
            let path = format!("{folder}/{file}");
            let value = match self.system.text(&path) {
                // Occupancy and bandwidth are separate features.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => Value::unreadable(&path, &error),
                Ok(text) => count(text.trim(), &path),
            };
            let scope = Scope::Part(part.clone());
            readings.push(Reading::new(
                name,
                value,
                Unit::Bytes,
                Source::Resctrl,
                scope,
            ));
        }
    }
}

/// A number, or what the kernel writes where it has none.
fn count(text: &str, path: &str) -> Value {
    match text.parse() {
        Ok(count) => Value::Count(count),
        Err(_) => match text {
            "Unavailable" | "Error" | "Unassigned" => {
                Value::unavailable(Why::NotYet, format!("{path}: the kernel says '{text}'"))
            }
            _ => Value::unavailable(Why::NotUnderstood, format!("{path}: '{text}'")),
        },
    }
}

impl Sensor for Resctrl {
    fn read(&mut self) -> Vec<Reading> {
        let data = match self.group.as_str() {
            "" => format!("{MOUNT}/mon_data"),
            group => format!("{MOUNT}/{group}/mon_data"),
        };
        let mut readings = Vec::new();
        let domains = self.system.names(&data);
        for domain in domains.as_deref().unwrap_or_default() {
            let folder = format!("{data}/{domain}");
            self.domain(&folder, domain, &mut readings);
            // With sub-NUMA clusters, the shares of the nodes.
            for node in self.system.names(&folder).unwrap_or_default() {
                if node.starts_with("mon_sub_") {
                    self.domain(&format!("{folder}/{node}"), &node, &mut readings);
                }
            }
        }
        if !readings.is_empty() {
            return readings;
        }
        let value = match domains {
            Err(error) => {
                let text = format!(
                    "{data}: {error}; it takes a processor with bandwidth monitoring and: mount -t resctrl resctrl {MOUNT}"
                );
                Value::unavailable(Why::Absent, text)
            }
            Ok(_) => Value::unavailable(Why::Absent, format!("{data} has no events")),
        };
        let new = |(_, name)| {
            let (source, scope) = (Source::Resctrl, Scope::Machine);
            Reading::new(name, value.clone(), Unit::Bytes, source, scope)
        };
        EVENTS.map(new).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(&MOUNT[1..]).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let system = System::at(folder.path());
        (folder, system)
    }

    /// Values and layout from Documentation/filesystems/resctrl.rst, "Examples for RDT Monitoring
    /// along with allocation usage", example 1.
    #[test]
    fn occupancy_as_the_kernel_documents_it() {
        let (_folder, system) = tree(&[
            (
                "p1/mon_groups/m11/mon_data/mon_L3_00/llc_occupancy",
                "16234000\n",
            ),
            (
                "p1/mon_groups/m11/mon_data/mon_L3_01/llc_occupancy",
                "14789000\n",
            ),
        ]);
        let readings = Resctrl::new(&system, "p1/mon_groups/m11").read();
        assert_eq!(readings.len(), 2);
        assert_eq!(readings[0].value, Value::Count(16_234_000));
        assert_eq!(readings[0].scope, Scope::Part("L3 00".into()));
        assert_eq!(readings[1].value, Value::Count(14_789_000));
        assert!(readings[0].to_string().contains("never run on hardware"));
    }

    /// The words stand in the same page: "Unavailable" under mbm_assign_mode, "Unassigned" and
    /// the names of sub-NUMA folders under mon_data.
    #[test]
    fn words_in_the_place_of_numbers_are_no_numbers() {
        let (_folder, system) = tree(&[
            ("mon_data/mon_L3_00/mbm_total_bytes", "Unavailable\n"),
            ("mon_data/mon_L3_00/mbm_local_bytes", "Unassigned\n"),
            ("mon_data/mon_L3_00/mon_sub_L3_01/mbm_total_bytes", "7\n"),
        ]);
        let readings = Resctrl::new(&system, "").read();
        let values: Vec<_> = readings.iter().map(|r| r.value.number()).collect();
        assert_eq!(values, [None, None, Some(7.0)]);
        assert!(
            readings[0].to_string().contains("Unavailable"),
            "{}",
            readings[0]
        );
        assert_eq!(readings[2].scope, Scope::Part("sub L3 01".into()));
    }

    #[test]
    fn where_it_is_missing_it_says_so() {
        let (_folder, system) = tree(&[]);
        let readings = Resctrl::new(&system, "").read();
        assert_eq!(readings.len(), 3);
        for reading in &readings {
            assert_eq!(reading.value.number(), None);
            assert!(
                reading.to_string().contains("mount -t resctrl"),
                "{reading}"
            );
        }
    }
}
