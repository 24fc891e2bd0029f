//! Where loads got their data from, sampled by the processor.

use crate::perf::event::{Event, Of};
use crate::perf::ring::{Record, Ring};
use crate::perf::software::reason;
use crate::perf::unit::{Described, Pmu};
use crate::{Nodes, Reading, Reason, Scope, Sensor, Source, System, Unit, Value, Why};

/// Operations or loads from one sample to the next; odd, so as not to beat with loops.
const PERIOD: u64 = 100_003;

/// `PERF_SAMPLE_TID | PERF_SAMPLE_DATA_SRC`
const SAMPLE: u64 = 1 << 1 | 1 << 15;

/// The names of the readings, in the order of [`Origin`].
const NAMES: [&str; 4] = [
    "loads.local_dram",
    "loads.remote_dram",
    "loads.remote_cache",
    "loads.other",
];

/// Samples of a process's loads by where their data came from: `loads.local_dram`,
/// `loads.remote_dram`, `loads.remote_cache` and `loads.other`. Counts are of samples, about one
/// per 100,000 operations (AMD's IBS) or loads (Intel's `mem-loads`); ratios are what they are for.
///
/// All cpus are sampled, which the kernel allows to those with CAP_PERFMON, or everybody where
/// `kernel.perf_event_paranoid` is 0 or less.
///
/// Never run on hardware that has it: the ring of samples is tested with the kernel's clock.
#[derive(Debug)]
pub struct LoadSamples {
    process: u32,
    cpus: Result<Vec<(Event, Ring)>, Reason>,
    counts: [u64; NAMES.len()],
    lost: u64,
}

/// Where a load got its data from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    LocalDram,
    RemoteDram,
    RemoteCache,
    Other,
}

impl LoadSamples {
    /// Of process `pid`, on the cpus of these nodes; sampling begins now.
    pub fn new(system: &System, nodes: &Nodes, pid: u32) -> LoadSamples {
        LoadSamples {
            process: pid,
            cpus: event(system).and_then(|described| open(system, nodes, described)),
            counts: [0; NAMES.len()],
            lost: 0,
        }
    }

    fn take(&mut self) {
        let (process, counts, lost) = (self.process, &mut self.counts, &mut self.lost);
        for (_, ring) in self.cpus.iter_mut().flatten() {
            ring.take(|record| match record {
                Record::Sample(body) => {
                    if let Some((pid, data)) = sample(body)
                        && pid == process
                        && let Some(origin) = origin(data)
                    {
                        counts[origin as usize] += 1;
                    }
                }
                Record::Lost(samples) => *lost += samples,
            });
        }
    }

    /// Samples, of any process, that came faster than they were read.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// The event that samples loads: AMD's, else Intel's.
fn event(system: &System) -> Result<Described, Reason> {
    if let Ok(pmu) = Pmu::open(system, "ibs_op") {
        let mut described = pmu.terms("", "ibs_op")?;
        described.wanted.precise = 0;
        return Ok(described);
    }
    let cpu = Pmu::open(system, "cpu").and_then(|pmu| pmu.event(system, "mem-loads"));
    let mut described = cpu.map_err(|_| Reason {
        why: Why::Absent,
        text: "this processor does not sample loads (neither ibs_op nor cpu/mem-loads/ is described in /sys/bus/event_source/devices; virtual machines show none)".to_owned(),
    })?;
    described.wanted.precise = 2;
    Ok(described)
}

fn open(
    system: &System,
    nodes: &Nodes,
    described: Described,
) -> Result<Vec<(Event, Ring)>, Reason> {
    if !system.is_real() {
        return Err(Reason {
            why: Why::Absent,
            text: "events are counted on the running system only".to_owned(),
        });
    }
    let mut wanted = described.wanted;
    wanted.period = PERIOD;
    wanted.sample = SAMPLE;
    let ring = |cpu| {
        let event = Event::open(wanted, Of::Cpu(cpu))?;
        let ring = Ring::new(&event)?;
        Ok((event, ring))
    };
    let rings: std::io::Result<Vec<_>> = nodes.cpus().map(ring).collect();
    rings.map_err(|error| reason(&error))
}

/// Process and data source of a sample of [`SAMPLE`].
fn sample(body: &[u8]) -> Option<(u32, u64)> {
    let process = u32::from_ne_bytes(body.get(..4)?.try_into().ok()?);
    let data = u64::from_ne_bytes(body.get(8..16)?.try_into().ok()?);
    Some((process, data))
}

/// What a data source means, `union perf_mem_data_src` in `linux/perf_event.h`; `None` for what
/// is not a load.
fn origin(data: u64) -> Option<Origin> {
    const LOAD: u64 = 0x02;
    const LOCAL_RAM: u64 = 0x80;
    const REMOTE_RAM: u64 = 0x100 | 0x200;
    const REMOTE_CACHE: u64 = 0x400 | 0x800;
    let (operation, level) = (data & 0x1f, data >> 5 & 0x3fff);
    let (number, remote) = (data >> 33 & 0xf, data >> 37 & 1 == 1);
    if operation & LOAD == 0 {
        return None;
    }
    Some(if level & REMOTE_RAM != 0 {
        Origin::RemoteDram
    } else if level & REMOTE_CACHE != 0 {
        Origin::RemoteCache
    } else if level & LOCAL_RAM != 0 {
        Origin::LocalDram
    } else {
        // PERF_MEM_LVLNUM_RAM, and the levels of caches.
        match (number, remote) {
            (0xd, true) => Origin::RemoteDram,
            (0xd, false) => Origin::LocalDram,
            (0x1..=0x4 | 0xb, true) => Origin::RemoteCache,
            _ => Origin::Other,
        }
    })
}

impl Sensor for LoadSamples {
    fn read(&mut self) -> Vec<Reading> {
        self.take();
        let reading = |(at, name): (usize, &&'static str)| {
            let value = match &self.cpus {
                Ok(_) => Value::Count(self.counts[at]),
                Err(reason) => Value::Unavailable(reason.clone()),
            };
            let scope = Scope::Process(self.process);
            Reading::new(*name, value, Unit::Events, Source::Samples, scope)
        };
        NAMES.iter().enumerate().map(reading).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values composed from the constants of linux/perf_event.h: operation, level from bit 5,
    /// number of the level from bit 33, remote at bit 37.
    #[test]
    fn sources_mean_what_the_header_says() {
        let (load, store, hit) = (0x02, 0x04, 0x02u64);
        let level = |level: u64| load | (hit | level) << 5;
        assert_eq!(origin(level(0x80)), Some(Origin::LocalDram));
        assert_eq!(origin(level(0x100)), Some(Origin::RemoteDram));
        assert_eq!(origin(level(0x200)), Some(Origin::RemoteDram));
        assert_eq!(origin(level(0x400)), Some(Origin::RemoteCache));
        assert_eq!(origin(level(0x08)), Some(Origin::Other));
        assert_eq!(origin(store | (hit | 0x80) << 5), None);
        let number = |number: u64, remote: u64| load | 0x01 << 5 | number << 33 | remote << 37;
        assert_eq!(origin(number(0xd, 0)), Some(Origin::LocalDram));
        assert_eq!(origin(number(0xd, 1)), Some(Origin::RemoteDram));
        assert_eq!(origin(number(0xb, 1)), Some(Origin::RemoteCache));
        assert_eq!(origin(number(0x3, 0)), Some(Origin::Other));
        assert_eq!(origin(number(0xf, 0)), Some(Origin::Other));
        assert_eq!([Origin::LocalDram as usize, Origin::Other as usize], [0, 3]);
    }

    #[test]
    fn short_samples_are_left_out() {
        let mut body = 7u32.to_ne_bytes().to_vec();
        body.extend(9u32.to_ne_bytes());
        body.extend(0x1002u64.to_ne_bytes());
        assert_eq!(sample(&body), Some((7, 0x1002)));
        assert_eq!(sample(&body[..15]), None);
    }

    #[test]
    fn where_nothing_samples_it_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let nodes = Nodes::new(&topology::Machine::parse("1x1").unwrap());
        for system in [System::at(folder.path()), System::real()] {
            let readings = LoadSamples::new(&system, &nodes, std::process::id()).read();
            assert_eq!(readings.len(), NAMES.len());
            for reading in readings {
                if let Value::Unavailable(reason) = &reading.value {
                    assert!(reason.text.len() > 20, "{reading}");
                } else {
                    assert!(system.is_real());
                }
            }
        }
    }
}
