//! `generate_series` of constants: rows that are made one by one, not as an array.

use std::ops::ControlFlow;

use messages::Error;
use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, GroupByExpr, Ident, ObjectName, Query, Select, SelectItem, TableFactor,
    TableFunctionArgs, TableWithJoins, UnaryOperator, Value, Visitor, VisitorMut,
};

use crate::constant::Constant;
use crate::names::column_name;
use crate::walk::{Walk, WalkMut};

/// The name of the function.
pub(super) const SERIES: &str = "generate_series";

/// The arguments of a series, if they are whole numbers that are written out, and the step is not zero.
pub(super) fn whole_arguments(args: &[FunctionArg]) -> Option<Vec<FunctionArg>> {
    let numbers = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => whole(expr),
        _ => None,
    });
    let numbers: Vec<i64> = numbers.collect::<Option<_>>()?;
    // The least of all has no sign of its own.
    let plain = !numbers.contains(&i64::MIN);
    if !plain || !matches!(numbers[..], [_, _] | [_, _, ..=-1 | 1..]) {
        return None;
    }
    let plain = |number: i64| {
        let digits = Expr::value(Value::Number(number.unsigned_abs().to_string(), false));
        let expr = if number < 0 {
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: Box::new(digits),
            }
        } else {
            digits
        };
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
    };
    Some(numbers.into_iter().map(plain).collect())
}

/// The whole number that an expression is, also one that is cast to a type in which it fits.
fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Nested(inner) => whole(inner),
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr,
            data_type,
            array: false,
            format: None,
        } => {
            // `1e6::int` is one, too.
            let float = || match Constant::of(expr)? {
                Constant::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                    Some(number as i64)
                }
                _ => None,
            };
            let number = whole(expr).or_else(float)?;
            let fits = match data_type {
                DataType::SmallInt(None) | DataType::Int2(None) => i16::try_from(number).is_ok(),
                DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => {
                    i32::try_from(number).is_ok()
                }
                DataType::BigInt(None) | DataType::Int8(None) => true,
                _ => false,
            };
            fits.then_some(number)
        }
        Expr::BinaryOp { left, op, right } => {
            let (left, right) = (whole(left)?, whole(right)?);
            match op {
                BinaryOperator::Plus => left.checked_add(right),
                BinaryOperator::Minus => left.checked_sub(right),
                BinaryOperator::Multiply => left.checked_mul(right),
                _ => None,
            }
        }
        other => match Constant::of(other)? {
            Constant::Whole(number) => Some(number),
            _ => None,
        },
    }
}

/// Functions of one row, beside which a series may stand in `from` instead of the select list.
const PLAIN: [&str; 32] = [
    "abs",
    "ascii",
    "ceil",
    "ceiling",
    "chr",
    "concat",
    "date_trunc",
    "exp",
    "floor",
    "format",
    "gen_random_uuid",
    "greatest",
    "least",
    "left",
    "length",
    "ln",
    "lower",
    "lpad",
    "md5",
    "mod",
    "now",
    "power",
    "random",
    "repeat",
    "replace",
    "right",
    "round",
    "rpad",
    "sqrt",
    "substr",
    "to_char",
    "upper",
];

/// Moves the only series of a `select` without `from` there: `select generate_series(1, 9), random()`.
pub(super) struct Alone;

impl VisitorMut for Alone {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        if let Some(args) = alone(select) {
            let mut moved = Moved;
            for item in &mut select.projection {
                let _ = item.walk_mut(&mut moved);
            }
            select.from = vec![from(args)];
        }
        ControlFlow::Continue(())
    }
}

fn alone(select: &Select) -> Option<Vec<FunctionArg>> {
    let ungrouped = match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) => keys.is_empty() && modifiers.is_empty(),
        GroupByExpr::All(_) => false,
    };
    let bare = select.from.is_empty()
        && select.selection.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.distinct.is_none()
        && ungrouped;
    if !bare {
        return None;
    }
    let mut found = Found::default();
    for item in &select.projection {
        let plain = matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        );
        if !plain || item.walk(&mut found).is_break() {
            return None;
        }
    }
    found.args
}

fn from(args: Vec<FunctionArg>) -> TableWithJoins {
    TableWithJoins {
        relation: TableFactor::Table {
            name: ObjectName::from(vec![Ident::new(SERIES)]),
            alias: None,
            args: Some(TableFunctionArgs {
                args,
                settings: None,
            }),
            with_hints: vec![],
            version: None,
            with_ordinality: false,
            partitions: vec![],
            json_path: None,
            sample: None,
            index_hints: vec![],
        },
        joins: vec![],
    }
}

fn is_series(function: &Function) -> bool {
    let [part] = &function.name.0[..] else {
        return false;
    };
    part.as_ident()
        .is_some_and(|name| column_name(name) == SERIES)
}

/// Looks for the one series; breaks at whatever may have another meaning beside a table.
#[derive(Default)]
struct Found {
    args: Option<Vec<FunctionArg>>,
}

impl Visitor for Found {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let function = match expr {
            Expr::Function(function) => function,
            Expr::Case { .. } | Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                return ControlFlow::Break(());
            }
            _ => return ControlFlow::Continue(()),
        };
        if is_series(function) {
            let FunctionArguments::List(list) = &function.args else {
                return ControlFlow::Break(());
            };
            let numbers = whole_arguments(&list.args);
            if self.args.is_some() || numbers.is_none() {
                return ControlFlow::Break(());
            }
            self.args = numbers;
            return ControlFlow::Continue(());
        }
        let [part] = &function.name.0[..] else {
            return ControlFlow::Break(());
        };
        let name = part.as_ident().map(column_name);
        if function.over.is_some() || !name.is_some_and(|name| PLAIN.contains(&name.as_str())) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Puts the column of the series where the series was.
struct Moved;

impl VisitorMut for Moved {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Function(function) if is_series(function)) {
            *expr = Expr::Identifier(Ident::with_quote('"', SERIES));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::{Statement, parse};

    fn read(text: &str) -> String {
        match parse(text).unwrap().pop().unwrap().statement {
            Statement::Sql(sql) => sql.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_series_of_constants_stands_in_from() {
        for text in [
            "select generate_series(1, 2 + 3)",
            "select generate_series(1, 5::int), random()",
            "select * from generate_series(1, cast(5 as bigint)) as g",
            "select 2 * generate_series(1, 5) as g",
        ] {
            let read = read(text);
            assert!(
                read.contains("FROM generate_series(1, 5)"),
                "{text}: {read}"
            );
        }
        for text in [
            "select generate_series(1, 5), count(*)",
            "select generate_series(1, 5), generate_series(1, 5)",
            "select generate_series(1, 5, 0)",
            "select generate_series(1, 70000::smallint)",
            "select generate_series(1, 5) where false",
            "select * from generate_series(1, 5) with ordinality",
            "select * from t, generate_series(1, t.a)",
        ] {
            let read = read(text);
            assert!(!read.contains("generate_series(1, 5)"), "{text}: {read}");
            assert!(read.contains("array series"), "{text}: {read}");
        }
    }
}
