//! Reads into memory that is registered.

use std::sync::Arc;

use futures::executor::block_on;
use futures::future::join_all;
use io::{Aligned, Backend, Error, Queue, Room};

use super::{file, of, pattern, queue};

/// A part of memory that lives as long as its rooms.
struct Part {
    memory: Arc<Aligned>,
    from: usize,
    len: usize,
}

// SAFETY: the parts of one memory do not overlap (`parts`), are read only when they have come back,
// and keep the memory, which is registered before they are made.
unsafe impl Room for Part {
    fn bytes(&mut self) -> (*mut u8, usize) {
        (self.memory.as_ptr().wrapping_add(self.from), self.len)
    }

    fn registered(&self) -> bool {
        true
    }
}

#[test]
fn registered_memory_is_read_into() {
    let bytes = pattern(1 << 20);
    let (_directory, device) = file(&bytes);
    let Some(queue) = queue(of(Backend::Uring)) else {
        return;
    };
    let memory = Arc::new(Aligned::new(1 << 20, 4096));
    let start = memory.as_ptr().cast_const();
    // SAFETY: the memory outlives the queue.
    match unsafe { queue.register(&[(start, 1 << 20)]) } {
        Ok(()) => {}
        Err(Error::Unregistered { why, .. }) => return notrun::not_run(why),
        Err(error) => panic!("{error}"),
    }
    // Every other page, so that none is joined with another.
    let pages: Vec<usize> = (0..16).map(|page| page * 8192).collect();
    let rooms = pages.iter().map(|&from| {
        let memory = memory.clone();
        let part = Part {
            memory,
            from,
            len: 4096,
        };
        queue.fill(&device, from as u64 * 8, 4096, part)
    });
    for (part, from) in block_on(join_all(rooms)).into_iter().zip(pages) {
        let part = part.unwrap();
        assert!(part.memory.as_slice()[from..from + 4096] == bytes[from * 8..from * 8 + 4096]);
    }
    assert_eq!(queue.statistics().registered, 16);
    // SAFETY: nothing is registered.
    unsafe { queue.register(&[]) }.unwrap();
    drop(queue);
}

#[test]
fn threads_register_nothing() {
    let queue = Queue::new(1).unwrap();
    let memory = [0u8; 64];
    // SAFETY: the memory outlives the queue.
    let refused = unsafe { queue.register(&[(memory.as_ptr(), 64)]) };
    assert!(matches!(
        refused,
        Err(Error::Unregistered { bytes: 64, .. })
    ));
}
