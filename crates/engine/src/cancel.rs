//! Cancelling a query.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A switch that cancels a query. Clones are the same switch.
///
/// Dropping the future of a query cancels it too, but only where that future next yields. The switch acts sooner:
/// every worker checks it after each vector of 2,048 rows.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    raised: AtomicBool,
    above: Option<Stop>,
}

impl Stop {
    /// Cancels the query.
    pub fn stop(&self) {
        self.0.raised.store(true, Ordering::Relaxed);
    }

    /// Whether the query was cancelled.
    pub fn stopped(&self) -> bool {
        self.0.raised.load(Ordering::Relaxed) || self.0.above.as_ref().is_some_and(Stop::stopped)
    }

    /// A child switch: raised by itself or with this one, but never raising this one.
    pub(crate) fn below(&self) -> Stop {
        Stop(Arc::new(Switch {
            raised: AtomicBool::new(false),
            above: Some(self.clone()),
        }))
    }

    /// Fails if the query was cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.stopped() {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cancel::Stop;

    #[test]
    fn a_switch_below_follows_and_does_not_lead() {
        let above = Stop::default();
        let (one, other) = (above.below(), above.below());
        one.stop();
        assert!(one.check().is_err());
        assert!(!above.stopped() && !other.stopped());
        above.stop();
        assert!(other.clone().below().check().is_err());
    }
}
