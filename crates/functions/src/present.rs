//! The bounds of the statement that runs now, for functions that take long or make much.
//!
//! A function gets arrays and no context. So what runs a statement says which one a thread works for: its switch goes with the
//! task ([`Stop::present`]), and so does its memory ([`Memory::during`]), which goes with the options that functions are given,
//! too: engines run them in other tasks.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion_common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion_common::{DataFusionError, Result, config_err};
use engine::Stop;
use memory::Budget;
use messages::Error;
use messages::translate::MEMORY_LIMIT;

/// The most bytes of a value: 1 GB, as in PostgreSQL.
pub const MAX_VALUE: usize = 0x3fff_ffff;

/// Fails if the present statement was cancelled. Functions ask this as often as every few milliseconds.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn check() -> messages::Result<()> {
    if Stop::present().stopped() {
        return Err(Error::Cancelled);
    }
    Ok(())
}

/// Fails if a value of so many bytes is too large, before it is made.
///
/// # Errors
/// 54000 for one that is too large for anybody, and the error of the memory limit.
pub fn fits(bytes: usize) -> Result<()> {
    if bytes > MAX_VALUE {
        return Err(Error::coded("54000", "requested length too large").into());
    }
    has_room(bytes)
}

/// Fails if the present statement has no room for so many bytes more.
///
/// # Errors
/// That of the memory limit.
pub(crate) fn has_room(bytes: usize) -> Result<()> {
    /// What always fits: a vector of short texts.
    const SMALL: usize = 1 << 20;
    if bytes <= SMALL {
        return Ok(());
    }
    let (left, limit) = NOW.with_borrow(|memory| match &memory.budget {
        Some(budget) => (budget.left(), budget.limit()),
        None => (u64::MAX, u64::MAX),
    });
    if bytes as u64 <= left {
        return Ok(());
    }
    Err(DataFusionError::ResourcesExhausted(format!(
        "{MEMORY_LIMIT} of {} MB reached: a function asked for {} MB, {} MB are free; raise it with --memory-limit (Options::memory_limit)",
        limit >> 20,
        bytes >> 20,
        left >> 20
    )))
}

/// Fails if the present statement has no room for so many bytes that it keeps until its rows are read, beside those that it
/// keeps already, while `beside` bytes are held for a moment.
///
/// # Errors
/// That of the memory limit.
pub(crate) fn keeps(bytes: usize, beside: usize) -> Result<()> {
    let kept = NOW.with_borrow(|memory| memory.kept.fetch_add(bytes, Ordering::Relaxed));
    has_room(kept.saturating_add(bytes).saturating_add(beside))
}

thread_local! {
    static NOW: RefCell<Memory> = RefCell::default();
}

/// Puts back what was, also where a function panics.
struct Back(Memory);

impl Drop for Back {
    fn drop(&mut self) {
        NOW.set(std::mem::take(&mut self.0));
    }
}

/// The memory of the statements with these options.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    budget: Option<Arc<Budget>>,
    /// Bytes that the statement [keeps].
    kept: Arc<AtomicUsize>,
}

impl Memory {
    /// The memory of a statement under this budget.
    pub fn of(budget: &Arc<Budget>) -> Memory {
        Memory {
            budget: Some(Arc::clone(budget)),
            kept: Arc::default(),
        }
    }

    /// The memory of a statement with these options, which begins and keeps nothing yet.
    pub fn beginning(options: &ConfigOptions) -> Memory {
        let own = options.extensions.get::<Memory>();
        Memory {
            budget: own.and_then(|own| own.budget.clone()),
            kept: Arc::default(),
        }
    }

    /// The memory of the statement for which this thread works now.
    pub fn present() -> Memory {
        NOW.with_borrow(Memory::clone)
    }

    /// Runs `work` as a part of the statement whose memory this is.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let _back = Back(NOW.replace(self.clone()));
        work()
    }

    /// Runs a function within the memory of the statement with these options.
    pub(crate) fn within<T>(options: &ConfigOptions, run: impl FnOnce() -> T) -> T {
        let own = options.extensions.get::<Memory>();
        let Some(budget) = own.and_then(|own| own.budget.clone()) else {
            return run();
        };
        let memory = Memory {
            budget: Some(budget),
            ..Memory::present()
        };
        memory.during(run)
    }
}

impl ConfigExtension for Memory {
    const PREFIX: &'static str = "atoll_memory";
}

impl ExtensionOptions for Memory {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        config_err!("there is no option {key} of memory")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bounded() {
        assert!(fits(MAX_VALUE).is_ok());
        let message = Error::from(fits(MAX_VALUE + 1).unwrap_err()).to_string();
        assert_eq!(message, "requested length too large");
        let mut options = ConfigOptions::default();
        options.extensions.insert(Memory::of(&Budget::new(8 << 20)));
        Memory::within(&options, || {
            assert!(fits(7 << 20).is_ok());
            let message = Error::from(fits(9 << 20).unwrap_err()).to_string();
            assert!(
                message.contains("memory limit of 8 MB reached"),
                "{message}"
            );
        });
        assert!(fits(9 << 20).is_ok());
    }

    #[test]
    fn what_a_statement_keeps_adds_up() {
        let memory = Memory::of(&Budget::new(8 << 20));
        memory.during(|| {
            assert!(keeps(3 << 20, 0).is_ok());
            assert!(keeps(3 << 20, 3 << 20).is_err());
            assert!(keeps(1 << 20, 0).is_ok());
            assert!(keeps(2 << 20, 0).is_err());
        });
        assert!(keeps(9 << 20, 0).is_ok());
    }
}
