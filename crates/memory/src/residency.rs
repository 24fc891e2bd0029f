//! Page residency: the node that each page of a process is really on.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::pages;
use crate::{Error, Result};

/// Addresses per call: bounds the memory and the time in the kernel.
const BATCH: usize = 16 * 1024;

/// For each address of this process, the operating system's number of the node its page is on;
/// `None` for a page that is not in memory (never touched, swapped out, not mapped). Nothing is
/// read from the addresses, and no page is moved.
///
/// # Errors
///
/// [`Error::Residency`] where the kernel refuses to say.
pub fn residency(addresses: &[*const u8]) -> Result<Vec<Option<u32>>> {
    let addresses: Vec<usize> = addresses.iter().map(|address| address.addr()).collect();
    residency_of(0, &addresses)
}

/// As [`residency`], for addresses of the process `pid`; 0 is this one.
///
/// # Errors
///
/// [`Error::Residency`] where there is no such process, it is another user's, or the kernel
/// refuses to say.
pub fn residency_of(pid: u32, addresses: &[usize]) -> Result<Vec<Option<u32>>> {
    let mut nodes = Vec::with_capacity(addresses.len());
    let mut status = vec![0 as libc::c_int; addresses.len().min(BATCH)];
    for batch in addresses.chunks(BATCH) {
        pages::locate(pid, batch, &mut status).map_err(|source| Error::Residency { source })?;
        // Negative numbers are errors: no such page, or not a page that has a node.
        nodes.extend(
            status[..batch.len()]
                .iter()
                .map(|node| u32::try_from(*node).ok()),
        );
    }
    Ok(nodes)
}

/// One mapping of a process with its pages per node, from `/proc/PID/numa_maps`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Where it starts.
    pub address: u64,
    /// Memory policy, such as `default` or `prefer:1`.
    pub policy: String,
    /// The mapped file, if any.
    pub file: Option<String>,
    /// Whether it is the process's heap.
    pub heap: bool,
    /// Whether it is the main thread's stack.
    pub stack: bool,
    /// Pages in memory per node: (operating system's node number, pages), ascending.
    pub pages: Vec<(u32, u64)>,
    /// Of these, pages that belong to no file.
    pub anonymous: u64,
    /// Size of a page in bytes. Huge pages the system made by itself count as many small ones.
    pub page_bytes: u64,
}

impl Mapping {
    /// Bytes in memory on the node with this operating system's number.
    pub fn bytes_on(&self, os_node: u32) -> u64 {
        let pages = self.pages.iter().filter(|(node, _)| *node == os_node);
        pages
            .map(|(_, pages)| pages.saturating_mul(self.page_bytes))
            .sum()
    }
}

/// The mappings of process `pid`.
///
/// # Errors
///
/// [`Error::Read`] where there is no such process, it is another user's, or the kernel has no
/// NUMA support; [`Error::Parse`] where its format is not understood.
pub fn numa_maps(pid: u32) -> Result<Vec<Mapping>> {
    let path = PathBuf::from(format!("/proc/{pid}/numa_maps"));
    match fs::read(&path) {
        // Names of files are bytes, not always UTF-8.
        Ok(bytes) => parse(
            &String::from_utf8_lossy(&bytes),
            &path.display().to_string(),
        ),
        Err(source) => Err(Error::Read { path, source }),
    }
}

/// The mappings that a text in the format of `/proc/PID/numa_maps` lists. Words that are not
/// known are skipped: the kernel adds some from time to time.
///
/// # Errors
///
/// [`Error::Parse`] with the line that is not understood.
///
/// ```
/// let text = "7f10 prefer:1 file=/tmp/a\\040b anon=3 N0=1 N1=2 kernelpagesize_kB=4\n";
/// let mappings = memory::parse_numa_maps(text)?;
/// assert_eq!(mappings[0].pages, [(0, 1), (1, 2)]);
/// assert_eq!(mappings[0].bytes_on(1), 8192);
/// assert_eq!(mappings[0].file.as_deref(), Some("/tmp/a b"));
/// # Ok::<(), memory::Error>(())
/// ```
pub fn parse_numa_maps(text: &str) -> Result<Vec<Mapping>> {
    parse(text, "numa_maps")
}

fn parse(text: &str, what: &str) -> Result<Vec<Mapping>> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let mapping = |(at, line)| {
        mapping(line).map_err(|why| Error::Parse {
            what: what.to_owned(),
            line: at + 1,
            why,
        })
    };
    lines.map(mapping).collect()
}

fn mapping(line: &str) -> std::result::Result<Mapping, String> {
    let mut words = line.split_whitespace();
    let (Some(address), Some(policy)) = (words.next(), words.next()) else {
        return Err("an address and a policy are expected".into());
    };
    let address = u64::from_str_radix(address, 16);
    let mut mapping = Mapping {
        address: address.map_err(|_| "the address is not hexadecimal".to_owned())?,
        policy: policy.to_owned(),
        page_bytes: 4096,
        ..Mapping::default()
    };
    let mut pages = BTreeMap::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            mapping.heap |= word == "heap";
            mapping.stack |= word == "stack";
            continue;
        };
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("'{word}' is not a number"))
        };
        match key {
            "file" => mapping.file = Some(unescape(value)),
            "anon" => mapping.anonymous = number()?,
            "kernelpagesize_kB" => mapping.page_bytes = number()?.saturating_mul(1024),
            _ => {
                if let Some(node) = key.strip_prefix('N').and_then(|node| node.parse().ok()) {
                    pages.insert(node, number()?);
                }
            }
        }
    }
    mapping.pages = pages.into_iter().collect();
    Ok(mapping)
}

/// The kernel writes blanks and the like as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arena;
    use proptest::prelude::*;

    #[test]
    fn touched_pages_have_a_node_and_untouched_ones_none() {
        let page = 4096;
        let arena = crate::Reserve::new(64 * page).unwrap();
        let address = |at: usize| arena.as_ptr().wrapping_add(at * page).cast_const();
        arena.words()[0].store(1, std::sync::atomic::Ordering::Relaxed);
        let nodes = match residency(&[address(0), address(63), std::ptr::null()]) {
            Ok(nodes) => nodes,
            // A container that forbids the call: the error says so, which is all we promise.
            Err(error) => {
                assert!(error.to_string().contains("move_pages"), "{error}");
                return notrun::not_run(error);
            }
        };
        assert!(nodes[0].is_some(), "a page that was written is in memory");
        assert_eq!(nodes[1..], [None, None]);
        assert_eq!(residency(&[]).unwrap(), []);
        let many = vec![address(0); BATCH + 1];
        assert_eq!(residency(&many).unwrap(), vec![nodes[0]; BATCH + 1]);
        let ours = residency_of(std::process::id(), &[address(0).addr(), address(63).addr()]);
        assert_eq!(ours.unwrap(), [nodes[0], None]);
        let error = residency_of(i32::MAX as u32, &[address(0).addr()]).unwrap_err();
        assert!(error.to_string().contains("move_pages"), "{error}");
    }

    #[test]
    fn own_mappings_show_an_arena() {
        let bytes = 8 << 20;
        let arena = Arena::new(bytes, None).unwrap();
        // SAFETY: the whole arena is ours alone.
        unsafe { std::ptr::write_bytes(arena.as_ptr(), 1, bytes) };
        let mappings = match numa_maps(std::process::id()) {
            Ok(mappings) => mappings,
            // A kernel without NUMA: the error names the file.
            Err(error) => {
                assert!(error.to_string().contains("numa_maps"), "{error}");
                return notrun::not_run(error);
            }
        };
        let start = arena.as_ptr().addr() as u64;
        // Neighbouring mappings may have been merged into one.
        let ours = mappings
            .iter()
            .rfind(|mapping| mapping.address <= start)
            .unwrap();
        let pages: u64 = ours.pages.iter().map(|(_, pages)| pages).sum();
        assert!(pages * ours.page_bytes >= bytes as u64, "{ours:?}");
        assert!(mappings.iter().any(|mapping| mapping.file.is_some()));
        assert!(mappings.iter().any(|mapping| mapping.stack));
    }

    #[test]
    fn lines_as_the_kernel_writes_them() {
        let text = "\
562b60045000 default file=/usr/bin/head mapped=2 mapmax=2 N0=2 kernelpagesize_kB=4
7f0000000000 bind:0-1 anon=512 dirty=512 N1=500 N0=12 kernelpagesize_kB=2048
01a92000 prefer:3 heap anon=1 dirty=1 active=0 N3=1 kernelpagesize_kB=4
7ffd10000000 default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
7ffd20000000 default
";
        let mappings = parse_numa_maps(text).unwrap();
        assert_eq!(mappings.len(), 5);
        assert_eq!(mappings[1].pages, [(0, 12), (1, 500)]);
        assert_eq!(mappings[1].bytes_on(1), 500 * (2 << 20));
        assert_eq!(
            (mappings[1].anonymous, mappings[1].policy.as_str()),
            (512, "bind:0-1")
        );
        assert!(mappings[2].heap && mappings[3].stack && !mappings[0].heap);
        assert_eq!(mappings[4].pages, []);
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, part) in [
            ("zzz default\n", "line 1"),
            ("10 default\n10\n", "line 2"),
            ("10 default N0=x", "N0=x"),
            ("10 default N0=99999999999999999999999", "N0="),
        ] {
            let error = parse_numa_maps(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn no_such_process() {
        let error = numa_maps(u32::MAX).unwrap_err().to_string();
        assert!(error.contains("/proc/4294967295/numa_maps"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "([0-9a-f]{1,20} )?[a-zN=0-9:/\\\\ ]{0,60}\n.{0,40}") {
            let _ = parse_numa_maps(&text);
        }

        #[test]
        fn what_is_written_is_read(
            address in any::<u64>(),
            pages in proptest::collection::btree_map(0u32..300, any::<u64>(), 0..5),
        ) {
            let words: Vec<String> = pages.iter().map(|(n, pages)| format!("N{n}={pages}")).collect();
            let line = format!("{address:x} default {} kernelpagesize_kB=64", words.join(" "));
            let read = parse_numa_maps(&line).unwrap();
            prop_assert_eq!(read[0].address, address);
            prop_assert_eq!(&read[0].pages, &pages.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(read[0].page_bytes, 65536);
        }
    }
}
