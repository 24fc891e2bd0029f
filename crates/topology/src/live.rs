//! The running system.

use crate::machine::{Core, Node, Source};
use crate::{Error, Machine, Result};

/// The live machine; one node with the allowed cpus where hwloc fails.
pub(crate) fn machine() -> Result<Machine> {
    let cpus = allowed()?;
    let node = Node {
        index: 0,
        os_index: 0,
        cores: cpus
            .iter()
            .map(|&cpu| Core {
                cpus: vec![cpu],
                package: None,
            })
            .collect(),
        memory_bytes: 0,
        free_bytes: None,
        caches: Vec::new(),
    };
    Machine::assemble("live".into(), Source::Live, vec![node], None, Vec::new())
}

/// The cpus this process may run on, ascending.
fn allowed() -> Result<Vec<u32>> {
    /// The kernel refuses masks shorter than its own; no kernel is built for more cpus.
    const WORDS: usize = 8192 / 64;
    let mut mask = [0u64; WORDS];
    // SAFETY: the kernel writes at most `size_of_val(&mask)` bytes into `mask`, which is ours.
    let written = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            size_of_val(&mask),
            mask.as_mut_ptr(),
        )
    };
    if written <= 0 {
        let why = std::io::Error::last_os_error().to_string();
        return Err(Error::Live { why });
    }
    let bits = 0..(WORDS * 64);
    Ok(bits
        .filter(|bit| mask[bit / 64] >> (bit % 64) & 1 == 1)
        .map(|bit| bit as u32)
        .collect())
}
