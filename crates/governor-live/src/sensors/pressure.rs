//! The share of the time in which some task waited for a cpu, from pressure stall information (PSI): that of the
//! target's control group in version 2, else of the whole machine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use governor::Measure;

use crate::group::cgroup::{Kind, Tree};

const MACHINE: &str = "/proc/pressure/cpu";

/// Reads one line of one file.
#[derive(Debug)]
pub(crate) struct Pressure {
    file: Result<File, String>,
    source: &'static str,
    /// Microseconds in which some task waited, and when they were read.
    last: Option<(u64, Instant)>,
}

impl Pressure {
    pub(crate) fn new(tree: Option<&Tree>) -> Pressure {
        let group = tree.filter(|tree| tree.kind() == Kind::Two);
        let group = group.map(|tree| tree.folder.join("cpu.pressure"));
        Pressure::at(group.as_deref(), Path::new(MACHINE))
    }

    fn at(group: Option<&Path>, machine: &Path) -> Pressure {
        let (file, source) = match group.and_then(|path| File::open(path).ok()) {
            Some(file) => (Ok(file), "cpu.pressure of the group"),
            None => (
                File::open(machine).map_err(|error| error.to_string()),
                MACHINE,
            ),
        };
        Pressure {
            file,
            source,
            last: None,
        }
    }

    /// The share of the time since the last call.
    pub(crate) fn read(&mut self) -> Measure {
        let not = |why: &str| Measure::unavailable("ratio", self.source, why);
        let file = match &self.file {
            Ok(file) => file,
            Err(why) => return not(why),
        };
        let mut buffer = [0; 256];
        let bytes = file.read_at(&mut buffer, 0);
        // A kernel that has it switched off says so here.
        let total = match bytes {
            Ok(bytes) => total(&buffer[..bytes]),
            Err(error) => return not(&error.to_string()),
        };
        let Some(total) = total else {
            return not("there is no line 'some' with a total");
        };
        let now = Instant::now();
        match self.last.replace((total, now)) {
            Some((before, at)) if now > at => {
                let waited = total.saturating_sub(before) as f64 * 1e-6;
                let share = waited / (now - at).as_secs_f64();
                Measure::new(share.min(1.0), "ratio", self.source)
            }
            _ => not("it takes a second look"),
        }
    }
}

/// Microseconds in which some task waited.
fn total(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let word = line
        .split(' ')
        .find_map(|word| word.strip_prefix("total="))?;
    word.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn the_share_of_the_time_since_the_last_look() {
        let line = |total| {
            format!(
                "some avg10=97.23 avg60=1.00 avg300=85.70 total={total}\nfull avg10=0 total=5\n"
            )
        };
        let (group, machine) = (file(&line(1000)), file(&line(7)));
        let mut pressure = Pressure::at(Some(group.path()), machine.path());
        let first = pressure.read();
        assert_eq!(first.value, None);
        assert!(first.unavailable.unwrap().contains("second look"));
        let still = pressure.read();
        assert_eq!(
            (still.value, &*still.source),
            (Some(0.0), "cpu.pressure of the group")
        );
        // More than there was time for: rounding.
        std::fs::write(group.path(), line(1_000_000_000)).unwrap();
        assert_eq!(pressure.read().value, Some(1.0));
    }

    #[test]
    fn without_a_group_the_machine_and_without_both_a_reason() {
        let machine = file("some avg10=0.00 total=3\n");
        let mut pressure = Pressure::at(Some(Path::new("/no/group")), machine.path());
        assert_eq!(pressure.read().source, MACHINE);
        for wrong in [
            file(""),
            file("full total=3\n"),
            file("some avg10=1\n"),
            file("some total=x\n"),
        ] {
            let mut pressure = Pressure::at(None, wrong.path());
            assert!(pressure.read().unavailable.unwrap().contains("'some'"));
        }
        let mut none = Pressure::at(None, Path::new("/no/pressure"));
        assert!(
            none.read()
                .unavailable
                .is_some_and(|why| why.contains("No such file"))
        );
    }
}
