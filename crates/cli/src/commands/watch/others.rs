//! What the machine counts, beside the process that is watched.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use counters::{
    Board, CoreEvents, CpuLoad, LoadSamples, Nodes, Powercap, Pressure, Process, Reading, Resctrl,
    System, Uncore, Value,
};

use crate::failure::Failure;

/// How often they are read: often enough for energy counters, which overflow.
const EVERY: Duration = Duration::from_secs(1);

/// Sensors of the machine, and of the hardware for the process.
pub struct Others {
    board: Board,
    last: Vec<Reading>,
}

impl Others {
    /// Starts counting.
    ///
    /// # Errors
    ///
    /// If there is no such process.
    pub fn new(nodes: &Nodes, pid: u32) -> Result<Others, Failure> {
        let system = System::real();
        let process = Process::open(&system, pid)?;
        let mut board = Board::new();
        board.add(CoreEvents::new(&system, &process, &[])?, EVERY);
        // The kernel's ring buffers of samples are short.
        board.add(LoadSamples::new(&system, nodes, pid), Duration::ZERO);
        board.add(Uncore::new(&system, nodes), EVERY);
        board.add(Resctrl::new(&system, ""), EVERY);
        board.add(Powercap::new(&system), EVERY);
        board.add(Pressure::new(&system), EVERY);
        board.add(CpuLoad::new(&system, nodes), EVERY);
        Ok(Others {
            board,
            last: Vec::new(),
        })
    }

    /// Reads the sensors that are due.
    pub fn read(&mut self) {
        self.last = self.board.read(Instant::now());
    }

    /// The last readings, by sensor.
    pub fn readings(&self) -> &[Reading] {
        &self.last
    }

    /// Prints a line for each value, and one for each reason why there is none.
    pub fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for reading in &self.last {
            match &reading.value {
                Value::Unavailable(reason) => {
                    let names = missing.entry(&reason.text).or_default();
                    if !names.contains(&reading.name.as_ref()) {
                        names.push(&reading.name);
                    }
                }
                _ => writeln!(out, "  {reading}")?,
            }
        }
        for (why, names) in missing {
            writeln!(out, "  not counted here: {}: {why}", names.join(", "))?;
        }
        Ok(())
    }
}
