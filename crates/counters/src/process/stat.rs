//! `/proc/PID/stat` and `/proc/PID/task/TID/stat`.

use crate::{Error, Result};

/// What we use of one line, proc(5).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stat {
    /// The command's name, at most 15 bytes of it.
    pub name: String,
    /// `R` running, `S` sleeping, `D` waiting for a device, `Z` ended and not yet collected, ...
    pub state: char,
    /// The process that started it, or that has taken it over.
    pub parent: u32,
    /// Flags of the kernel.
    pub flags: u64,
    /// Pages that were there already or only had to be zeroed.
    pub minor_faults: u64,
    /// Pages that had to be read.
    pub major_faults: u64,
    /// Time on a cpu, in user code and in the kernel, in clock ticks.
    pub ticks: u64,
    /// The same of its children that have ended and were collected, and of theirs.
    pub children_ticks: u64,
    /// How many threads the process has.
    pub threads: u64,
    /// When it started, in clock ticks since the machine did: with its number, its identity.
    pub start: u64,
    /// Address space in bytes.
    pub virtual_bytes: u64,
    /// Pages in memory; the kernel counts them approximately.
    pub resident_pages: u64,
    /// The cpu it runs on or ran on last.
    pub cpu: Option<u32>,
}

/// The flag of the kernel's own threads, `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    /// Reads a line; `what` names it in errors.
    ///
    /// # Errors
    ///
    /// [`Error::Parse`] where it is not such a line.
    ///
    /// ```
    /// let line = b"7 (a) b) R 1 7 7 0 -1 4194304 12 0 3 0 40 2 0 0 20 0 5 0 900 4096 2 \
    ///     18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0\n";
    /// let stat = counters::Stat::parse(line, "stat")?;
    /// assert_eq!((stat.name.as_str(), stat.state, stat.ticks), ("a) b", 'R', 42));
    /// assert_eq!((stat.start, stat.threads, stat.cpu), (900, 5, Some(3)));
    /// # Ok::<(), counters::Error>(())
    /// ```
    pub fn parse(line: &[u8], what: &str) -> Result<Stat> {
        let wrong = |why: &str| Error::parse(what, 1, why);
        // The name is whatever the process likes, parentheses and line feeds included.
        let open = line.iter().position(|byte| *byte == b'(');
        let close = line.iter().rposition(|byte| *byte == b')');
        let (Some(open), Some(close)) = (open, close) else {
            return Err(wrong("there is no name in parentheses"));
        };
        if open > close {
            return Err(wrong("there is no name in parentheses"));
        }
        let rest = String::from_utf8_lossy(&line[close + 1..]);
        // Field 3 of the manual is the first here.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| -> Result<u64> {
            let field = fields
                .get(at - 3)
                .ok_or_else(|| wrong("fields are missing"))?;
            field
                .parse()
                .map_err(|_| wrong(&format!("field {at} is not a number")))
        };
        let state = fields.first().and_then(|state| state.chars().next());
        Ok(Stat {
            name: String::from_utf8_lossy(&line[open + 1..close]).into_owned(),
            state: state.ok_or_else(|| wrong("the state is missing"))?,
            // Orphans of another namespace have 0.
            parent: u32::try_from(number(4)?).unwrap_or(0),
            flags: number(9)?,
            minor_faults: number(10)?,
            major_faults: number(12)?,
            ticks: number(14)?.saturating_add(number(15)?),
            children_ticks: number(16)?.saturating_add(number(17)?),
            threads: number(20)?,
            start: number(22)?,
            virtual_bytes: number(23)?,
            resident_pages: number(24)?,
            cpu: number(39).ok().and_then(|cpu| u32::try_from(cpu).ok()),
        })
    }

    /// Whether it has ended and only waits to be collected. A process whose main thread has
    /// ended before the others goes on.
    pub fn ended(&self) -> bool {
        self.main_ended() && self.threads <= 1
    }

    /// Whether its main thread, or the thread itself, has ended.
    pub fn main_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Whether it is a thread of the kernel.
    pub fn of_kernel(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(name: &[u8], fields: &[u64]) -> Vec<u8> {
        let mut line = b"41 (".to_vec();
        line.extend(name);
        line.extend(b") S");
        for field in fields {
            line.extend(format!(" {field}").bytes());
        }
        line.push(b'\n');
        line
    }

    #[test]
    fn names_are_what_processes_like() {
        let fields: Vec<u64> = (4..53).collect();
        for name in [
            &b"x"[..],
            b"",
            b"a b",
            b") R 1",
            b"((",
            b"\xff\xfe",
            b"two\nlines",
        ] {
            let stat = Stat::parse(&line(name, &fields), "stat").unwrap();
            assert_eq!(stat.name, String::from_utf8_lossy(name));
            assert_eq!((stat.state, stat.parent), ('S', 4));
            assert_eq!((stat.minor_faults, stat.major_faults), (10, 12));
            assert_eq!((stat.ticks, stat.threads, stat.start), (14 + 15, 20, 22));
            assert_eq!(stat.children_ticks, 16 + 17);
            assert_eq!((stat.virtual_bytes, stat.resident_pages), (23, 24));
            assert_eq!(stat.cpu, Some(39));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases: [(&[u8], &str); 5] = [
            (b"", "name"),
            (b") (", "name"),
            (b"1 (a)", "state"),
            (b"1 (a) S 1 2", "missing"),
            (
                b"1 (a) S 1 2 3 4 5 6 x 8 9 10 11 12 13 14 15 16 17 18 19",
                "field 10",
            ),
        ];
        for (text, part) in cases {
            let error = Stat::parse(text, "/proc/1/stat").unwrap_err().to_string();
            assert!(
                error.contains(part) && error.contains("/proc/1/stat"),
                "{error}"
            );
        }
    }

    #[test]
    fn our_own() {
        let text = std::fs::read("/proc/self/stat").unwrap();
        let stat = Stat::parse(&text, "stat").unwrap();
        assert!(!stat.of_kernel() && !stat.ended());
        assert!(stat.threads >= 1 && stat.resident_pages > 0 && stat.start > 0);
        assert!(stat.cpu.is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Stat::parse(&bytes, "x");
        }
    }
}
