//! Queries that a session runs again, word for word: those whose plans are [kept](crate::run::kept_plans).
//!
//! Most texts run once. So the first time only the text is kept, and what it was parsed to and its plan from the second time
//! on.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use sqlparser::ast::Statement as Sql;
use syntax::depth;
use syntax::parse::{Parsed, Statement};

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
    /// What is kept of it, if it ran more than once.
    again: Option<Again>,
}

/// What is kept of a query that runs again.
#[derive(Clone, Debug)]
pub(super) struct Again {
    pub query: Arc<Sql>,
    /// How deep its tree may be at most.
    pub depth: usize,
    /// Where its plan is kept.
    pub kept: Arc<Slot>,
}

impl Recent {
    /// The query of this `text`, if it ran at least twice: it need not be parsed.
    pub(super) fn find(&self, text: &str) -> Option<Again> {
        let mut all = self.0.lock();
        let place = all.iter().position(|ran| ran.text == text)?;
        let again = all[place].again.clone()?;
        let ran = all.remove(place)?;
        all.push_back(ran);
        Some(again)
    }

    /// Takes note of a statement of this `text`, which runs now. Returns what is kept of it from now on; none if it runs for
    /// the first time, or is no query. What runs of a query that locks rows is not all of it, and deep trees would need room
    /// when they are dropped.
    pub(super) fn runs(&self, text: &str, parsed: &Parsed) -> Option<Again> {
        match &parsed.statement {
            Statement::Sql(sql)
                if matches!(**sql, Sql::Query(_))
                    && text.len() <= LONGEST
                    && !depth::is_deep(parsed.depth)
                    && !is_locking(sql) =>
            {
                self.again(text, sql, parsed.depth)
            }
            _ => None,
        }
    }

    fn again(&self, text: &str, query: &Sql, depth: usize) -> Option<Again> {
        let mut all = self.0.lock();
        let place = all.iter().position(|ran| ran.text == text);
        let Some(mut ran) = place.and_then(|place| all.remove(place)) else {
            if all.len() >= TEXTS {
                all.pop_front();
            }
            let text = text.to_owned();
            all.push_back(Ran { text, again: None });
            return None;
        };
        let again = ran.again.get_or_insert_with(|| Again {
            query: Arc::new(query.clone()),
            depth,
            kept: Arc::default(),
        });
        let again = again.clone();
        all.push_back(ran);
        Some(again)
    }
}

#[cfg(test)]
mod tests {
    use syntax::parse::parse;

    use super::*;

    fn runs(recent: &Recent, text: &str) -> Option<Again> {
        recent.runs(text, &parse(text).unwrap()[0])
    }

    #[test]
    fn plans_are_kept_of_texts_that_run_again() {
        let recent = Recent::default();
        assert!(runs(&recent, "select 1").is_none());
        assert!(recent.find("select 1").is_none());
        let again = runs(&recent, "select 1").unwrap();
        assert!(runs(&recent, "select 2").is_none());
        let found = recent.find("select 1").unwrap();
        assert!(Arc::ptr_eq(&again.kept, &found.kept));
        assert!(Arc::ptr_eq(&again.query, &found.query));
        assert_eq!(found.query.to_string(), r#"SELECT 1 AS "?column?""#);
        let third = runs(&recent, "select 1").unwrap();
        assert!(Arc::ptr_eq(&again.kept, &third.kept));
        for number in 0..TEXTS {
            runs(&recent, &format!("select {number} + 1"));
        }
        assert!(recent.find("select 1").is_none());
        assert!(runs(&recent, "select 1").is_none());
        let long = format!("select '{}'", "x".repeat(LONGEST));
        for text in [&*long, "create table t (a int)", "select 1 for update"] {
            assert!(runs(&recent, text).is_none());
            assert!(runs(&recent, text).is_none());
            assert!(recent.find(text).is_none());
        }
    }
}
