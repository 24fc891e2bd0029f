//! The ring in which the kernel leaves samples, `perf_event_open(2)`, "MMAP layout".

use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::event::Event;

/// Pages of samples; a power of two.
const PAGES: usize = 8;

/// Where `data_head` stands in the first page; `data_tail` follows.
const HEAD: usize = 1024;

/// `PERF_RECORD_SAMPLE` and `PERF_RECORD_LOST`
const SAMPLE: u32 = 9;
const LOST: u32 = 2;

/// The ring of one event.
#[derive(Debug)]
pub(crate) struct Ring {
    start: NonNull<u8>,
    page: usize,
}

// SAFETY: the mapping belongs to this value alone; what the kernel writes is read through atomics
// and after them.
unsafe impl Send for Ring {}

/// What a ring held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// A sample, without its header.
    Sample(&'a [u8]),
    /// So many samples found no room.
    Lost(u64),
}

impl Ring {
    /// Maps the ring of an event that takes samples.
    pub(crate) fn new(event: &Event) -> io::Result<Ring> {
        let page = crate::residency::page_bytes() as usize;
        // SAFETY: a new mapping, of a file that is open.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (1 + PAGES) * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.file().as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { start, page })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the first page, which is mapped as long as this lives, at a multiple of
        // eight; the kernel and we access it atomically.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Takes out what there is.
    pub(crate) fn take(&mut self, mut each: impl FnMut(Record<'_>)) {
        let head = self.word(HEAD).load(Ordering::Acquire);
        let tail = self.word(HEAD + 8).load(Ordering::Relaxed);
        // SAFETY: the pages after the first are mapped as long as this lives; from `tail` up to
        // `head` the kernel does not write until we move `tail`.
        let data = unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().add(self.page), PAGES * self.page)
        };
        let mut record = Vec::new();
        let mut at = tail;
        while at < head {
            let Some(next) = copy(data, at, head, &mut record) else {
                break;
            };
            if let Some(record) = parse(&record) {
                each(record);
            }
            at = next;
        }
        self.word(HEAD + 8).store(head, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: what `new` mapped, and nobody else knows of.
        unsafe { libc::munmap(self.start.as_ptr().cast(), (1 + PAGES) * self.page) };
    }
}

/// Copies the record at `at`, which may go around the end, and gives where the next one is; `None`
/// where there is no whole one before `head`.
fn copy(data: &[u8], at: u64, head: u64, record: &mut Vec<u8>) -> Option<u64> {
    let mask = data.len() as u64 - 1;
    let bytes = |from: u64, to: u64| (from..to).map(|at| data[(at & mask) as usize]);
    record.clear();
    if head - at < 8 {
        return None;
    }
    record.extend(bytes(at, at + 8));
    let size = u64::from(u16::from_ne_bytes([record[6], record[7]]));
    if size < 8 || size > head - at {
        return None;
    }
    record.extend(bytes(at + 8, at + size));
    Some(at + size)
}

/// `struct perf_event_header` (type, misc, size) and what follows.
fn parse(record: &[u8]) -> Option<Record<'_>> {
    let kind = u32::from_ne_bytes(record.get(..4)?.try_into().ok()?);
    let body = record.get(8..)?;
    match kind {
        SAMPLE => Some(Record::Sample(body)),
        // The event's number, then how many.
        LOST => Some(Record::Lost(u64::from_ne_bytes(
            body.get(8..16)?.try_into().ok()?,
        ))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::event::{Of, Wanted};
    use proptest::prelude::*;

    /// The header of a record, and a body of so many bytes.
    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(0u16.to_ne_bytes());
        record.extend((8 + body.len() as u16).to_ne_bytes());
        record.extend(body);
        record
    }

    /// The kernel's own clock samples us: the ring is read as it is on any machine.
    #[test]
    fn samples_of_our_own_time_come_out() {
        let wanted = Wanted {
            // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, PERF_SAMPLE_TID: every 0.1 ms.
            kind: 1,
            config: [1, 0, 0],
            period: 100_000,
            sample: 1 << 1,
            ..Wanted::default()
        };
        // SAFETY: gettid has no preconditions.
        let thread = unsafe { libc::gettid() }.cast_unsigned();
        let event = match Event::open(wanted, Of::Thread(thread)) {
            Ok(event) => event,
            Err(error) => {
                return notrun::not_run(super::super::software::reason(&error).text);
            }
        };
        let mut ring = Ring::new(&event).unwrap();
        let begun = std::time::Instant::now();
        let mut samples = 0;
        while samples < 20 {
            assert!(begun.elapsed().as_secs() < 20, "{samples} samples");
            for _ in 0..100_000 {
                std::hint::black_box(0);
            }
            ring.take(|record| match record {
                Record::Sample(body) => {
                    let id = |at: usize| u32::from_ne_bytes(body[at..at + 4].try_into().unwrap());
                    assert_eq!((id(0), id(4)), (std::process::id(), thread));
                    samples += 1;
                }
                Record::Lost(_) => {}
            });
        }
    }

    proptest! {
        /// Records come out as they went in, wherever the ring's end falls.
        #[test]
        fn records_go_around(bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8), start in 0u64..2000) {
            let mut data = vec![0xaa; 512];
            let mut head = start;
            for body in &bodies {
                for byte in record(SAMPLE, body) {
                    data[(head & 511) as usize] = byte;
                    head += 1;
                }
            }
            let (mut at, mut buffer, mut read) = (start, Vec::new(), Vec::new());
            while let Some(next) = copy(&data, at, head, &mut buffer) {
                if let Some(Record::Sample(body)) = parse(&buffer) {
                    read.push(body.to_vec());
                }
                at = next;
            }
            prop_assert_eq!(at, head);
            prop_assert_eq!(read, bodies);
        }

        #[test]
        fn any_bytes_are_answered(data in proptest::collection::vec(any::<u8>(), 64), at in 0u64..64, more in 0u64..64) {
            let mut buffer = Vec::new();
            if copy(&data, at, at + more, &mut buffer).is_some() {
                let _ = parse(&buffer);
            }
        }
    }
}
