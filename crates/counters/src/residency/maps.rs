//! `/proc/PID/maps` and `/proc/PID/smaps`.

use std::collections::BTreeMap;

use crate::{Error, Result};

/// One mapping, proc(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Map {
    pub start: u64,
    /// The first address that is not in it.
    pub end: u64,
    /// May be read or written at all.
    pub usable: bool,
    /// May be executed.
    pub executable: bool,
    /// Writes are the process's own and nobody else's.
    pub private: bool,
    /// A path, a name in brackets, or nothing.
    pub name: String,
}

/// The mappings of a text in the format of `/proc/PID/maps`, by address.
pub(crate) fn parse(text: &str, what: &str) -> Result<Vec<Map>> {
    let lines = text.lines().enumerate();
    let line = |(at, line): (usize, &str)| {
        header(line).ok_or_else(|| {
            Error::parse(
                what,
                at + 1,
                "start-end, rights, offset, device, inode and name are expected",
            )
        })
    };
    lines.map(line).collect()
}

/// A line of `maps`, which is also the first line of a mapping in `smaps`.
fn header(line: &str) -> Option<Map> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let (rights, mut rest) = rest.split_once(' ')?;
    // Offset, device, inode.
    for _ in 0..3 {
        rest = rest.trim_start();
        rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
    }
    let rights = rights.as_bytes();
    if start > end || rights.len() != 4 {
        return None;
    }
    Some(Map {
        start,
        end,
        executable: rights[2] == b'x',
        usable: rights[..3] != *b"---",
        private: rights[3] == b'p',
        name: rest.trim_start().to_owned(),
    })
}

/// What `smaps` knows of one mapping, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// In memory, huge pages of hugetlbfs apart.
    pub resident: u64,
    /// Of what is in memory, in huge pages of either kind.
    pub huge: u64,
}

/// By the start of each mapping.
pub(crate) fn parse_smaps(text: &str) -> BTreeMap<u64, Held> {
    let mut all = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let key = words.next().unwrap_or_default();
        if !key.ends_with(':') {
            current = header(line).map(|map| map.start);
            if let Some(start) = current {
                all.insert(start, Held::default());
            }
            continue;
        }
        let bytes = words.next().and_then(|kib| kib.parse::<u64>().ok());
        let bytes = bytes.unwrap_or(0).saturating_mul(1024);
        let Some(held) = current.and_then(|start| all.get_mut(&start)) else {
            continue;
        };
        match key {
            "Rss:" => held.resident = bytes,
            "AnonHugePages:" | "ShmemPmdMapped:" | "FilePmdMapped:" | "Shared_Hugetlb:"
            | "Private_Hugetlb:" => held.huge = held.huge.saturating_add(bytes),
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_as_the_manual_shows_them() {
        // proc(5), man-pages 6.03, the example of /proc/[pid]/maps.
        let text = "\
00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon
00651000-00652000 r--p 00051000 08:02 173521      /usr/bin/dbus-daemon
00652000-00655000 rw-p 00052000 08:02 173521      /usr/bin/dbus-daemon
00e03000-00e24000 rw-p 00000000 00:00 0           [heap]
00e24000-011f7000 rw-p 00000000 00:00 0           [heap]
35b1800000-35b1820000 r-xp 00000000 08:02 135522  /usr/lib64/ld-2.15.so
35b1a21000-35b1a22000 rw-p 00000000 00:00 0
f2c6ff8c000-7f2c7078c000 rw-p 00000000 00:00 0    [stack:986]
7fffb2c0d000-7fffb2c2e000 rw-p 00000000 00:00 0   [stack]
7fffb2d48000-7fffb2d49000 r-xp 00000000 00:00 0   [vdso]
";
        let maps = parse(text, "maps").unwrap();
        assert_eq!(maps.len(), 10);
        assert_eq!(maps[0].name, "/usr/bin/dbus-daemon");
        assert!(maps[0].executable && !maps[1].executable);
        assert_eq!((maps[3].start, maps[3].end), (0xe03000, 0xe24000));
        assert_eq!(
            (maps[6].name.as_str(), maps[8].name.as_str()),
            ("", "[stack]")
        );
        assert!(maps.iter().all(|map| map.usable && map.private));
    }

    #[test]
    fn rights_and_names_with_blanks() {
        let text = "10-20 ---p 0 00:00 0 \n20-30 rw-s 0 00:01 7     /memfd:a b (deleted)\n";
        let maps = parse(text, "maps").unwrap();
        assert!(!maps[0].usable && maps[1].usable && !maps[1].private);
        assert!(!maps[1].executable);
        assert_eq!(maps[1].name, "/memfd:a b (deleted)");
        for wrong in [
            "x",
            "10-20",
            "20-10 rw-p 0 0 0",
            "10-2g rw-p 0 0 0",
            "10-20 rw 0 0 0",
        ] {
            let error = parse(&format!("{text}{wrong}\n"), "/proc/3/maps").unwrap_err();
            assert!(
                error.to_string().contains("/proc/3/maps, line 3"),
                "{error}"
            );
        }
    }

    #[test]
    fn huge_pages_of_our_own_mappings() {
        let starts = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            parse(&maps, "maps")
                .unwrap()
                .into_iter()
                .map(|map| map.start)
        };
        let before: Vec<u64> = starts().collect();
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let held = parse_smaps(&text);
        // Other tests' threads come and go: what was there before and after was there between, but for the
        // few whose place another took.
        let after: Vec<u64> = starts().collect();
        let stayed: Vec<u64> = before
            .into_iter()
            .filter(|start| after.contains(start))
            .collect();
        let missing = stayed
            .iter()
            .filter(|start| !held.contains_key(start))
            .count();
        assert!(
            missing * 4 <= stayed.len(),
            "{missing} of {} are missing",
            stayed.len()
        );
        assert!(held.values().any(|held| held.resident > 0));
        assert!(held.values().all(|held| held.huge <= held.resident));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "([0-9a-f]{1,17}-[0-9a-f]{1,17} [rwxp-]{3,5} [0-9: ]{0,9})?.{0,30}\n") {
            let _ = parse(&text, "x");
            let _ = parse_smaps(&text);
        }
    }
}
