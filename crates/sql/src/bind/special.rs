//! Operators of arrays, structs, uuids, enums and JSON, as calls of functions.
//!
//! A constant in quotes takes the type of the other side, as in PostgreSQL. What stands in a plan besides such operators,
//! [`optimize::special`](crate::optimize::special) looks after.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::expr::Placeholder;
use datafusion_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion_expr::{Cast, Expr, ExprSchemable};
use sqlparser::ast::BinaryOperator;
use table::{JsonKind, is_enum, json_kind, jsonb_type, map_parts, timetz_type, uuid_type};

use crate::functions::arguments::is_text;
use crate::functions::convert::conversion;
use crate::functions::json::path;
use crate::functions::json_key;
use crate::functions::lists::names::{MAKE, MAPS_EQUAL};
use crate::functions::lists::types::{
    dimensions, has, is_list, is_map, is_special, is_struct, item, list_of, plain, quoted_beside,
    together,
};
use crate::functions::unknown::quoted;
use crate::functions::{lists, special};
use crate::messages::types::type_name;

/// An operator with its operands.
struct Operation {
    op: BinaryOperator,
    left: Expr,
    right: Expr,
    /// The types of both sides.
    l: DataType,
    r: DataType,
}

/// The call that an operator stands for, if one of its sides is special.
///
/// # Errors
/// If there is no such operator for these types.
pub(crate) fn planned(
    expr: RawBinaryExpr,
    schema: &DFSchema,
) -> Result<PlannerResult<RawBinaryExpr>> {
    let (Ok(l), Ok(r)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
        return Ok(PlannerResult::Original(expr));
    };
    if !is_special(&l) && !is_special(&r) && !is_own(&expr.op) {
        return Ok(PlannerResult::Original(expr));
    }
    // Sums of times are made elsewhere.
    let sum = matches!(expr.op, BinaryOperator::Plus | BinaryOperator::Minus);
    if sum && (l == timetz_type() || r == timetz_type()) {
        return Ok(PlannerResult::Original(expr));
    }
    let RawBinaryExpr { op, left, right } = expr;
    let operation = Operation {
        op,
        left,
        right,
        l,
        r,
    };
    let (l, r) = (&operation.l, &operation.r);
    if json_kind(l).is_some() || json_kind(r).is_some() {
        operation.of_json()
    } else if is_map(l) || is_map(r) {
        operation.of_maps()
    } else if is_list(l) || is_list(r) {
        operation.of_lists()
    } else if is_struct(l) || is_struct(r) {
        operation.of_structs()
    } else if is_own(&operation.op) {
        operation.unknown()
    } else {
        let kind = if is_enum(l) { l } else { r };
        let kind = if is_enum(kind) {
            kind.clone()
        } else if *l == timetz_type() || *r == timetz_type() {
            timetz_type()
        } else {
            uuid_type()
        };
        operation.of_one_kind(&kind)
    }
}

/// Operators that only special types have.
fn is_own(op: &BinaryOperator) -> bool {
    use BinaryOperator::{
        Arrow, ArrowAt, AtArrow, AtAt, AtQuestion, HashArrow, HashLongArrow, HashMinus, LongArrow,
        PGOverlap, Question, QuestionAnd, QuestionPipe,
    };
    matches!(
        op,
        Arrow
            | LongArrow
            | HashArrow
            | HashLongArrow
            | HashMinus
            | AtArrow
            | AtAt
            | AtQuestion
            | ArrowAt
            | PGOverlap
            | Question
            | QuestionAnd
            | QuestionPipe
    )
}

fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Whether an expression is a constant in quotes, whose type is open.
pub(crate) fn is_open(expr: &Expr, ty: &DataType) -> bool {
    is_text(ty) && matches!(expr, Expr::Literal(_, _))
}

/// A parameter of this type.
fn typed(id: String, ty: &DataType) -> Expr {
    let field = Arc::new(Field::new("", ty.clone(), true));
    Expr::Placeholder(Placeholder::new_with_field(id, Some(field)))
}

/// `expr` as a value of type `to`, if it is an open constant or a parameter; otherwise as it is.
///
/// # Errors
/// If there is no such cast.
pub(crate) fn adapted(expr: Expr, from: &DataType, to: &DataType) -> Result<(Expr, DataType)> {
    if let Expr::Placeholder(parameter) = expr {
        // A parameter whose type nothing has told yet takes this one.
        return Ok(match parameter.field {
            None => (typed(parameter.id, to), to.clone()),
            Some(_) => (Expr::Placeholder(parameter), from.clone()),
        });
    }
    if from == to || !is_open(&expr, from) {
        return Ok((expr, from.clone()));
    }
    if *from == DataType::Null {
        let null = Expr::Cast(Cast::new(Box::new(expr), to.clone()));
        return Ok((null, to.clone()));
    }
    match conversion(expr.clone(), from, to, true)? {
        Some(cast) => Ok((cast, to.clone())),
        None => Ok((expr, from.clone())),
    }
}

/// The sides of a comparison of rows, of which a constant in quotes is read as a row.
///
/// # Errors
/// If it is none.
pub(crate) fn rows(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    let (l, r) = (left.get_type(schema)?, right.get_type(schema)?);
    let of_row = |ty: &DataType| is_struct(ty).then(|| plain(ty));
    let (of_left, of_right) = (of_row(&l), of_row(&r));
    let left = match of_right {
        Some(to) if l != DataType::Null => adapted(left, &l, &to)?.0,
        _ => left,
    };
    let right = match of_left {
        Some(to) if r != DataType::Null => adapted(right, &r, &to)?.0,
        _ => right,
    };
    Ok((left, right))
}

/// Whether an expression is a constant in quotes that is written as an array with a dimension less than these.
fn is_part(expr: &Expr, dimensions: usize) -> bool {
    let depth = |text: &str| {
        let letters = text.chars().filter(|letter| !letter.is_whitespace());
        letters.take_while(|letter| *letter == '{').count()
    };
    quoted(expr).is_some_and(|text| depth(text) > 0 && depth(text) + 1 == dimensions)
}

type Planned = Result<PlannerResult<RawBinaryExpr>>;

fn call(name: &str, args: Vec<Expr>) -> Planned {
    Ok(PlannerResult::Planned(special(name)?.call(args)))
}

impl Operation {
    fn original(self) -> Planned {
        let Operation {
            op, left, right, ..
        } = self;
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }

    fn unknown(&self) -> Planned {
        plan_err!(
            "operator does not exist: {} {} {}",
            type_name(&self.l),
            self.op,
            type_name(&self.r)
        )
    }

    /// The same with the constant among the sides made one of type `to`.
    fn with(mut self, left: Option<&DataType>, right: Option<&DataType>) -> Result<Operation> {
        if let Some(to) = left {
            (self.left, self.l) = adapted(self.left, &self.l, to)?;
        }
        if let Some(to) = right {
            (self.right, self.r) = adapted(self.right, &self.r, to)?;
        }
        Ok(self)
    }

    /// The same with a parameter on the right taken for a text, as PostgreSQL does: the key of a field, not the index of an item.
    fn with_key(self) -> Result<Operation> {
        if matches!(self.right, Expr::Placeholder(_)) {
            self.with(None, Some(&DataType::Utf8View))
        } else {
            Ok(self)
        }
    }

    fn of_json(self) -> Planned {
        use BinaryOperator::{
            Arrow, ArrowAt, AtArrow, AtAt, AtQuestion, HashArrow, HashLongArrow, HashMinus,
            LongArrow, Minus, Question, QuestionAnd, QuestionPipe, StringConcat,
        };
        let jsonb = Some(&jsonb_type());
        let keys = list_of(DataType::Utf8View);
        let normal = |ty: &DataType| json_kind(ty) == Some(JsonKind::Normal);
        if json_kind(&self.l).is_some() {
            let name = match self.op {
                Arrow => Some("json get"),
                LongArrow => Some("json get text"),
                _ => None,
            };
            if let Some(name) = name {
                let own = self.with_key()?;
                return call(name, vec![own.left, own.right]);
            }
            let name = match self.op {
                HashArrow => Some("json get path"),
                HashLongArrow => Some("json get path text"),
                _ => None,
            };
            if let Some(name) = name {
                let own = self.with(None, Some(&keys))?;
                return call(name, vec![own.left, own.right]);
            }
        }
        let of_path = match self.op {
            AtQuestion => Some(path::FOUND),
            AtAt => Some(path::MATCHED),
            _ => None,
        };
        if let Some(name) = of_path {
            // A parameter on the right is the text of a path.
            let own = self.with_key()?.with(jsonb, None)?;
            return call(name, vec![own.left, own.right]);
        }
        let own = match self.op {
            Question | Minus => self.with_key()?,
            QuestionAnd | QuestionPipe | HashMinus => self.with(None, Some(&keys))?,
            _ => self.with(jsonb, jsonb)?,
        };
        if !(normal(&own.l) || own.op == ArrowAt && normal(&own.r)) {
            return own.unknown();
        }
        let both = normal(&own.l) && normal(&own.r);
        let name = match own.op {
            Question => "jsonb exists",
            QuestionPipe => "jsonb exists any",
            QuestionAnd => "jsonb exists all",
            Minus => "jsonb delete",
            HashMinus => "jsonb delete path",
            _ if !both => return own.unknown(),
            StringConcat => "jsonb concat",
            AtArrow => "jsonb contains",
            ArrowAt => return call("jsonb contains", vec![own.right, own.left]),
            _ if compares(&own.op) => {
                let (left, right) = (json_key(own.left)?, json_key(own.right)?);
                let op = own.op;
                return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
            }
            _ => return own.unknown(),
        };
        call(name, vec![own.left, own.right])
    }

    fn of_lists(self) -> Planned {
        use BinaryOperator::{ArrowAt, AtArrow, PGOverlap, StringConcat};
        let beside = |list: &DataType, other: &Expr| {
            let parts = self.op == StringConcat && is_part(other, dimensions(list));
            let own = plain(item(list).filter(|_| parts).unwrap_or(list));
            let is_quoted = quoted(other).is_some();
            is_list(list).then(|| if is_quoted { quoted_beside(&own) } else { own })
        };
        let (left, right) = (beside(&self.r, &self.left), beside(&self.l, &self.right));
        let own = self.with(left.as_ref(), right.as_ref())?;
        let (a, b) = (dimensions(&own.l), dimensions(&own.r));
        if own.op == StringConcat {
            let one = |expr: Expr| {
                Ok::<_, datafusion_common::DataFusionError>(special(MAKE)?.call(vec![expr]))
            };
            return match (a, b) {
                (a, b) if a == b => call("array_cat", vec![own.left, own.right]),
                (1, 0) => call("array_append", vec![own.left, own.right]),
                (0, 1) => call("array_prepend", vec![own.left, own.right]),
                (a, b) if a == b + 1 => call("array_cat", vec![own.left, one(own.right)?]),
                (a, b) if a + 1 == b => call("array_cat", vec![one(own.left)?, own.right]),
                _ => own.unknown(),
            };
        }
        if a != b {
            return own.unknown();
        }
        own.comparable()?;
        match own.op {
            AtArrow => call("array contains", vec![own.left, own.right]),
            ArrowAt => call("array contains", vec![own.right, own.left]),
            PGOverlap => call("array overlaps", vec![own.left, own.right]),
            _ if compares(&own.op) => own.compared(),
            _ => own.unknown(),
        }
    }

    /// That there is no `json` in arrays, which is not compared.
    fn comparable(&self) -> Result<()> {
        use BinaryOperator::{Gt, GtEq, Lt, LtEq};
        let is_text = |ty: &DataType| json_kind(ty) == Some(JsonKind::Text);
        if !has(&self.l, is_text) && !has(&self.r, is_text) {
            return Ok(());
        }
        match self.op {
            Lt | LtEq | Gt | GtEq => {
                plan_err!("could not identify a comparison function for type json")
            }
            _ => plan_err!("could not identify an equality operator for type json"),
        }
    }

    fn of_maps(self) -> Planned {
        if self.op == BinaryOperator::StringConcat {
            return self.with_text();
        }
        let (l, r) = (plain(&self.l), plain(&self.r));
        let (left, right) = (is_map(&r).then_some(&r), is_map(&l).then_some(&l));
        let own = self.with(left, right)?;
        if !(compares(&own.op) && is_map(&own.l) && is_map(&own.r)) {
            return own.unknown();
        }
        let deep = [&own.l, &own.r]
            .iter()
            .filter_map(|ty| map_parts(ty))
            .any(|(_, value)| has(value, |ty| is_map(ty) || json_kind(ty).is_some()));
        if deep {
            return plan_err!("not supported: comparisons of maps with maps or JSON in them");
        }
        let equal = special(MAPS_EQUAL)?.call(vec![own.left, own.right]);
        match own.op {
            BinaryOperator::Eq => Ok(PlannerResult::Planned(equal)),
            BinaryOperator::NotEq => Ok(PlannerResult::Planned(Expr::Not(Box::new(equal)))),
            _ => plan_err!("not supported: the order of maps, which have none"),
        }
    }

    fn compared(self) -> Planned {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq};
        // An error if they do not go together.
        let both = together(&[self.l.clone(), self.r.clone()])?;
        if has(&both, is_map) {
            return plan_err!("not supported: comparisons of arrays and structs with maps in them");
        }
        let same = self.l == self.r && both == self.l && lists::is_plain(&both);
        // The planner's joins do not find structs by others that are equal.
        let same = same && !has(&both, is_struct);
        let name = match self.op {
            // A join finds rows by it.
            Eq if same => return self.original(),
            Eq => "array eq",
            Lt => "array lt",
            LtEq => "array le",
            Gt => "array gt",
            GtEq => "array ge",
            _ => "array ne",
        };
        call(name, vec![self.left, self.right])
    }

    fn of_structs(self) -> Planned {
        if self.op == BinaryOperator::StringConcat {
            return self.with_text();
        }
        let (l, r) = (plain(&self.l), plain(&self.r));
        let (left, right) = (is_struct(&r).then_some(&r), is_struct(&l).then_some(&l));
        let own = self.with(left, right)?;
        if !(compares(&own.op) && is_struct(&own.l) && is_struct(&own.r)) {
            return own.unknown();
        }
        if [&own.l, &own.r]
            .iter()
            .any(|ty| has(ty, |ty| json_kind(ty).is_some()))
        {
            return plan_err!("not supported: comparisons of structs with JSON in them");
        }
        own.compared()
    }

    /// `||` of a text and a value that is written as one.
    fn with_text(self) -> Planned {
        if !is_text(&self.l) && !is_text(&self.r) {
            return self.unknown();
        }
        let text = |expr: Expr, ty: &DataType| {
            let cast = conversion(expr.clone(), ty, &DataType::Utf8View, true)?;
            Ok::<_, datafusion_common::DataFusionError>(cast.unwrap_or(expr))
        };
        let (left, right) = if is_text(&self.l) {
            (self.left, text(self.right, &self.r)?)
        } else {
            (text(self.left, &self.l)?, self.right)
        };
        let op = self.op;
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }

    /// Of uuids, of times with a zone, or of an enum.
    fn of_one_kind(self, kind: &DataType) -> Planned {
        if compares(&self.op) {
            let own = self.with(Some(kind), Some(kind))?;
            return if own.l == own.r {
                own.original()
            } else {
                own.unknown()
            };
        }
        if self.op == BinaryOperator::StringConcat {
            return self.with_text();
        }
        self.unknown()
    }
}
