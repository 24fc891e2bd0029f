//! Memory that the kernel has mapped for a ring, once instead of at each read.

use futures::channel::oneshot;
use io_uring::Submitter;

use crate::error::{Error, Result};

/// The longest buffer that the kernel registers, in bytes.
const LONGEST: usize = 1 << 30;
/// The most buffers that it registers.
const MOST: usize = 1 << 14;

/// A wish to register memory: starts and lengths.
pub(super) struct Registration {
    pub(super) memory: Vec<(usize, usize)>,
    pub(super) answer: oneshot::Sender<Result<()>>,
}

/// The buffers that are registered, by address.
#[derive(Debug, Default)]
pub(super) struct Registered {
    /// Start, end and number.
    buffers: Vec<(usize, usize, u16)>,
}

impl Registered {
    /// Registers memory instead of what was before.
    ///
    /// # Errors
    /// [`Error::Unregistered`] where the kernel refuses; then nothing is registered.
    pub(super) fn set(
        &mut self,
        submitter: &Submitter<'_>,
        memory: Vec<(usize, usize)>,
    ) -> Result<()> {
        if !std::mem::take(&mut self.buffers).is_empty() {
            let _ = submitter.unregister_buffers();
        }
        let mut pieces = Vec::new();
        for (start, length) in memory {
            for at in (0..length).step_by(LONGEST) {
                pieces.push((start + at, (length - at).min(LONGEST)));
            }
        }
        if pieces.is_empty() {
            return Ok(());
        }
        let bytes = pieces.iter().map(|&(_, length)| length as u64).sum();
        let refused = |why: String| Error::Unregistered { bytes, why };
        if pieces.len() > MOST {
            return Err(refused(format!("more than {MOST} buffers of 1 GiB")));
        }
        pieces.sort_unstable();
        let vectors: Vec<_> = pieces
            .iter()
            .map(|&(start, length)| libc::iovec {
                iov_base: start as *mut libc::c_void,
                iov_len: length,
            })
            .collect();
        // SAFETY: the memory is mapped now, which the caller of `Queue::register` promises, and the
        // kernel keeps its pages; only rooms that lie there are read into by its number.
        unsafe { submitter.register_buffers(&vectors) }.map_err(|error| {
            let limit = match error.raw_os_error() {
                Some(libc::ENOMEM) => "; raise the limit of locked memory (ulimit -l)",
                _ => "",
            };
            refused(format!("{error}{limit}"))
        })?;
        let numbered = pieces.into_iter().zip(0u16..);
        self.buffers = numbered
            .map(|((start, length), number)| (start, start + length, number))
            .collect();
        Ok(())
    }

    /// The buffer that has all of these bytes.
    pub(super) fn find(&self, start: *const u8, length: usize) -> Option<u16> {
        let start = start as usize;
        let after = self
            .buffers
            .partition_point(|&(first, _, _)| first <= start);
        let &(_, end, number) = self.buffers.get(after.checked_sub(1)?)?;
        (start + length <= end).then_some(number)
    }
}
