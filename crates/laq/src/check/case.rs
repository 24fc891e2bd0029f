//! `case`, and the one type that values to choose from have.

use arrow::datatypes::DataType;

use crate::check::checker::Checker;
use crate::check::element::{Class, Over, Placed, called, class, number};
use crate::error::{Checked, Span, wrong};
use crate::space::TermId;
use crate::syntax::Element;
use crate::term::{Literal, Op, Term};

impl Checker<'_> {
    /// The term of a `case`: its values have one type.
    pub(super) fn case(
        &mut self,
        branches: &[(Element, Element)],
        last: Option<&Element>,
        over: &mut Over,
    ) -> Checked<TermId> {
        let mut args = Vec::with_capacity(2 * branches.len() + 1);
        let mut data: Option<DataType> = None;
        for (when, then) in branches {
            let when = self.placed(when, over)?;
            self.need(when, &[Class::Truth], "`when` takes a truth value")?;
            let then = self.placed(then, over)?;
            data = Some(self.joined(data, then)?);
            args.extend([when.term, then.term]);
        }
        if let Some(last) = last {
            let last = self.placed(last, over)?;
            data = Some(self.joined(data, last)?);
            args.push(last.term);
        }
        let data = data.unwrap_or(DataType::Null);
        if last.is_none() {
            let null = Term::Literal(Literal::Null(data.clone()));
            args.push(self.terms.add(null, data.clone()));
        }
        Ok(self.apply(Op::Case, args, data))
    }

    /// The two as values of comparable types, from where they are written.
    pub fn same_class(
        &mut self,
        a: TermId,
        at: Span,
        b: TermId,
        to: Span,
    ) -> Checked<(TermId, TermId)> {
        self.alike(Placed { term: a, span: at }, Placed { term: b, span: to })
    }

    /// The type that holds `a` and `b`, which is written at `span`.
    pub fn common(&self, a: TermId, b: TermId, span: Span) -> Checked<DataType> {
        let data = self.terms.data(a).clone();
        self.joined(Some(data), Placed { term: b, span })
    }

    /// The type that holds `data` and `e`.
    fn joined(&self, data: Option<DataType>, e: Placed) -> Checked<DataType> {
        let own = self.terms.data(e.term).clone();
        let Some(data) = data else { return Ok(own) };
        Ok(match (class(&data), class(&own)) {
            _ if data == own => data,
            (Class::Number(x), Class::Number(y)) => number(x.max(y)),
            (Class::Number(_) | Class::Float, Class::Number(_) | Class::Float) => DataType::Float64,
            _ => {
                let what = format!(
                    "this is {}, the value before it {}: a `case` has one type",
                    called(&own),
                    called(&data)
                );
                return wrong(e.span, what);
            }
        })
    }
}
