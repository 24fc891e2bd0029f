//! Compiled expressions of statements that came before.
//!
//! An `insert ... on conflict do update` of one row has the same ones each time, as the checks and the generated columns of its
//! table; to plan them takes longer than all else that it does. Those are kept that mean the same wherever they stand: they
//! have no functions, casts and queries, and no texts that the time decides on.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;
use parking_lot::Mutex;
use sqlparser::ast::{Expr, Query, Value, Visitor};
use syntax::names::column_name;
use syntax::walk::Walk;

use crate::functions::temporal::local::Local;

/// The most lists of expressions that are kept.
const MOST: usize = 64;

/// The most parts that the expressions of a list may have together.
const LARGEST: usize = 100;

/// Beginnings of texts that may stand for the present day.
const PRESENT: [&str; 5] = ["now", "today", "tomorrow", "yesterday", "allballs"];

/// What expressions mean depends on this alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    /// What rows are called, and their columns.
    pub rows: (String, SchemaRef),
    pub other: Option<(String, SchemaRef)>,
    pub items: Vec<Expr>,
    /// What the first of them are cast to.
    pub types: Vec<DataType>,
    /// How the session reads and writes dates and times.
    pub local: Local,
}

impl Asked {
    /// Whether the expressions mean the same wherever they stand.
    pub(super) fn is_plain(&self) -> bool {
        let mut plain = Plain {
            columns: &self.rows.1,
            left: LARGEST,
        };
        self.items.walk(&mut plain).is_continue()
    }
}

/// Expressions that are compiled.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    /// Each over the columns of the one before; the first over those of the rows.
    pub stages: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    /// The type of each.
    pub types: Vec<DataType>,
}

/// What was compiled, the last first.
#[derive(Debug, Default)]
pub(crate) struct KeptValues(Mutex<VecDeque<(Asked, Compiled)>>);

impl KeptValues {
    /// What was compiled of these expressions.
    pub(super) fn get(&self, asked: &Asked) -> Option<Compiled> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|(own, _)| own == asked)?;
        let found = kept.remove(at)?;
        let values = found.1.clone();
        kept.push_front(found);
        Some(values)
    }

    /// Keeps what was compiled, and lets go of what was not asked for for the longest time.
    pub(super) fn keep(&self, asked: Asked, values: Compiled) {
        let mut kept = self.0.lock();
        kept.retain(|(own, _)| *own != asked);
        kept.truncate(MOST - 1);
        kept.push_front((asked, values));
    }
}

/// Stops at what may mean something else elsewhere, or is too large.
struct Plain<'a> {
    columns: &'a SchemaRef,
    left: usize,
}

impl Visitor for Plain<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let plain = match expr {
            // Some names that are no columns are functions.
            Expr::Identifier(name) => self.columns.index_of(&column_name(name)).is_ok(),
            Expr::CompoundIdentifier(_)
            | Expr::Nested(_)
            | Expr::BinaryOp { .. }
            | Expr::UnaryOp { .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::Between { .. }
            | Expr::InList { .. } => true,
            Expr::Value(value) => match &value.value {
                Value::Null | Value::Boolean(_) | Value::Number(..) => true,
                Value::SingleQuotedString(text) => !may_be_now(text),
                _ => false,
            },
            _ => false,
        };
        if !plain || self.left == 0 {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        ControlFlow::Continue(())
    }
}

fn may_be_now(text: &str) -> bool {
    let text = text.trim_start().to_ascii_lowercase();
    PRESENT.iter().any(|word| text.starts_with(word))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};

    use super::*;
    use syntax::expression::expression;

    fn asked(items: &[&str]) -> Asked {
        let items = items.iter().map(|text| expression(text).unwrap());
        Asked {
            rows: (
                "t".into(),
                Arc::new(Schema::new(vec![
                    Field::new("a", DataType::Int32, true),
                    Field::new("b", DataType::Int32, true),
                ])),
            ),
            other: None,
            items: items.collect(),
            types: Vec::new(),
            local: Local::PLAIN,
        }
    }

    #[test]
    fn what_the_time_or_the_session_decides_on_is_not_plain() {
        for text in [
            "a",
            "t.a + excluded.a",
            "(a is null) and b in (1, 2)",
            "a between 1 and 5",
            "'x'",
        ] {
            assert!(asked(&[text]).is_plain(), "{text}");
        }
        let long = vec!["1"; 200].join(" + ");
        for text in [
            "now()",
            "c",
            "a + random()",
            "current_user",
            "a < ' Today'",
            "cast('x' as date)",
            "a in (select 1)",
            "case when a = 1 then 2 end",
            long.as_str(),
        ] {
            assert!(!asked(&[text]).is_plain(), "{text}");
        }
    }

    #[test]
    fn what_was_not_asked_for_goes() {
        let kept = KeptValues::default();
        let of = |number: usize| asked(&["a", &number.to_string()]);
        let types = |number: usize| vec![DataType::FixedSizeBinary(number as i32)];
        let got = |number: usize| kept.get(&of(number)).map(|own| own.types);
        for number in 0..MOST + 10 {
            let values = Compiled {
                stages: Vec::new(),
                types: types(number),
            };
            kept.keep(of(number), values);
            assert_eq!(got(0), Some(types(0)));
        }
        assert_eq!(got(1), None);
        assert_eq!(got(MOST + 9), Some(types(MOST + 9)));
        assert_eq!(kept.0.lock().len(), MOST);
    }
}
