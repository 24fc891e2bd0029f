//! Queries that a session runs again, word for word: those whose plans are [kept](crate::run::kept_plans).
//!
//! Most texts run once. So the first time only the text is kept, and the plan from the second time on.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Statement as Sql;
use parking_lot::Mutex;

use crate::frontend::parse::Statement;
use crate::run::kept_plans::Slot;
use crate::statements::locking::is_locking;

/// Most texts that a session keeps, and most bytes of one.
const TEXTS: usize = 64;
const LONGEST: usize = 16 << 10;

/// The texts of the queries that a session ran last.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<VecDeque<Ran>>);

/// A query that ran.
#[derive(Debug)]
struct Ran {
    text: String,
    /// Where its plan is kept, if it ran more than once.
    kept: Option<Arc<Slot>>,
}

impl Recent {
    /// Where the plan of the statement of this `text` is kept, which runs now; none if it runs for the first time, or is no
    /// query. What runs of a query that locks rows is not all of it.
    pub(super) fn runs(&self, text: &str, statement: &Statement) -> Option<Arc<Slot>> {
        match statement {
            Statement::Sql(sql) if matches!(**sql, Sql::Query(_)) && !is_locking(sql) => {
                self.again(text)
            }
            _ => None,
        }
    }

    fn again(&self, text: &str) -> Option<Arc<Slot>> {
        if text.len() > LONGEST {
            return None;
        }
        let mut all = self.0.lock();
        let place = all.iter().position(|ran| ran.text == text);
        let Some(mut ran) = place.and_then(|place| all.remove(place)) else {
            if all.len() >= TEXTS {
                all.pop_front();
            }
            let text = text.to_owned();
            all.push_back(Ran { text, kept: None });
            return None;
        };
        let kept = Arc::clone(ran.kept.get_or_insert_default());
        all.push_back(ran);
        Some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_kept_of_texts_that_run_again() {
        let recent = Recent::default();
        assert!(recent.again("select 1").is_none());
        let kept = recent.again("select 1").unwrap();
        assert!(recent.again("select 2").is_none());
        let again = recent.again("select 1").unwrap();
        assert!(Arc::ptr_eq(&kept, &again));
        for number in 0..TEXTS {
            recent.again(&format!("select {number} + 1"));
        }
        assert!(recent.again("select 1").is_none());
        let long = "x".repeat(LONGEST + 1);
        assert!(recent.again(&long).is_none());
        assert!(recent.again(&long).is_none());
    }
}
