//! DataFusion's memory pool on the process-wide [`memory::Budget`].
//!
//! The budget is shared by the frames of the buffer pool and by what operators reserve. Operators that
//! can spill (sorts, aggregates) each get an equal share of what the budget leaves to operators, so that
//! one which came first does not take everything and make the next one fail: it spills instead.
//! Operators that cannot spill (the build side of a hash join) take what they need until the budget is
//! empty.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion_common::DataFusionError;
use datafusion_common::Result;
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use memory::Budget;
use parking_lot::Mutex;

use crate::messages::translate::MEMORY_LIMIT;

/// Bytes taken from a budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Held {
    /// Nothing yet.
    pub(crate) fn of(budget: &Arc<Budget>) -> Held {
        Held {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// Takes `bytes` more: all of them or none.
    ///
    /// # Errors
    /// If the budget has less left.
    pub(crate) fn more(&mut self, bytes: u64) -> memory::Result<()> {
        self.budget.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Held {
    /// Takes or gives back what it takes to hold `bytes`.
    ///
    /// # Errors
    /// If the budget has less left; then it holds what it held.
    pub(crate) fn set(&mut self, bytes: u64) -> memory::Result<()> {
        if bytes > self.bytes {
            return self.more(bytes - self.bytes);
        }
        self.budget.give(self.bytes - bytes);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

/// Bytes of memory that keeping `batch` takes. Of buffers that batches share (labels, pages), only the part that the
/// rows of `batch` use is counted.
pub(crate) fn footprint(batch: &RecordBatch) -> u64 {
    let column = |array: &ArrayRef| match array.as_string_view_opt() {
        Some(texts) => {
            let shared: usize = texts.data_buffers().iter().map(|buffer| buffer.len()).sum();
            let nulls = texts.nulls().map_or(0, |nulls| nulls.len() / 8);
            16 * texts.len() + nulls + texts.total_buffer_bytes_used().min(shared)
        }
        None => {
            let data = array.to_data();
            let slice = data.get_slice_memory_size();
            slice.unwrap_or_else(|_| array.get_array_memory_size())
        }
    };
    batch.columns().iter().map(column).sum::<usize>() as u64
}

/// A [`MemoryPool`] that takes from a [`Budget`].
pub(crate) struct BudgetPool {
    budget: Arc<Budget>,
    /// Bytes that operators hold, granted or not.
    reserved: AtomicUsize,
    shares: Mutex<Shares>,
}

/// How much operators hold. Invariant: `spillable + unspillable == reserved` whenever the lock is free.
#[derive(Default)]
struct Shares {
    /// Registered consumers that can spill.
    spillers: usize,
    /// Bytes they hold together.
    spillable: usize,
    /// Bytes that the others hold.
    unspillable: usize,
    /// Bytes that `grow`, which cannot fail, gave out although the budget refused them.
    overdrawn: usize,
}

impl BudgetPool {
    pub(crate) fn new(budget: Arc<Budget>) -> BudgetPool {
        BudgetPool {
            budget,
            reserved: AtomicUsize::new(0),
            shares: Mutex::default(),
        }
    }

    /// Bytes that all operators together may hold: the limit less what the buffer pool has taken.
    fn operators(&self, shares: &Shares) -> usize {
        let mine = (shares.spillable + shares.unspillable).saturating_sub(shares.overdrawn) as u64;
        self.budget.left().saturating_add(mine) as usize
    }

    fn refuse(
        &self,
        consumer: &MemoryConsumer,
        wanted: usize,
        available: usize,
    ) -> DataFusionError {
        // A part of the budget may be short because the whole is.
        let own = self.budget.limit().saturating_sub(self.budget.used());
        let user = self.budget.name().filter(|_| own <= self.budget.left());
        let (limit, whose, remedy) = match user {
            Some(user) => (
                self.budget.limit(),
                format!(" of user \"{user}\""),
                "an administrator raises it with `alter role ... set memory_limit`",
            ),
            None => (
                self.budget.whole().limit(),
                String::new(),
                "raise it with --memory-limit (Options::memory_limit), or lower --threads",
            ),
        };
        DataFusionError::ResourcesExhausted(format!(
            "{MEMORY_LIMIT} of {}{whose} reached: {} asked for {} more, {} are free; {remedy}",
            human_readable_size(limit as usize),
            operator(consumer.name()),
            human_readable_size(wanted),
            human_readable_size(available),
        ))
    }
}

/// A name that people understand for a consumer such as `GroupedHashAggregateStream[1] (count(1))`.
fn operator(consumer: &str) -> String {
    let name = consumer.split(['[', '(', ' ']).next().unwrap_or(consumer);
    let plain = match name {
        "HashJoinInput" | "HashJoinExec" => "a hash join",
        "CrossJoinExec" | "NestedLoopJoinLoad" | "NestedLoopJoinExec" => "a cross join",
        "ExternalSorter" | "ExternalSorterMerge" | "TopK" => "a sort",
        "RecursiveQuery" | "RecursiveQueryHashTable" => "a recursive query",
        n if n.contains("Aggregate") => "an aggregation",
        n if n.contains("Window") => "a window function",
        n if n.contains("Repartition") => "an exchange between workers",
        n => n,
    };
    plain.to_string()
}

impl MemoryPool for BudgetPool {
    fn name(&self) -> &str {
        "atoll"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.shares.lock().spillers += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            let mut shares = self.shares.lock();
            shares.spillers = shares.spillers.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut shares = self.shares.lock();
        if self.budget.take(additional as u64).is_err() {
            shares.overdrawn += additional;
        }
        shares.add(reservation.consumer(), additional);
        self.reserved.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut shares = self.shares.lock();
        let unpaid = shrink.min(shares.overdrawn);
        shares.overdrawn -= unpaid;
        self.budget.give((shrink - unpaid) as u64);
        shares.subtract(reservation.consumer(), shrink);
        self.reserved.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        let mut shares = self.shares.lock();
        let operators = self.operators(&shares);
        if consumer.can_spill() {
            let share = operators.saturating_sub(shares.unspillable) / shares.spillers.max(1);
            if reservation.size().saturating_add(additional) > share {
                return Err(self.refuse(
                    consumer,
                    additional,
                    share.saturating_sub(reservation.size()),
                ));
            }
        }
        if self.budget.take(additional as u64).is_err() {
            let free = operators.saturating_sub(shares.spillable + shares.unspillable);
            return Err(self.refuse(consumer, additional, free));
        }
        shares.add(consumer, additional);
        self.reserved.fetch_add(additional, Ordering::Relaxed);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.budget.limit() as usize)
    }
}

impl Shares {
    fn add(&mut self, consumer: &MemoryConsumer, bytes: usize) {
        if consumer.can_spill() {
            self.spillable += bytes
        } else {
            self.unspillable += bytes
        }
    }

    fn subtract(&mut self, consumer: &MemoryConsumer, bytes: usize) {
        let held = if consumer.can_spill() {
            &mut self.spillable
        } else {
            &mut self.unspillable
        };
        *held = held.saturating_sub(bytes);
    }
}

impl fmt::Debug for BudgetPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetPool")
            .field("limit", &self.budget.limit())
            .field("used", &self.budget.used())
            .field("reserved", &self.reserved())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for BudgetPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {}",
            human_readable_size(self.reserved()),
            human_readable_size(self.budget.limit() as usize)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(limit: u64) -> (Arc<Budget>, Arc<dyn MemoryPool>) {
        let budget = Budget::new(limit);
        let pool: Arc<dyn MemoryPool> = Arc::new(BudgetPool::new(Arc::clone(&budget)));
        (budget, pool)
    }

    #[test]
    fn spilling_consumers_share_and_others_take_what_is_there() {
        let (budget, pool) = pool(1000);
        budget.take(200).unwrap(); // the buffer pool
        let a = MemoryConsumer::new("ExternalSorter[0]")
            .with_can_spill(true)
            .register(&pool);
        let b = MemoryConsumer::new("ExternalSorter[1]")
            .with_can_spill(true)
            .register(&pool);
        a.try_grow(400).unwrap();
        let error = a.try_grow(1).unwrap_err().to_string();
        assert!(
            error.contains("memory limit of") && error.contains("a sort"),
            "{error}"
        );
        assert!(error.contains("--memory-limit"), "{error}");
        b.try_grow(400).unwrap();
        let join = MemoryConsumer::new("HashJoinInput").register(&pool);
        assert!(join.try_grow(1).is_err(), "everything is taken");
        drop(a);
        join.try_grow(400).unwrap();
        drop(join);
        drop(b);
        assert_eq!((budget.used(), pool.reserved()), (200, 0));
    }

    #[test]
    fn a_user_has_a_part_of_the_budget() {
        let (whole, all) = pool(1000);
        let part = Budget::within(&whole, 300, "ann");
        let own: Arc<dyn MemoryPool> = Arc::new(BudgetPool::new(part));
        let join = MemoryConsumer::new("HashJoinInput").register(&own);
        join.try_grow(300).unwrap();
        let error = join.try_grow(1).unwrap_err().to_string();
        assert!(error.contains("of user \"ann\""), "{error}");
        assert!(error.contains("memory_limit"), "{error}");
        let others = MemoryConsumer::new("HashJoinInput").register(&all);
        others.try_grow(700).unwrap();
        drop(join);
        others.try_grow(300).unwrap();
        let join = MemoryConsumer::new("HashJoinInput").register(&own);
        let error = join.try_grow(1).unwrap_err().to_string();
        assert!(error.contains("--memory-limit"), "{error}");
        drop((join, others));
        assert_eq!((whole.used(), own.reserved()), (0, 0));
    }

    #[test]
    fn what_grow_overdraws_is_not_given_back_to_the_budget() {
        let (budget, pool) = pool(100);
        let a = MemoryConsumer::new("x").register(&pool);
        a.grow(150);
        assert_eq!(pool.reserved(), 150);
        assert!(budget.used() <= 100);
        a.grow(50);
        drop(a);
        assert_eq!((budget.used(), pool.reserved()), (0, 0));
    }
}
