//! How many threads could run and have no cpu: what they waited, from `schedstat`.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use counters::Schedstat;

use super::proc;
use super::target::Group;
use crate::Measure;

/// The most threads that are read at one check. Where there are more, those that ran lately stand
/// for the others.
const PANEL: usize = 128;

/// How often it is looked up which threads there are.
const LIST: Duration = Duration::from_millis(500);

/// Processes up to which all of their threads are listed.
const FEW: usize = 8;

/// Waiting time of a group.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    files: HashMap<u32, (File, u64)>,
    listed: Option<Instant>,
    read: Option<Instant>,
    /// How many threads one of those that are read stands for.
    scale: f64,
}

impl Waiting {
    /// Threads that waited, on average since the last call.
    pub(crate) fn read(&mut self, group: &Group) -> Measure {
        let (unit, source) = ("threads", "schedstat");
        let now = Instant::now();
        let elapsed = self.read.replace(now).map(|last| now - last);
        let mut waited = 0;
        let mut buffer = [0; 128];
        self.files.retain(|_, (file, last)| {
            // A thread that has ended gives an error or nothing.
            let Ok(bytes) = file.read_at(&mut buffer, 0) else {
                return false;
            };
            let Ok(stat) = Schedstat::parse(&buffer[..bytes], source) else {
                return false;
            };
            waited += stat.wait.saturating_sub(*last);
            *last = stat.wait;
            true
        });
        let known = self.files.len();
        if group.came || self.listed.is_none_or(|at| now - at >= LIST) {
            self.listed = Some(now);
            self.list(group);
        }
        match elapsed {
            _ if known == 0 && self.files.is_empty() => {
                Measure::unavailable(unit, source, "the kernel does not count it")
            }
            Some(elapsed) if known > 0 && !elapsed.is_zero() => {
                let waiting = Duration::from_nanos(waited).as_secs_f64() / elapsed.as_secs_f64();
                let source = if self.scale > 1.0 {
                    format!("schedstat of {known} threads")
                } else {
                    source.to_owned()
                };
                Measure::new(waiting * self.scale, unit, &source)
            }
            _ => Measure::unavailable(unit, source, "it takes a second look"),
        }
    }

    /// Which threads are to be read from now on.
    fn list(&mut self, group: &Group) {
        let mut wanted: Vec<(u32, u32)> = Vec::new();
        let mut count = 0;
        if group.members.len() <= FEW {
            for pid in group.members.keys() {
                for thread in proc::threads(*pid) {
                    wanted.push((*pid, thread));
                }
            }
            count = wanted.len();
            wanted.truncate(PANEL);
        } else {
            let active = group.members.values().filter(|member| member.active);
            for member in active {
                count += 1;
                if wanted.len() < PANEL {
                    wanted.push((member.identity.pid, member.identity.pid));
                }
            }
        }
        self.scale = count as f64 / wanted.len().max(1) as f64;
        self.files
            .retain(|thread, _| wanted.iter().any(|(_, other)| other == thread));
        for (pid, thread) in wanted {
            if self.files.contains_key(&thread) {
                continue;
            }
            let Ok(file) = File::open(format!("/proc/{pid}/task/{thread}/schedstat")) else {
                continue;
            };
            let mut buffer = [0; 128];
            let bytes = file.read_at(&mut buffer, 0).unwrap_or(0);
            if let Ok(stat) = Schedstat::parse(&buffer[..bytes], "schedstat")
                && stat.counted()
            {
                self.files.insert(thread, (file, stat.wait));
            }
        }
    }
}
