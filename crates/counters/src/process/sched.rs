//! `schedstat` and `sched` of a thread.

use crate::{Error, Result};

/// `/proc/PID/task/TID/schedstat`, `Documentation/scheduler/sched-stats.rst`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Time on a cpu, in nanoseconds.
    pub run: u64,
    /// Time ready to run and without a cpu, in nanoseconds.
    pub wait: u64,
    /// How often it was given a cpu.
    pub slices: u64,
}

impl Schedstat {
    /// Reads a line; `what` names it in errors.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`] where it is not such a line.
    pub fn parse(text: &[u8], what: &str) -> Result<Schedstat> {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let mut numbers = text
            .split_ascii_whitespace()
            .map_while(|word| word.parse().ok());
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(run), Some(wait), Some(slices)) => Ok(Schedstat { run, wait, slices }),
            _ => Err(Error::parse(what, 1, "three numbers are expected")),
        }
    }

    /// Whether the kernel counts at all: all zero is what one writes that does not.
    pub fn counted(&self) -> bool {
        *self != Schedstat::default()
    }
}

/// How often the thread was moved to another cpu, from `/proc/PID/task/TID/sched`; `None` where
/// the kernel does not say.
pub fn migrations(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    // The first line is the thread's name, which may be anything.
    let (_, lines) = text.split_once('\n')?;
    lines.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim_end() == "se.nr_migrations").then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers() {
        let read = Schedstat::parse(b"85514 2784248 2\n", "schedstat").unwrap();
        assert_eq!((read.run, read.wait, read.slices), (85514, 2_784_248, 2));
        assert!(read.counted());
        assert!(!Schedstat::parse(b"0 0 0\n", "schedstat").unwrap().counted());
        for wrong in [&b""[..], b"1 2", b"1 x 3", b"\xff"] {
            let error = Schedstat::parse(wrong, "/proc/9/schedstat").unwrap_err();
            assert!(error.to_string().contains("/proc/9/schedstat"));
        }
    }

    #[test]
    fn the_line_of_migrations() {
        let text = b"se.nr_migrations : 9 (7, #threads: 1)\n-----\n\
            se.exec_start                                :        386165.571727\n\
            se.nr_migrations                             :                   41\n\
            nr_switches                                  :                    1\n";
        assert_eq!(migrations(text), Some(41));
        for none in [
            &b""[..],
            b"cat (1, #threads: 1)\n",
            b"a\nse.nr_migrations : x\n",
        ] {
            assert_eq!(migrations(none), None);
        }
    }

    #[test]
    fn our_own() {
        let text = std::fs::read("/proc/thread-self/schedstat").unwrap();
        assert!(Schedstat::parse(&text, "schedstat").unwrap().counted());
        match std::fs::read("/proc/thread-self/sched") {
            Ok(text) => assert!(migrations(&text).is_some()),
            Err(error) => notrun::not_run(format!("this kernel has no /proc/PID/sched: {error}")),
        }
    }
}
