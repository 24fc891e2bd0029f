//! Values that have no type together in PostgreSQL, such as texts and numbers: arguments of `coalesce`, `greatest`, `least` and
//! `nullif`, and the results of a `case`. The planner would read the texts as what stands beside them, or the others as texts.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::binary::type_union_resolution;
use datafusion_expr::{BinaryExpr, Case, Expr, ExprSchemable, Operator};

use crate::error::Error;
use crate::functions::number_types::united;
use crate::functions::object_kinds::gives_name;
use crate::optimize::expressions::is_text;
use crate::optimize::undefined::{apart_of, is_open, named, refusal};

/// Refuses arguments of a function whose arguments have one type, unless they have one.
///
/// # Errors
/// 42804, and 42883 of `nullif`, which compares.
pub(super) fn arguments(function: &str, args: &[Expr], schema: &DFSchema) -> Result<()> {
    match apart(args, schema) {
        Some((left, right)) if function == "nullif" => {
            Err(refusal(&left, Operator::Eq, &right).into())
        }
        Some(names) => Err(unmatched(&function.to_uppercase(), &names).into()),
        None => Ok(()),
    }
}

/// Refuses the results of a `case` unless they have a type together. That of `else` comes first, as in PostgreSQL's messages.
///
/// # Errors
/// 42804.
pub(super) fn results(case: &Case, schema: &DFSchema) -> Result<()> {
    let results = case.when_then_expr.iter().map(|(_, result)| &**result);
    match apart(case.else_expr.as_deref().into_iter().chain(results), schema) {
        Some(names) => Err(unmatched("CASE", &names).into()),
        None => Ok(()),
    }
}

fn unmatched(context: &str, (left, right): &(String, String)) -> Error {
    let message = format!("{context} types {left} and {right} cannot be matched");
    Error::coded("42804", message)
}

/// The names of the type that the first values have together and of the first other type that does not go with it; none if all of
/// them have one. What is of no type yet goes with any.
fn apart<'e>(
    values: impl IntoIterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Option<(String, String)> {
    let mut known: Option<(&Expr, DataType)> = None;
    for value in values {
        let Ok(ty) = value.get_type(schema) else {
            continue;
        };
        if ty == DataType::Null || is_text(&ty) && is_open(value) {
            continue;
        }
        known = Some(match known {
            None => (value, ty),
            Some((first, own)) => {
                let sides = ((first, &own), (value, &ty));
                if let Some(names) = apart_of(sides.0, sides.1) {
                    return Some(names);
                }
                if is_apart(sides.0, sides.1) {
                    return Some((named(&own), named(&ty)));
                }
                (first, widened(own, ty))
            }
        });
    }
    None
}

/// Whether one of two values is a number, and the other surely a text. Comparisons are not as strict.
fn is_apart((left, l): (&Expr, &DataType), (right, r): (&Expr, &DataType)) -> bool {
    match (is_text(l), is_text(r)) {
        (true, false) => r.is_numeric() && is_text_written(left),
        (false, true) => l.is_numeric() && is_text_written(right),
        _ => false,
    }
}

/// Whether an expression that gives a text gives one in PostgreSQL, too, by the way it is written: names of types and other things,
/// which are texts here, are numbers there.
fn is_text_written(text: &Expr) -> bool {
    match text {
        Expr::Alias(alias) => is_text_written(&alias.expr),
        Expr::Cast(cast) => !is_name(&cast.expr),
        Expr::BinaryExpr(BinaryExpr { op, .. }) => *op == Operator::StringConcat,
        _ => false,
    }
}

fn is_name(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_name(&alias.expr),
        Expr::Cast(cast) => is_name(&cast.expr),
        Expr::ScalarFunction(call) => gives_name(call.name()),
        _ => false,
    }
}

/// The type of two numbers, or moments, together.
fn widened(own: DataType, other: DataType) -> DataType {
    if own == other || is_text(&own) || is_text(&other) {
        return own;
    }
    let both = [own, other];
    match united(&both).or_else(|| type_union_resolution(&both)) {
        Some(together) => together,
        None => {
            let [own, _] = both;
            own
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion_common::Column;
    use datafusion_expr::{cast, lit};

    use super::*;

    fn apart_of_columns(values: &[Expr]) -> Option<(String, String)> {
        use DataType::{Boolean, Date32, Float64, Int32, Int64, Utf8, Utf8View};
        let columns = [
            ("i", Int32),
            ("l", Int64),
            ("f", Float64),
            ("s", Utf8View),
            // As columns of the catalog are, whose texts may be names.
            ("n", Utf8),
            ("d", Date32),
            ("b", Boolean),
        ];
        let fields = columns.map(|(name, ty)| arrow::datatypes::Field::new(name, ty, true));
        let schema = arrow::datatypes::Schema::new(fields.to_vec());
        apart(values, &DFSchema::try_from(schema).unwrap())
    }

    #[test]
    fn texts_and_numbers_have_no_type_together() {
        let column = |name: &str| Expr::Column(Column::from_name(name));
        let text = || cast(lit("x"), DataType::Utf8View);
        for (values, wanted) in [
            (
                vec![column("f"), column("s")],
                Some(("double precision", "text")),
            ),
            (vec![column("s"), column("i")], Some(("text", "integer"))),
            (
                vec![column("i"), column("l"), lit("1"), column("s")],
                Some(("bigint", "text")),
            ),
            (vec![column("i"), text()], Some(("integer", "text"))),
            (vec![column("d"), column("s")], Some(("date", "text"))),
            (vec![column("b"), column("i")], Some(("boolean", "integer"))),
            (vec![column("f"), lit("1"), column("i")], None),
            (vec![column("i"), column("n")], None),
            (vec![column("s"), lit("1"), column("n")], None),
            (vec![lit("1"), lit("x")], None),
            (
                vec![lit(datafusion_common::ScalarValue::Null), column("s")],
                None,
            ),
        ] {
            let found = apart_of_columns(&values);
            let wanted = wanted.map(|(left, right): (&str, &str)| (left.into(), right.into()));
            assert_eq!(found, wanted, "{values:?}");
        }
    }
}
