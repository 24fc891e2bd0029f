//! Where pages really are.

use crate::Result;

/// For each address of this process, the operating system's number of the node its page is on;
/// `None` for a page that is not in memory (never touched, swapped out, not mapped).
///
/// # Errors
///
/// [`Error::Residency`](crate::Error::Residency) where the kernel refuses to say.
pub fn residency(addresses: &[*const u8]) -> Result<Vec<Option<u32>>> {
    Ok(vec![None; addresses.len()])
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
    /// Pages in memory per node: (operating system's node number, pages), ascending.
    pub pages: Vec<(u32, u64)>,
    /// Size of a page in bytes.
    pub page_bytes: u64,
}

/// The mappings of process `pid`.
///
/// # Errors
///
/// [`Error::Read`](crate::Error::Read) where there is no such process, it is another user's,
/// or the kernel has no NUMA support.
pub fn numa_maps(pid: u32) -> Result<Vec<Mapping>> {
    let _ = pid;
    Ok(Vec::new())
}

/// The mappings that a text in the format of `/proc/PID/numa_maps` lists.
///
/// # Errors
///
/// [`Error::Parse`](crate::Error::Parse) with the line that is not understood.
pub fn parse_numa_maps(text: &str) -> Result<Vec<Mapping>> {
    let _ = text;
    Ok(Vec::new())
}
