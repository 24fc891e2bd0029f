//! Records in, sorted records out.

use crate::error::Result;
use crate::sort::merge::{Merge, Run};
use crate::sort::radix::{self, Record};
use crate::sort::spool::{Spill, Spool};

/// Fewest bytes of a run that are read at once.
const LEAST_BLOCK: usize = 4 << 10;
/// Most bytes of a run that are read at once: more makes no sequential read faster.
const MOST_BLOCK: usize = 1 << 20;

/// Takes records in any order. Its memory, all together, is what it was made with, at least 64 KiB.
#[derive(Debug)]
pub(crate) struct Sorter<R> {
    spill: Spill,
    memory: usize,
    /// Records that are kept before they become a run.
    most: usize,
    records: Vec<R>,
    scratch: Vec<R>,
    spool: Spool,
    runs: Vec<Run>,
}

impl<R: Record> Sorter<R> {
    pub fn new(spill: &Spill, memory: u64) -> Sorter<R> {
        let memory = usize::try_from(memory).unwrap_or(usize::MAX).max(64 << 10);
        Sorter {
            spill: spill.clone(),
            memory,
            most: memory / 2 / size_of::<R>(),
            records: Vec::new(),
            scratch: Vec::new(),
            spool: Spool::new(spill),
            runs: Vec::new(),
        }
    }

    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
        if self.records.len() == self.most {
            self.spill()?;
        }
        if self.records.len() == self.records.capacity() {
            self.grow();
        }
        self.records.push(record);
        Ok(())
    }

    /// Doubles the memory for records, never above what is allowed.
    #[cold]
    fn grow(&mut self) {
        let wanted = (self.records.len() * 2).clamp(1024, self.most);
        self.records.reserve_exact(wanted - self.records.len());
    }

    /// Bytes of a run that are read at once when `runs` of them are merged.
    fn block(&self, runs: usize) -> usize {
        let records = (self.memory / (runs + 1)).clamp(LEAST_BLOCK, MOST_BLOCK) / size_of::<R>();
        records * size_of::<R>()
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        radix::sort(&mut self.records, &mut self.scratch);
        // Runs that are written before one knows how many there will be have the block of the most
        // that are merged at once.
        let block = self.block(self.fan_in());
        let mut run = Run::default();
        for records in self.records.chunks((block / size_of::<R>()).max(1)) {
            run.write(&mut self.spool, records)?;
        }
        self.runs.push(run);
        self.records.clear();
        Ok(())
    }

    /// How many runs are merged at once: what half the memory has blocks for.
    fn fan_in(&self) -> usize {
        (self.memory / 2 / (16 * LEAST_BLOCK)).clamp(4, 512)
    }

    /// The records, sorted.
    pub fn finish(mut self) -> Result<Sorted<R>> {
        if self.runs.is_empty() {
            radix::sort(&mut self.records, &mut self.scratch);
            return Ok(Sorted::Memory {
                records: self.records,
                at: 0,
            });
        }
        self.spill()?;
        (self.records, self.scratch) = (Vec::new(), Vec::new());
        let fan_in = self.fan_in();
        while self.runs.len() > fan_in {
            self.pass(fan_in)?;
        }
        Ok(Sorted::Merged(Merge::new(self.spool, self.runs)?))
    }

    /// Merges groups of runs to one each, in a new file; the old one is closed.
    fn pass(&mut self, fan_in: usize) -> Result<()> {
        let mut spool = Spool::new(&self.spill);
        let old = std::sync::Arc::new(std::mem::replace(&mut self.spool, Spool::new(&self.spill)));
        let mut runs = Vec::new();
        let block = self.block(fan_in) / size_of::<R>();
        let mut records: Vec<R> = Vec::with_capacity(block);
        for group in self.runs.chunks(fan_in) {
            let mut merge = Merge::new(old.clone(), group.to_vec())?;
            let mut run = Run::default();
            loop {
                records.clear();
                merge.fill(&mut records, block)?;
                if records.is_empty() {
                    break;
                }
                run.write(&mut spool, &records)?;
            }
            runs.push(run);
        }
        (self.spool, self.runs) = (spool, runs);
        Ok(())
    }
}

/// Records in the order of their keys.
#[derive(Debug)]
pub(crate) enum Sorted<R> {
    Memory { records: Vec<R>, at: usize },
    Merged(Merge<R>),
}

impl<R: Record> Sorted<R> {
    /// Puts the next records, at most `most`, in place of what is in `into`; none at the end.
    pub fn next(&mut self, into: &mut Vec<R>, most: usize) -> Result<()> {
        into.clear();
        match self {
            Sorted::Memory { records, at } => {
                let end = records.len().min(*at + most);
                into.extend_from_slice(&records[*at..end]);
                *at = end;
                Ok(())
            }
            Sorted::Merged(merge) => merge.fill(into, most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn on(disk: &io::fault::Disk) -> Spill {
        let (disk, made) = (disk.clone(), AtomicU32::new(0));
        Spill::devices(move || {
            let number = made.fetch_add(1, Ordering::Relaxed);
            Ok(disk.device(&format!("spill{number}")))
        })
    }

    fn sorted(spill: &Spill, records: &[[u64; 2]]) -> Result<Vec<[u64; 2]>> {
        let mut sorter = Sorter::new(spill, 0);
        for &record in records {
            sorter.push(record)?;
        }
        let (mut sorted, mut all, mut some) = (sorter.finish()?, Vec::new(), Vec::new());
        loop {
            sorted.next(&mut some, 1000)?;
            if some.is_empty() {
                return Ok(all);
            }
            all.extend_from_slice(&some);
        }
    }

    fn random(count: u64) -> Vec<[u64; 2]> {
        let mut random = fastrand::Rng::with_seed(7);
        (0..count).map(|at| [random.u64(..500), at]).collect()
    }

    #[test]
    fn runs_and_passes_are_a_stable_sort() {
        for count in [0, 1, 2047, 2048, 2049, 7000, 60_000] {
            let records = random(count);
            let mut expected = records.clone();
            expected.sort_by_key(|record| record[0]);
            assert_eq!(sorted(&Spill::default(), &records).unwrap(), expected);
        }
    }

    #[test]
    fn each_failing_operation_of_the_disk_is_an_error() {
        let whole = io::fault::Disk::new(1);
        let records = random(10_000);
        sorted(&on(&whole), &records).unwrap();
        assert!(whole.operations() > 10);
        for operation in 0..whole.operations() {
            let disk = io::fault::Disk::new(1);
            disk.stop_after(operation);
            let error = sorted(&on(&disk), &records).unwrap_err();
            assert!(error.to_string().contains("spill"), "{error}");
        }
    }

    #[test]
    fn flipped_bits_are_found() {
        let disk = io::fault::Disk::new(1);
        let spill = on(&disk);
        let mut sorter = Sorter::new(&spill, 0);
        random(5000)
            .into_iter()
            .try_for_each(|record| sorter.push(record))
            .unwrap();
        assert!(disk.flip("spill0", 77));
        let error = sorter.finish().unwrap_err();
        assert!(error.to_string().contains("spill0"), "{error}");
        let _: Arc<dyn io::Device> = disk.device("spill0");
    }
}
