//! Expressions over elements: their types, and the terms that they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::DataType;

use crate::check::checker::Checker;
use crate::error::{Checked, Span, wrong};
use crate::matrix::Matrix;
use crate::space::{Space, TermId};
use crate::syntax::{Element, Function, Of, Operand, Sign};
use crate::term::{Instance, Literal, Op, Source, Term};

/// Classes of types: values of one class can be compared and computed with each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Class {
    /// A decimal with this many digits after the point.
    Number(u8),
    Float,
    Text,
    Truth,
    /// Dates and times, each its own.
    Time,
    Other,
}

pub(crate) fn class(data: &DataType) -> Class {
    use DataType::*;
    match data {
        Boolean => Class::Truth,
        Utf8View => Class::Text,
        Float64 => Class::Float,
        Decimal128(_, scale) if *scale >= 0 => Class::Number(*scale as u8),
        data if data.is_integer() => Class::Number(0),
        Date32 | Time32(_) | Time64(_) | Timestamp(..) => Class::Time,
        _ => Class::Other,
    }
}

/// A type in the words of messages.
pub(crate) fn called(data: &DataType) -> String {
    match class(data) {
        Class::Number(_) => "a number".into(),
        Class::Float => "a float".into(),
        Class::Text => "a text".into(),
        Class::Truth => "a truth value".into(),
        Class::Time if *data == DataType::Date32 => "a date".into(),
        _ => format!("a value of type {data}"),
    }
}

/// Most digits of a number.
const DIGITS: u8 = 38;
/// Said of an operand of a bitwise operator that is no whole number.
const BITS: &str = "bits are those of whole numbers";

/// The type of numbers with `scale` digits after the point.
pub(crate) fn number(scale: u8) -> DataType {
    DataType::Decimal128(DIGITS, scale as i8)
}

/// What the operands of an expression have in common: their columns and conditions.
#[derive(Default)]
pub(crate) struct Over {
    /// Their columns, and whose they are.
    pub space: Option<(Space, Span)>,
    /// Where none of them is zero.
    pub conditions: BTreeSet<TermId>,
}

/// A term and where it is written.
#[derive(Clone, Copy)]
pub(super) struct Placed {
    pub term: TermId,
    pub span: Span,
}

impl Checker<'_> {
    /// The term of `e`; `over` gathers what its operands say. A case for each kind of element.
    pub fn element(&mut self, e: &Element, over: &mut Over) -> Checked<TermId> {
        let span = e.span;
        match &e.what {
            Of::Operand(operand) => self.operand_element(operand, over),
            Of::Number(text) => self.number(text, span),
            Of::Text(text) => {
                let term = Term::Literal(Literal::Text(text.clone()));
                Ok(self.terms.add(term, DataType::Utf8View))
            }
            Of::Truth(truth) => Ok(self.truth(*truth)),
            Of::Match(e, pattern, at) => {
                if let Err(e) = regex::Regex::new(&whole(pattern)) {
                    let text = e.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    return wrong(*at, format!("not a regular expression: {last}"));
                }
                let inner = self.placed(e, over)?;
                self.need(inner, &[Class::Text], "`match` looks at texts")?;
                Ok(self.apply(
                    Op::Match(pattern.clone()),
                    vec![inner.term],
                    DataType::Boolean,
                ))
            }
            Of::Apply(function, args) => self.function(*function, args, over),
            Of::Not(e) => {
                let inner = self.placed(e, over)?;
                self.need(inner, &[Class::Truth], "`not` takes a truth value")?;
                Ok(self.not(inner.term))
            }
            Of::Negative(e) => {
                let inner = self.placed(e, over)?;
                let zero = self.digits(0, 0);
                self.arithmetic(Sign::Sub, Placed { term: zero, span }, inner)
            }
            Of::Flip(e) => {
                let inner = self.placed(e, over)?;
                self.need(inner, &[Class::Number(0)], BITS)?;
                Ok(self.apply(Op::Flip, vec![inner.term], DataType::Int64))
            }
            Of::Null(e, not) => {
                let inner = self.placed(e, over)?;
                let null = self.apply(Op::IsNull, vec![inner.term], DataType::Boolean);
                Ok(if *not { self.not(null) } else { null })
            }
            Of::Binary(sign, a, b) => {
                let (a, b) = (self.placed(a, over)?, self.placed(b, over)?);
                self.binary(*sign, a, b)
            }
            Of::Between(e, not, low, high) => {
                let e = self.placed(e, over)?;
                let (low, high) = (self.placed(low, over)?, self.placed(high, over)?);
                let parts = [
                    self.compare(Sign::Ge, e, low)?,
                    self.compare(Sign::Le, e, high)?,
                ];
                let inside = self.terms.and(parts);
                Ok(if *not { self.not(inside) } else { inside })
            }
            Of::In(e, not, among) => {
                let inside = self.among(e, among, over)?;
                Ok(if *not { self.not(inside) } else { inside })
            }
            Of::Case(branches, last) => self.case(branches, last.as_deref(), over),
        }
    }

    fn binary(&mut self, sign: Sign, a: Placed, b: Placed) -> Checked<TermId> {
        match sign {
            Sign::And | Sign::Or => {
                let what = format!("`{}` takes truth values", sign.text());
                self.need(a, &[Class::Truth], &what)?;
                self.need(b, &[Class::Truth], &what)?;
                match sign {
                    Sign::And => Ok(self.terms.and([a.term, b.term])),
                    _ => Ok(self.or([a.term, b.term])),
                }
            }
            sign if sign.level() == crate::syntax::COMPARISON => self.compare(sign, a, b),
            Sign::BitOr | Sign::BitXor | Sign::BitAnd | Sign::Left | Sign::Right => {
                self.need(a, &[Class::Number(0)], BITS)?;
                self.need(b, &[Class::Number(0)], BITS)?;
                Ok(self.apply(Op::Sign(sign), vec![a.term, b.term], DataType::Int64))
            }
            _ => self.arithmetic(sign, a, b),
        }
    }

    pub(super) fn placed(&mut self, e: &Element, over: &mut Over) -> Checked<Placed> {
        Ok(Placed {
            term: self.element(e, over)?,
            span: e.span,
        })
    }

    pub(super) fn apply(&mut self, op: Op, args: Vec<TermId>, data: DataType) -> TermId {
        self.terms.add(Term::Apply(op, args), data)
    }

    fn truth(&mut self, truth: bool) -> TermId {
        let term = Term::Literal(Literal::Truth(truth));
        self.terms.add(term, DataType::Boolean)
    }

    fn digits(&mut self, digits: i128, scale: u8) -> TermId {
        let term = Term::Literal(Literal::Number(digits, scale));
        self.terms.add(term, number(scale))
    }

    fn float(&mut self, value: f64) -> TermId {
        let term = Term::Literal(Literal::Float(value.to_bits()));
        self.terms.add(term, DataType::Float64)
    }

    /// The negation of `term`; that of "is present" is "is absent".
    fn not(&mut self, term: TermId) -> TermId {
        match self.terms.get(term) {
            Term::Present(instance) => {
                let absent = Term::Absent(*instance);
                self.terms.add(absent, DataType::Boolean)
            }
            _ => self.apply(Op::Not, vec![term], DataType::Boolean),
        }
    }

    fn or(&mut self, parts: [TermId; 2]) -> TermId {
        let mut all = BTreeSet::new();
        for part in parts {
            match self.terms.get(part) {
                Term::Apply(Op::Sign(Sign::Or), inner) => all.extend(inner.iter().copied()),
                _ => {
                    all.insert(part);
                }
            }
        }
        let all: Vec<TermId> = all.into_iter().collect();
        match all[..] {
            [one] => one,
            _ => self.apply(Op::Sign(Sign::Or), all, DataType::Boolean),
        }
    }

    /// Checks that the type of `e` is of one of `classes`; the error says `what`.
    pub(super) fn need(&self, e: Placed, classes: &[Class], what: &str) -> Checked<()> {
        let data = self.terms.data(e.term);
        if classes.contains(&class(data)) {
            Ok(())
        } else {
            wrong(e.span, format!("{what}; this is {}", called(data)))
        }
    }

    /// The elements of `operand`: its values, else the labels of its rows, else whether it is not zero.
    fn operand_element(&mut self, operand: &Operand, over: &mut Over) -> Checked<TermId> {
        let matrix = self.operand(operand)?;
        let span = operand.span;
        if matrix.transposed {
            return wrong(
                span,
                "a transposed matrix can only be the second operand of `dot`",
            );
        }
        if matrix.space != Space::One {
            match &over.space {
                Some((space, first)) if *space != matrix.space => {
                    let what = format!(
                        "{} and {} do not go together element by element: the one has {}, the other {}",
                        self.quote(*first),
                        self.quote(span),
                        self.columns(space),
                        self.columns(&matrix.space)
                    );
                    return wrong(span, what);
                }
                Some(_) => {}
                None => over.space = Some((matrix.space.clone(), span)),
            }
        }
        match (matrix.value, &matrix.keys[..]) {
            (Some(value), []) => {
                over.conditions.extend(&matrix.conditions);
                Ok(value)
            }
            (None, [key]) => {
                over.conditions.extend(&matrix.conditions);
                Ok(key.term)
            }
            (None, []) => Ok(self.terms.and(matrix.conditions)),
            _ => wrong(
                span,
                format!(
                    "{} is a {} of {}: an expression takes vectors and single attributes",
                    self.quote(span),
                    matrix.kind(),
                    self.shape(&matrix)
                ),
            ),
        }
    }

    fn number(&mut self, text: &str, span: Span) -> Checked<TermId> {
        if text.contains('e') {
            return match text.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(self.float(value)),
                _ => wrong(span, "a float this large does not exist"),
            };
        }
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let part = part.trim_end_matches('0');
        let digits: String = [whole.trim_start_matches('0'), part].concat();
        if digits.len() > usize::from(DIGITS) || part.len() > usize::from(DIGITS) {
            return wrong(span, format!("a number has at most {DIGITS} digits"));
        }
        let value = match digits.as_str() {
            "" => 0,
            digits => digits.parse().unwrap_or_default(),
        };
        Ok(self.digits(value, part.len() as u8))
    }

    fn function(
        &mut self,
        function: Function,
        args: &[Element],
        over: &mut Over,
    ) -> Checked<TermId> {
        let mut terms = Vec::with_capacity(args.len());
        for arg in args {
            let arg = self.placed(arg, over)?;
            let data = self.terms.data(arg.term);
            let what = format!("`{}` does not take this", function.name());
            match (function, class(data)) {
                (Function::Year, _) if *data == DataType::Date32 => {}
                (Function::Year, _) => {
                    let what = format!("`year` takes a date; this is {}", called(data));
                    return wrong(arg.span, what);
                }
                (Function::Substring, Class::Text) if terms.is_empty() => {}
                (Function::Substring, Class::Number(0)) if !terms.is_empty() => {}
                (Function::Substring, _) => {
                    let what = "`substring` takes a text, the place of its first character (1 for the first), and how many";
                    return wrong(arg.span, format!("{what}; this is {}", called(data)));
                }
                (_, Class::Number(_) | Class::Float) => {}
                _ => return wrong(arg.span, format!("{what}: it is {}", called(data))),
            }
            terms.push(arg.term);
        }
        let data = match function {
            Function::Year => DataType::Int32,
            Function::Substring => DataType::Utf8View,
            _ => DataType::Float64,
        };
        Ok(self.apply(Op::Function(function), terms, data))
    }

    fn arithmetic(&mut self, sign: Sign, a: Placed, b: Placed) -> Checked<TermId> {
        let numbers = |term: TermId| class(self.terms.data(term));
        let (x, y) = match (numbers(a.term), numbers(b.term)) {
            (Class::Number(x), Class::Number(y)) => (x, y),
            (Class::Number(_) | Class::Float, Class::Number(_) | Class::Float) => {
                return Ok(self.apply(Op::Sign(sign), vec![a.term, b.term], DataType::Float64));
            }
            (Class::Number(_) | Class::Float, _) => return self.no_number(sign, b),
            _ => return self.no_number(sign, a),
        };
        let literals = (
            self.terms.literal(a.term).cloned(),
            self.terms.literal(b.term).cloned(),
        );
        if let (Some(Literal::Number(p, _)), Some(Literal::Number(q, _))) = literals
            && let Some((value, scale)) = constant(sign, (p, x), (q, y))
        {
            return Ok(self.digits(value, scale));
        }
        let scale = match sign {
            Sign::Mul => x + y,
            Sign::Div => {
                return Ok(self.apply(Op::Sign(sign), vec![a.term, b.term], DataType::Float64));
            }
            _ => x.max(y),
        };
        if scale > DIGITS {
            let what =
                format!("this has {scale} digits after the point; at most {DIGITS} are possible");
            return wrong(a.span.to(b.span), what);
        }
        Ok(self.apply(Op::Sign(sign), vec![a.term, b.term], number(scale)))
    }

    fn no_number(&self, sign: Sign, e: Placed) -> Checked<TermId> {
        let data = called(self.terms.data(e.term));
        wrong(
            e.span,
            format!("`{}` takes numbers; this is {data}", sign.text()),
        )
    }

    /// The two as values of comparable types: a text compared with a date is read as a date.
    pub(super) fn alike(&mut self, a: Placed, b: Placed) -> Checked<(TermId, TermId)> {
        let (x, y) = (
            self.terms.data(a.term).clone(),
            self.terms.data(b.term).clone(),
        );
        if let (Class::Time, Some(Literal::Text(text))) = (class(&x), self.terms.literal(b.term)) {
            let text = text.clone();
            return Ok((a.term, self.time(&text, &x, b.span)?));
        }
        if let (Some(Literal::Text(text)), Class::Time) = (self.terms.literal(a.term), class(&y)) {
            let text = text.clone();
            return Ok((self.time(&text, &y, a.span)?, b.term));
        }
        let fits = match (class(&x), class(&y)) {
            (Class::Number(_) | Class::Float, Class::Number(_) | Class::Float) => true,
            (Class::Time, Class::Time) => x == y,
            (Class::Other, _) | (_, Class::Other) => false,
            (x, y) => x == y,
        };
        if fits {
            Ok((a.term, b.term))
        } else {
            wrong(
                a.span.to(b.span),
                format!("{} cannot be compared with {}", called(&x), called(&y)),
            )
        }
    }

    fn compare(&mut self, sign: Sign, a: Placed, b: Placed) -> Checked<TermId> {
        let (a, b) = self.alike(a, b)?;
        // The constant stands behind.
        let flip = self.terms.literal(a).is_some() && self.terms.literal(b).is_none();
        let (a, b, sign) = if flip {
            (b, a, turned(sign))
        } else {
            (a, b, sign)
        };
        if self.is_count(a) && self.is_nothing(sign, b) {
            return Ok(self.truth(true));
        }
        Ok(self.apply(Op::Sign(sign), vec![a, b], DataType::Boolean))
    }

    /// Whether `term` counts the elements of a group: there is one at least.
    fn is_count(&self, term: TermId) -> bool {
        let Term::Aggregate(instance, n) = self.terms.get(term) else {
            return false;
        };
        match self.terms.of(*instance) {
            Instance::Lookup {
                source: Source::Fold(fold),
                ..
            } => {
                let found = &self.terms.fold(*fold).found[*n];
                found.function == engine::Function::Count && found.of.is_none()
            }
            _ => false,
        }
    }

    /// Whether every number from 1 on is `sign` `term`.
    fn is_nothing(&self, sign: Sign, term: TermId) -> bool {
        matches!(
            (sign, self.terms.literal(term)),
            (Sign::Gt | Sign::Ne, Some(Literal::Number(0, _)))
                | (Sign::Ge, Some(Literal::Number(1, 0)))
        )
    }

    /// A date or time that is written as a text.
    fn time(&mut self, text: &str, data: &DataType, span: Span) -> Checked<TermId> {
        let array: ArrayRef = Arc::new(StringArray::from(vec![text.trim()]));
        let mut value = Vec::new();
        let read = arrow::compute::cast(&array, data)
            .ok()
            .filter(|array| array.is_valid(0))
            .and_then(|array| table::ints_of(&array, &mut value).ok());
        match (read, value.first()) {
            (Some(()), Some(value)) => {
                let literal = Literal::Typed(*value, data.clone());
                Ok(self.terms.add(Term::Literal(literal), data.clone()))
            }
            _ => {
                let example = match data {
                    DataType::Date32 => "; write it like \"1994-01-31\"",
                    _ => "",
                };
                let what = &called(data)[2..];
                wrong(span, format!("{text:?} is no {what}{example}"))
            }
        }
    }

    fn among(&mut self, e: &Element, among: &[Element], over: &mut Over) -> Checked<TermId> {
        let e = self.placed(e, over)?;
        let mut args = vec![e.term];
        let mut tests = Vec::with_capacity(among.len());
        for one in among {
            let one = self.placed(one, over)?;
            let (of, value) = self.alike(e, one)?;
            if of != e.term || self.terms.literal(value).is_none() {
                let test = self.compare(Sign::Eq, e, one)?;
                tests.push(test);
                continue;
            }
            if !args[1..].contains(&value) {
                args.push(value);
            }
        }
        let mut all = match args.len() {
            1 => None,
            _ => Some(self.apply(Op::In, args, DataType::Boolean)),
        };
        for test in tests {
            all = Some(match all {
                None => test,
                Some(all) => self.or([all, test]),
            });
        }
        Ok(all.unwrap_or_else(|| self.truth(false)))
    }

    /// The matrix of `lift` or `bitmap` over what `over` says.
    pub fn matrix_over(over: Over) -> Matrix {
        let space = over.space.map_or(Space::One, |(space, _)| space);
        Matrix {
            conditions: over.conditions,
            ..Matrix::over(space)
        }
    }
}

/// A regular expression that must fit the whole text.
pub(crate) fn whole(pattern: &str) -> String {
    format!("(?s)^(?:{pattern})$")
}

fn turned(sign: Sign) -> Sign {
    match sign {
        Sign::Lt => Sign::Gt,
        Sign::Le => Sign::Ge,
        Sign::Gt => Sign::Lt,
        Sign::Ge => Sign::Le,
        other => other,
    }
}

/// Arithmetic of constants, digits with how many of them follow the point.
fn constant(sign: Sign, a: (i128, u8), b: (i128, u8)) -> Option<(i128, u8)> {
    let scale = a.1.max(b.1);
    let up = |(value, own): (i128, u8)| {
        let factor = 10i128.checked_pow(u32::from(scale - own))?;
        value.checked_mul(factor)
    };
    let (value, scale) = match sign {
        Sign::Add => (up(a)?.checked_add(up(b)?)?, scale),
        Sign::Sub => (up(a)?.checked_sub(up(b)?)?, scale),
        Sign::Mul => (a.0.checked_mul(b.0)?, a.1 + b.1),
        _ => return None,
    };
    let most = 10i128.checked_pow(u32::from(DIGITS))?;
    (scale <= DIGITS && -most < value && value < most).then_some((value, scale))
}
