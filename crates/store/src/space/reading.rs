//! Chunks of the page map being read for tasks that wait for them: each once, however many wait.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use io::{Device, Queue};
use parking_lot::Mutex;

use crate::format::structures::Blob;
use crate::space::map::PageMap;

/// The stored bytes, if they could be read.
type Bytes = Shared<BoxFuture<'static, Option<Arc<Vec<u8>>>>>;

/// Chunks that are being read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    chunks: Mutex<HashMap<u32, (Blob, Bytes)>>,
}

impl Reading {
    /// Reads a chunk through the queue, if nobody does so already, and offers it to the map. The future may be
    /// dropped; others who wait go on.
    pub(super) async fn read(
        &self,
        (chunk, blob): (u32, Blob),
        map: &PageMap,
        queue: &Queue,
        device: &Arc<dyn Device>,
    ) {
        let begin = || {
            let stored = usize::try_from(blob.stored).unwrap_or(usize::MAX);
            let reading = queue.read(device, blob.offset, stored);
            let bytes = reading.map(|read| read.ok().map(Arc::new));
            (blob, bytes.boxed().shared())
        };
        let bytes = {
            let mut chunks = self.chunks.lock();
            let entry = chunks.entry(chunk).or_insert_with(begin);
            if entry.0 != blob {
                *entry = begin();
            }
            entry.1.clone()
        };
        let bytes = bytes.await;
        {
            let mut chunks = self.chunks.lock();
            if chunks.get(&chunk).is_some_and(|(at, _)| *at == blob) {
                chunks.remove(&chunk);
            }
        }
        if let Some(stored) = bytes
            && map.is_missing(chunk)
        {
            map.offer(chunk, &blob, &stored);
        }
    }
}
