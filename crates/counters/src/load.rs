//! How busy the cpus are.

use std::collections::BTreeMap;

use crate::{Nodes, Reading, Scope, Sensor, Source, System, Unit, Value, Why};

/// The load of each cpu and node between two looks, `/proc/stat`: `cpu.load`, as a ratio per cpu
/// and in cpus per node and for the machine.
#[derive(Debug)]
pub struct CpuLoad {
    system: System,
    nodes: Nodes,
    last: BTreeMap<u32, Times>,
}

/// Clock ticks of a cpu.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    busy: u64,
    all: u64,
}

impl CpuLoad {
    /// Of the cpus of this system; the first look is taken now.
    pub fn new(system: &System, nodes: &Nodes) -> CpuLoad {
        let mut load = CpuLoad {
            system: system.clone(),
            nodes: nodes.clone(),
            last: BTreeMap::new(),
        };
        load.last = load.look().unwrap_or_default();
        load
    }

    fn look(&self) -> Result<BTreeMap<u32, Times>, Value> {
        let path = "/proc/stat";
        let text = self
            .system
            .text(path)
            .map_err(|error| Value::unreadable(path, &error))?;
        let times: BTreeMap<u32, Times> = text.lines().filter_map(times).collect();
        if times.is_empty() {
            return Err(Value::unavailable(
                Why::NotUnderstood,
                "/proc/stat names no cpu",
            ));
        }
        Ok(times)
    }
}

/// A line such as `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`.
fn times(line: &str) -> Option<(u32, Times)> {
    let (name, rest) = line.split_once(' ')?;
    let cpu = name.strip_prefix("cpu")?.parse().ok()?;
    // Guests' time is in the user's too.
    let ticks: Option<Vec<u64>> = rest
        .split_ascii_whitespace()
        .take(8)
        .map(|word| word.parse().ok())
        .collect();
    let ticks = ticks?;
    let idle = ticks
        .get(3)?
        .saturating_add(ticks.get(4).copied().unwrap_or(0));
    let all = ticks
        .iter()
        .fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
    Some((
        cpu,
        Times {
            busy: all.saturating_sub(idle),
            all,
        },
    ))
}

impl Sensor for CpuLoad {
    fn read(&mut self) -> Vec<Reading> {
        let new = |value, unit, scope| Reading::new("cpu.load", value, unit, Source::Stat, scope);
        let now = match self.look() {
            Ok(now) => now,
            Err(value) => return vec![new(value, Unit::Cpus, Scope::Machine)],
        };
        let mut readings = Vec::new();
        let mut per_node: BTreeMap<u32, f64> = BTreeMap::new();
        let mut machine = None;
        for (&cpu, now) in &now {
            // A cpu that has come since, or no tick since: there is nothing to divide.
            let before = self.last.get(&cpu).copied();
            let ticks = before.map_or(0, |before| now.all.saturating_sub(before.all));
            let value = match before {
                Some(before) if ticks > 0 => {
                    let busy = now.busy.saturating_sub(before.busy).min(ticks);
                    let load = busy as f64 / ticks as f64;
                    *machine.get_or_insert(0.0) += load;
                    if let Some(node) = self.nodes.of_cpu(cpu) {
                        *per_node.entry(node).or_default() += load;
                    }
                    Value::Number(load)
                }
                _ => Value::unavailable(Why::NotYet, "no clock tick since the last look"),
            };
            readings.push(new(value, Unit::Ratio, Scope::Cpu(cpu)));
        }
        for (node, load) in per_node {
            readings.push(new(Value::Number(load), Unit::Cpus, Scope::Node(node)));
        }
        let machine = machine.map_or_else(
            || Value::unavailable(Why::NotYet, "no clock tick since the last look"),
            Value::Number,
        );
        readings.push(new(machine, Unit::Cpus, Scope::Machine));
        // Looks that are too close do not swallow ticks: the older one stays.
        if readings
            .iter()
            .any(|reading| reading.value.number().is_some())
        {
            self.last = now;
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nodes() -> Nodes {
        Nodes::new(&topology::Machine::parse("2x1").unwrap())
    }

    fn write(folder: &tempfile::TempDir, text: &str) {
        let file = folder.path().join("proc");
        std::fs::create_dir_all(&file).unwrap();
        std::fs::write(file.join("stat"), text).unwrap();
    }

    fn values(load: &mut CpuLoad) -> Vec<(Scope, Option<f64>)> {
        let told = |r: Reading| (r.scope.clone(), r.value.number());
        load.read().into_iter().map(told).collect()
    }

    #[test]
    fn busy_over_all_between_two_looks() {
        let folder = tempfile::tempdir().unwrap();
        write(
            &folder,
            "cpu  9 9 9 9\ncpu0 100 0 0 100 0 0 0 0 50 0\ncpu1 0 0 0 0\nintr 1\n",
        );
        let mut load = CpuLoad::new(&System::at(folder.path()), &nodes());
        assert_eq!(values(&mut load).last().unwrap(), &(Scope::Machine, None));
        write(
            &folder,
            "cpu0 130 0 0 110 0 0 0 0 99 0\ncpu1 5 0 0 5 10\ncpu2 1 1 1 1\n",
        );
        assert_eq!(
            values(&mut load),
            [
                (Scope::Cpu(0), Some(0.75)),
                (Scope::Cpu(1), Some(0.25)),
                (Scope::Cpu(2), None),
                (Scope::Node(0), Some(0.75)),
                (Scope::Node(1), Some(0.25)),
                (Scope::Machine, Some(1.0)),
            ]
        );
        write(&folder, "nothing\n");
        assert_eq!(values(&mut load), [(Scope::Machine, None)]);
    }

    proptest! {
        #[test]
        fn loads_are_ratios(ticks in proptest::collection::vec(any::<u64>(), 20)) {
            let folder = tempfile::tempdir().unwrap();
            let line = |of: &[u64]| {
                let words: Vec<String> = of.iter().map(u64::to_string).collect();
                format!("cpu0 {}\n", words.join(" "))
            };
            write(&folder, &line(&ticks[..10]));
            let mut load = CpuLoad::new(&System::at(folder.path()), &nodes());
            write(&folder, &line(&ticks[10..]));
            for (scope, value) in values(&mut load) {
                prop_assert!(value.is_none_or(|v| (0.0..=1.0).contains(&v)), "{} {:?}", scope, value);
            }
        }
    }
}
