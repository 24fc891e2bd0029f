//! Giving a query up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A switch that says that a query was given up. Clones are the same switch.
///
/// Dropping the future of a query gives it up too, but only where that future next yields; whoever cannot wait for
/// that raises the switch, and every worker looks at it between pieces of 2,048 rows.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    raised: AtomicBool,
    above: Option<Stop>,
}

impl Stop {
    /// Gives the query up.
    pub fn stop(&self) {
        self.0.raised.store(true, Ordering::Relaxed);
    }

    /// Whether it was given up.
    pub fn stopped(&self) -> bool {
        self.0.raised.load(Ordering::Relaxed) || self.0.above.as_ref().is_some_and(Stop::stopped)
    }

    /// Another switch, which is raised on its own or with this one.
    pub(crate) fn below(&self) -> Stop {
        Stop(Arc::new(Switch {
            raised: AtomicBool::new(false),
            above: Some(self.clone()),
        }))
    }

    /// # Errors
    /// [`Error::Cancelled`] once the query was given up.
    pub(crate) fn check(&self) -> Result<()> {
        match self.stopped() {
            true => Err(Error::Cancelled),
            false => Ok(()),
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
