//! Performance monitoring units as sysfs describes them:
//! `Documentation/ABI/testing/sysfs-bus-event_source-devices*`.

use std::collections::BTreeMap;

use super::event::Wanted;
use crate::{Error, Reason, Result, System, Unit, Why};

/// Where units are.
const DEVICES: &str = "/sys/bus/event_source/devices";

/// A unit.
#[derive(Debug, Clone)]
pub(crate) struct Pmu {
    name: String,
    kind: u32,
    /// Bits of each term.
    formats: BTreeMap<String, Bits>,
    /// The cpus it counts through, one per instance; empty where any cpu does.
    pub cpus: Vec<u32>,
}

/// An event of a unit, ready to be opened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Described {
    pub wanted: Wanted,
    /// What one count is worth, in `unit`.
    pub scale: f64,
    pub unit: Unit,
}

/// The names of all units there are; none where the kernel has none.
pub(crate) fn names(system: &System) -> Vec<String> {
    system.names(DEVICES).unwrap_or_default()
}

impl Pmu {
    /// The unit with this name.
    ///
    /// # Errors
    ///
    /// The reason, where there is none, or its files are not understood.
    pub(crate) fn open(system: &System, name: &str) -> std::result::Result<Pmu, Reason> {
        let folder = format!("{DEVICES}/{name}");
        let kind = match system.text(&format!("{folder}/type")) {
            Ok(text) => text.trim().parse::<u32>(),
            Err(error) => {
                return Err(Reason::unreadable(
                    &format!("there is no unit {name}"),
                    &error,
                ));
            }
        };
        let Ok(kind) = kind else {
            return Err(not_understood(format!("{folder}/type is not a number")));
        };
        let mut formats = BTreeMap::new();
        for term in system
            .names(&format!("{folder}/format"))
            .unwrap_or_default()
        {
            let path = format!("{folder}/format/{term}");
            let text = system
                .text(&path)
                .map_err(|error| Reason::unreadable(&path, &error))?;
            let bits =
                Bits::parse(&text, &path).map_err(|error| not_understood(error.to_string()))?;
            formats.insert(term, bits);
        }
        let cpus = system
            .text(&format!("{folder}/cpumask"))
            .or_else(|_| system.text(&format!("{folder}/cpus")))
            .unwrap_or_default();
        let cpus = cpu_list(&cpus)
            .ok_or_else(|| not_understood(format!("{folder}/cpumask is not a list of cpus")))?;
        Ok(Pmu {
            name: name.to_owned(),
            kind,
            formats,
            cpus,
        })
    }

    /// An event that sysfs describes, such as `cas_count_read`.
    pub(crate) fn event(
        &self,
        system: &System,
        event: &str,
    ) -> std::result::Result<Described, Reason> {
        let path = format!("{DEVICES}/{}/events/{event}", self.name);
        let text = system.text(&path).map_err(|error| {
            Reason::unreadable(&format!("unit {} has no event {event}", self.name), &error)
        })?;
        let mut described = self.terms(text.trim(), &path)?;
        if let Ok(scale) = system.text(&format!("{path}.scale")) {
            described.scale = scale
                .trim()
                .parse()
                .map_err(|_| not_understood(format!("{path}.scale is not a number")))?;
        }
        if let Ok(unit) = system.text(&format!("{path}.unit")) {
            let (unit, factor) = unit_of(unit.trim());
            described.unit = unit;
            described.scale *= factor;
        }
        Ok(described)
    }

    /// An event given by its terms, such as `event=0x423,inv,cmask=0x3`.
    pub(crate) fn terms(&self, terms: &str, what: &str) -> std::result::Result<Described, Reason> {
        let mut config = [0; 3];
        for term in terms
            .split(',')
            .map(str::trim)
            .filter(|term| !term.is_empty())
        {
            let (name, value) = term.split_once('=').unwrap_or((term, "0x1"));
            if value == "?" {
                return Err(not_understood(format!(
                    "{what}: the value of '{name}' must be given"
                )));
            }
            let digits = value.strip_prefix("0x");
            let value =
                digits.map_or_else(|| value.parse(), |digits| u64::from_str_radix(digits, 16));
            let value =
                value.map_err(|_| not_understood(format!("{what}: '{term}' is not a number")))?;
            let bits = match self.formats.get(name) {
                Some(bits) => bits.clone(),
                None => Bits::whole(name).ok_or_else(|| {
                    not_understood(format!("{what}: unit {} has no term '{name}'", self.name))
                })?,
            };
            if !bits.put(value, &mut config) {
                return Err(not_understood(format!("{what}: '{term}' is too large")));
            }
        }
        Ok(Described {
            wanted: Wanted {
                kind: self.kind,
                config,
                ..Wanted::default()
            },
            scale: 1.0,
            unit: Unit::Events,
        })
    }
}

fn not_understood(text: String) -> Reason {
    Reason {
        why: Why::NotUnderstood,
        text,
    }
}

/// What the kernel calls a unit, and how many of ours one is.
fn unit_of(text: &str) -> (Unit, f64) {
    match text {
        "Joules" => (Unit::Joules, 1.0),
        "Bytes" | "bytes" => (Unit::Bytes, 1.0),
        "KiB" => (Unit::Bytes, 1024.0),
        "MiB" => (Unit::Bytes, 1024.0 * 1024.0),
        "GiB" => (Unit::Bytes, 1024.0 * 1024.0 * 1024.0),
        _ => (Unit::Unnamed, 1.0),
    }
}

/// Which bits of which word a term fills, the lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bits {
    word: usize,
    /// First and last bit of each run.
    runs: Vec<(u32, u32)>,
}

impl Bits {
    /// Reads such as `config1:1,6-10,44`.
    fn parse(text: &str, what: &str) -> Result<Bits> {
        let wrong = || {
            Error::parse(
                what,
                0,
                format!("'{}' is not such as config1:1,6-10,44", text.trim()),
            )
        };
        let (word, list) = text.trim().split_once(':').ok_or_else(wrong)?;
        let word = word_of(word).ok_or_else(wrong)?;
        let run = |part: &str| -> Option<(u32, u32)> {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last && last < 64).then_some((first, last))
        };
        let runs: Option<Vec<_>> = list.split(',').map(run).collect();
        Ok(Bits {
            word,
            runs: runs.ok_or_else(wrong)?,
        })
    }

    /// The whole of a word, by its name.
    fn whole(name: &str) -> Option<Bits> {
        Some(Bits {
            word: word_of(name)?,
            runs: vec![(0, 63)],
        })
    }

    /// Puts a value there; says whether it fits.
    fn put(&self, mut value: u64, config: &mut [u64; 3]) -> bool {
        for &(first, last) in &self.runs {
            let width = last - first + 1;
            let mask = u64::MAX >> (64 - width);
            config[self.word] |= (value & mask) << first;
            value = value.checked_shr(width).unwrap_or(0);
        }
        value == 0
    }
}

fn word_of(name: &str) -> Option<usize> {
    match name {
        "config" => Some(0),
        "config1" => Some(1),
        "config2" => Some(2),
        _ => None,
    }
}

/// The numbers of a list such as `0,18-19`; `None` where it is not one.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        // No kernel is built for more cpus.
        if first > last || last >= 8192 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(formats: &[(&str, &str)]) -> Pmu {
        let bits = |text: &str| Bits::parse(text, "format").unwrap();
        Pmu {
            name: "u".into(),
            kind: 9,
            formats: formats
                .iter()
                .map(|(name, text)| ((*name).to_owned(), bits(text)))
                .collect(),
            cpus: vec![],
        }
    }

    /// The example of Documentation/ABI/testing/sysfs-bus-event_source-devices-format.
    #[test]
    fn bits_as_the_kernel_documents_them() {
        let bits = Bits::parse("config1:1,6-10,44\n", "format").unwrap();
        assert_eq!(
            (bits.word, bits.runs.clone()),
            (1, vec![(1, 1), (6, 10), (44, 44)])
        );
        let mut config = [0; 3];
        assert!(bits.put(0b111_1111, &mut config));
        assert_eq!(config, [0, 1 << 1 | 0b11111 << 6 | 1 << 44, 0]);
        assert!(!bits.put(0b1000_0000, &mut config), "eight bits in seven");
    }

    /// The examples of Documentation/ABI/testing/sysfs-bus-event_source-devices-events; the
    /// bits of the terms are ours, as that page does not give them.
    #[test]
    fn events_as_the_kernel_documents_them() {
        let unit = unit(&[
            ("event", "config:0-15"),
            ("inv", "config:23"),
            ("cmask", "config:24-31"),
            ("domain", "config:0-3"),
            ("offset", "config:32-63"),
            ("starting_index", "config1:0-15"),
            ("core", "config:16-31"),
        ]);
        let config = |terms: &str| unit.terms(terms, "x").map(|event| event.wanted.config);
        assert_eq!(config("event=0x2abc").unwrap(), [0x2abc, 0, 0]);
        assert_eq!(
            config("event=0x423,inv,cmask=0x3").unwrap(),
            [0x423 | 1 << 23 | 3 << 24, 0, 0]
        );
        assert_eq!(
            config("domain=0x1,offset=0x8,starting_index=0xffff").unwrap(),
            [1 | 8 << 32, 0xffff, 0]
        );
        let missing = config("domain=0x1,offset=0x8,core=?").unwrap_err();
        assert_eq!(missing.why, Why::NotUnderstood);
        assert!(missing.text.contains("'core' must be given"), "{missing:?}");
        for (wrong, part) in [
            ("event=0x1ffff", "too large"),
            ("event=zz", "not a number"),
            ("umask=0x1", "no term 'umask'"),
        ] {
            assert!(config(wrong).unwrap_err().text.contains(part));
        }
    }

    /// Scale and unit are the examples of the same page.
    #[test]
    fn scale_and_unit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let system = System::at(folder.path());
        let unit = folder.path().join(&DEVICES[1..]).join("power");
        std::fs::create_dir_all(unit.join("events")).unwrap();
        std::fs::create_dir_all(unit.join("format")).unwrap();
        for (name, text) in [
            ("type", "17\n"),
            ("cpumask", "0,18-19\n"),
            ("format/event", "config:0-7\n"),
            ("events/energy-ram", "event=0x03\n"),
            ("events/energy-ram.scale", "2.3283064365386962890625e-10\n"),
            ("events/energy-ram.unit", "Joules\n"),
        ] {
            std::fs::write(unit.join(name), text).unwrap();
        }
        let pmu = Pmu::open(&system, "power").unwrap();
        assert_eq!(pmu.cpus, [0, 18, 19]);
        let event = pmu.event(&system, "energy-ram").unwrap();
        assert_eq!((event.wanted.kind, event.wanted.config[0]), (17, 3));
        assert_eq!(
            (event.scale, event.unit),
            (2.328_306_436_538_696_3e-10, Unit::Joules)
        );
        let missing = pmu.event(&system, "energy-gpu").unwrap_err();
        assert_eq!(missing.why, Why::Absent);
        assert!(missing.text.contains("energy-gpu"));
        assert_eq!(names(&system), ["power"]);
        assert_eq!(
            Pmu::open(&system, "uncore_imc_0").unwrap_err().why,
            Why::Absent
        );
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,30}", list in "[0-9,-]{0,12}") {
            let _ = Bits::parse(&text, "x");
            let _ = Bits::parse(&format!("config:{list}"), "x");
            let _ = cpu_list(&list);
            let _ = unit(&[("event", "config:0-7")]).terms(&text, "x");
        }

        /// What is put into runs of bits is found there again.
        #[test]
        fn bits_are_a_bijection(value in 0u64..1 << 12, gap in 1u32..20) {
            let text = format!("config2:3-8,{}-{}", 9 + gap, 14 + gap);
            let bits = Bits::parse(&text, "x").unwrap();
            let mut config = [0; 3];
            prop_assert!(bits.put(value, &mut config));
            let read = config[2] >> 3 & 0x3f | (config[2] >> (9 + gap) & 0x3f) << 6;
            prop_assert_eq!(read, value);
            prop_assert_eq!((config[0], config[1], config[2].count_ones()), (0, 0, value.count_ones()));
        }
    }
}
