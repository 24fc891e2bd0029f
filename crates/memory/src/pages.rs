//! The kernel's calls about pages: which nodes a range takes its pages from, which node each page is on, and moving
//! pages to other nodes. The only place of the workspace that makes these calls; numbers of nodes are the operating
//! system's.

use std::io;

/// Nodes that a mask of nodes has room for: more than any kernel is built for.
const MAX_OS_NODES: usize = 1024;

/// Which node a page is taken from when it is first touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The lowest of the nodes while it has free memory, then any node.
    Prefer,
    /// One of the nodes, never another.
    Bind,
    /// The nodes in turn, page by page.
    Interleave,
}

/// Which pages may be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Movable {
    /// Those that no other process maps.
    Private,
    /// Those that other processes map as well, too. Needs the capability `CAP_SYS_NICE`.
    Shared,
}

/// Sets the policy by which the `bytes` at the address `start` (that of a page) of this process take pages from now on.
/// Pages that are there already stay where they are.
///
/// # Errors
///
/// `EINVAL` for a node that the machine has not, or an address within a page; `EFAULT` for a range that is not mapped;
/// `EPERM` or `ENOSYS` where a container or the kernel has no such call.
pub fn set_policy(start: usize, bytes: usize, policy: Policy, nodes: &[u32]) -> io::Result<()> {
    const WORD: usize = u64::BITS as usize;
    let mut mask = [0u64; MAX_OS_NODES / WORD];
    for &node in nodes {
        let word = mask.get_mut(node as usize / WORD);
        let word = word.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word |= 1 << (node as usize % WORD);
    }
    let mode = match policy {
        Policy::Prefer => libc::MPOL_PREFERRED,
        Policy::Bind => libc::MPOL_BIND,
        Policy::Interleave => libc::MPOL_INTERLEAVE,
    };
    // SAFETY: the kernel reads `MAX_OS_NODES` bits of `mask` (it counts one more), and checks the range itself. A policy
    // changes where pages come from, never what is in them, so that it does no harm to whoever owns the range.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start,
            bytes,
            mode,
            mask.as_ptr(),
            MAX_OS_NODES + 1,
            0,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Writes to `nodes` the node that the page of each address of a process is on; a negative number is an error, mostly
/// that there is no page. Process 0 is this one. Nothing is read from the addresses, and nothing is moved.
///
/// # Errors
///
/// `ESRCH` where there is no such process, `EPERM` where it is another user's or a container forbids the call.
///
/// # Panics
///
/// Where `nodes` is shorter than `addresses`.
pub fn locate(process: u32, addresses: &[usize], nodes: &mut [i32]) -> io::Result<()> {
    assert!(
        nodes.len() >= addresses.len(),
        "one number for each address"
    );
    // SAFETY: the kernel reads `addresses.len()` addresses, does not access what they point to, and writes as many
    // numbers to `nodes`, which is that long. Without a list of nodes to move to it moves nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process,
            addresses.len(),
            addresses.as_ptr(),
            std::ptr::null::<libc::c_int>(),
            nodes.as_mut_ptr(),
            0,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Moves the page of each address of a process to the node at the same position in `nodes`. Returns the node that each
/// is on now; a negative number is an error: nothing there, busy, shared. Process 0 is this one.
///
/// # Errors
///
/// Those of [`locate`], and `EPERM` for [`Movable::Shared`] without the capability.
///
/// # Panics
///
/// Where there are fewer nodes than addresses.
pub fn relocate(
    process: u32,
    addresses: &[usize],
    nodes: &[i32],
    which: Movable,
) -> io::Result<Vec<i32>> {
    /// `MPOL_MF_MOVE` and `MPOL_MF_MOVE_ALL` of <linux/mempolicy.h>.
    const PRIVATE: libc::c_int = 1 << 1;
    const SHARED: libc::c_int = 1 << 2;
    assert!(nodes.len() >= addresses.len(), "a node for each address");
    // What the kernel does not write to has not been moved.
    let mut status = vec![-libc::EBUSY; addresses.len()];
    if addresses.is_empty() {
        return Ok(status);
    }
    let flags = match which {
        Movable::Private => PRIVATE,
        Movable::Shared => SHARED,
    };
    // SAFETY: the kernel reads as many addresses and nodes as there are addresses, and writes as many numbers to
    // `status`, which is that long. It does not touch what is at the addresses: moving a page changes nothing that its
    // process sees.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process,
            addresses.len(),
            addresses.as_ptr(),
            nodes.as_ptr(),
            status.as_mut_ptr(),
            flags,
        )
    };
    // More than zero: so many were not moved, and the status says which.
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(status)
}
