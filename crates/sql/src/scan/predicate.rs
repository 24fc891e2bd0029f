//! From predicates over batches to the filters of a table's scan.
//!
//! A conjunction is split into its parts. Comparisons of an integer column with constants become ranges, which a scan
//! tests in the stored width. A test of a single string column is marked as depending on its labels only. Other filters
//! keep at most the ranges that they imply.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt16Array,
};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column as NamedColumn, ScalarValue};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{Expr, Operator};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, Literal, NotExpr,
};
use datafusion_physical_expr::utils::{collect_columns, split_conjunction};
use table::{Filter, Form, LabelHits, Test, enum_type, is_enum};

use crate::scan::like::{TextMatcher, of_emptiness};
use crate::scan::numbers::whole;
use crate::scan::ranges::{Ranges, complement, intersect, union};
use crate::scan::wide;

/// Filters with more ranges than this are tested on values instead.
const MOST_RANGES: usize = 16;

/// `filter` with its columns named without their table.
///
/// # Errors
/// Only if DataFusion cannot rewrite the expression.
pub(crate) fn unqualified(filter: &Expr) -> Result<Expr> {
    let plain = filter.clone().transform(|e| {
        Ok(match e {
            Expr::Column(c) => Transformed::yes(Expr::Column(NamedColumn::new_unqualified(c.name))),
            other => Transformed::no(other),
        })
    })?;
    Ok(plain.data)
}

/// The filters whose conjunction is `predicate`, cheapest first. Columns of `predicate` are positions in `schema`, the
/// table's; so are those of the filters.
///
/// # Errors
/// Only if DataFusion cannot rewrite the expression.
pub(crate) fn compile(
    predicate: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
) -> Result<Vec<Filter>> {
    let mut exact: BTreeMap<usize, (Ranges, Arc<dyn PhysicalExpr>)> = BTreeMap::new();
    let mut others = Vec::new();
    for part in split_conjunction(predicate) {
        if is_true(part) {
            continue;
        }
        let found = match ranges(part, schema) {
            Some(found) => Some(found),
            None => of_labels(part, schema)?,
        };
        let Some((column, ranges)) = found else {
            others.push(filter(part, schema)?);
            continue;
        };
        let (ranges, test) = match exact.remove(&column) {
            None => (ranges, part.clone()),
            Some((before, test)) => (intersect(&before, &ranges), and(test, part.clone())),
        };
        exact.insert(column, (ranges, test));
    }
    let mut filters = Vec::with_capacity(exact.len() + others.len());
    for (column, (ranges, test)) in exact {
        let mut made = filter(&test, schema)?;
        debug_assert_eq!(made.columns, [column]);
        if ranges.len() <= MOST_RANGES {
            made.form = Form::Ranges(ranges.into());
        }
        filters.push(made);
    }
    filters.extend(others);
    filters.sort_by_key(cost);
    Ok(filters)
}

fn cost(filter: &Filter) -> usize {
    match filter.form {
        Form::Ranges(_) => 0,
        Form::Labels(_) | Form::Keys(_) => 1,
        Form::Within { .. } | Form::Any => 1 + filter.columns.len(),
    }
}

fn is_true(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let literal = expr.downcast_ref::<Literal>().map(Literal::value);
    matches!(literal, Some(ScalarValue::Boolean(Some(true))))
}

fn and(a: Arc<dyn PhysicalExpr>, b: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(a, Operator::And, b))
}

/// A filter that tests `expr`, with what is known of it other than ranges that are equivalent to it.
fn filter(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Filter> {
    let mut columns: Vec<usize> = collect_columns(expr).iter().map(Column::index).collect();
    columns.sort_unstable();
    columns.dedup();
    let own = expr.clone().transform(|node| {
        let Some(column) = node.downcast_ref::<Column>() else {
            return Ok(Transformed::no(node));
        };
        let position = columns.binary_search(&column.index()).unwrap_or_default();
        let moved: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), position));
        Ok(Transformed::yes(moved))
    })?;
    let schema_of_test = Arc::new(schema.project(&columns)?);
    let text = matches!(&columns[..], [c] if is_text(schema.field(*c).data_type()));
    let form = if text {
        Form::Labels(Arc::new(LabelHits::default()))
    } else {
        let mut bounds = bounds(expr, schema);
        bounds.retain(|_, ranges| ranges.len() <= MOST_RANGES);
        match bounds.pop_first() {
            Some((column, ranges)) => Form::Within {
                column,
                ranges: ranges.into(),
            },
            None => Form::Any,
        }
    };
    let test = Arc::new(Expression {
        texts: TextMatcher::of(own.data.as_ref()),
        of_emptiness: of_emptiness(own.data.as_ref()),
        expr: own.data,
        schema: schema_of_test,
    });
    Ok(Filter {
        columns,
        test,
        form,
        gauge: None,
    })
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}

/// Evaluates an expression over the columns of a filter.
#[derive(Debug)]
struct Expression {
    expr: Arc<dyn PhysicalExpr>,
    /// A faster way to the same answers, for some conditions on texts.
    texts: Option<TextMatcher>,
    /// Its answers, if they depend on nothing but whether a text is empty.
    of_emptiness: Option<[bool; 2]>,
    schema: Arc<Schema>,
}

impl Test for Expression {
    fn evaluate(
        &self,
        columns: &[ArrayRef],
        rows: usize,
    ) -> std::result::Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>> {
        if let (Some(own), [texts]) = (&self.texts, columns)
            && let Some(answers) = own.test(texts)
        {
            return Ok(answers);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = nullable(&self.schema, columns);
        let batch = RecordBatch::try_new_with_options(schema, columns.to_vec(), &options)?;
        let answers = self.expr.evaluate(&batch)?.into_array(rows)?;
        match answers.as_boolean_opt() {
            Some(answers) => Ok(answers.clone()),
            None => {
                let what = format!(
                    "a filter returns {} instead of boolean",
                    answers.data_type()
                );
                Err(Box::new(DataFusionError::Plan(what)))
            }
        }
    }

    fn of_emptiness(&self) -> Option<[bool; 2]> {
        self.of_emptiness
    }
}

/// `schema` with nullable columns where `columns` have NULLs: the labels of a NOT NULL column are tested with a NULL at
/// their end.
fn nullable(schema: &SchemaRef, columns: &[ArrayRef]) -> SchemaRef {
    let fits = schema
        .fields()
        .iter()
        .zip(columns)
        .all(|(f, c)| f.is_nullable() || c.null_count() == 0);
    if fits {
        return schema.clone();
    }
    let fields = schema
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The column and ranges to which `expr` is equivalent, if it is a condition on one column of integers.
fn ranges(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<(usize, Ranges)> {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return match binary.op() {
            Operator::And | Operator::Or => {
                let (a, left) = ranges(binary.left(), schema)?;
                let (b, right) = ranges(binary.right(), schema)?;
                let both = match binary.op() {
                    Operator::And => intersect(&left, &right),
                    _ => union(&left, &right),
                };
                (a == b).then_some((a, both))
            }
            op => comparison(binary, *op, schema),
        };
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        return in_list(list, schema);
    }
    if let Some(test) = expr.downcast_ref::<IsNotNullExpr>() {
        let column = whole_column(test.arg(), schema)?;
        return Some((column, vec![(i128::MIN, i128::MAX)]));
    }
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        let column = whole_column(not.arg(), schema)?;
        let flag = *schema.field(column).data_type() == DataType::Boolean;
        return flag.then(|| (column, vec![(0, 0)]));
    }
    let column = whole_column(expr, schema)?;
    let flag = *schema.field(column).data_type() == DataType::Boolean;
    flag.then(|| (column, vec![(1, 1)]))
}

/// The position of a column that is stored as integers, if `expr` is one.
fn whole_column(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<usize> {
    let column = expr.downcast_ref::<Column>()?;
    let data_type = schema.field(column.index()).data_type();
    let whole = data_type.is_integer()
        || is_enum(data_type)
        || matches!(
            data_type,
            DataType::Boolean
                | DataType::Date32
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(..)
                | DataType::Decimal128(..)
        );
    whole.then(|| column.index())
}

/// The column and ranges of stored numbers to which `expr` is equivalent, if it reads nothing but a column of an enum: it
/// is tested for each label.
fn of_labels(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Option<(usize, Ranges)>> {
    let columns = collect_columns(expr);
    let mut columns = columns.iter().map(Column::index);
    let (Some(column), None) = (columns.next(), columns.next()) else {
        return Ok(None);
    };
    let Some(own) = enum_type(schema.field(column).data_type()) else {
        return Ok(None);
    };
    let Ok(count) = u16::try_from(own.labels.len()) else {
        return Ok(None);
    };
    // The last is NULL, for which there is no range.
    let places: UInt16Array = (0..count).map(Some).chain([None]).collect();
    let rows = places.len();
    let test = filter(expr, schema)?.test;
    let Ok(answers) = test.evaluate(&[own.values(places)], rows) else {
        return Ok(None);
    };
    let hit = |row: usize| answers.is_valid(row) && answers.value(row);
    if hit(rows - 1) {
        return Ok(None);
    }
    let labels = own.labels.iter().enumerate();
    let mut hits: Ranges = labels
        .filter(|(row, _)| hit(*row))
        .map(|(_, label)| (label.number.into(), label.number.into()))
        .collect();
    hits.sort_unstable();
    Ok(Some((column, union(&hits, &[]))))
}

fn comparison(binary: &BinaryExpr, op: Operator, schema: &SchemaRef) -> Option<(usize, Ranges)> {
    let (column, literal, op) = match whole_column(binary.left(), schema) {
        Some(column) => (column, binary.right(), op),
        None => (
            whole_column(binary.right(), schema)?,
            binary.left(),
            op.swap()?,
        ),
    };
    let literal = literal.downcast_ref::<Literal>()?.value();
    if literal.is_null() {
        return None;
    }
    let value = whole(literal, schema.field(column).data_type())?;
    let (below, above) = (value.checked_sub(1), value.checked_add(1));
    let ranges = match op {
        Operator::Eq => vec![(value, value)],
        Operator::NotEq => vec![(i128::MIN, below?), (above?, i128::MAX)],
        Operator::Lt => vec![(i128::MIN, below?)],
        Operator::LtEq => vec![(i128::MIN, value)],
        Operator::Gt => vec![(above?, i128::MAX)],
        Operator::GtEq => vec![(value, i128::MAX)],
        _ => return None,
    };
    Some((column, ranges))
}

fn in_list(list: &InListExpr, schema: &SchemaRef) -> Option<(usize, Ranges)> {
    let column = whole_column(list.expr(), schema)?;
    let data_type = schema.field(column).data_type();
    let mut values = Vec::with_capacity(list.list().len());
    for item in list.list() {
        let literal = item.downcast_ref::<Literal>()?.value();
        // A NULL in the list never matches; with NOT it makes every answer NULL.
        if !literal.is_null() {
            values.push(whole(literal, data_type)?);
        } else if list.negated() {
            return None;
        }
    }
    values.sort_unstable();
    let points = union(&values.iter().map(|v| (*v, *v)).collect::<Ranges>(), &[]);
    if list.negated() {
        Some((column, complement(&points)?))
    } else {
        Some((column, points))
    }
}

/// The ranges of integer columns that `expr` implies: rows outside them do not pass.
fn bounds(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> BTreeMap<usize, Ranges> {
    if let Some((column, ranges)) = ranges(expr, schema).or_else(|| wide::ranges(expr, schema)) {
        return BTreeMap::from([(column, ranges)]);
    }
    let Some(binary) = expr.downcast_ref::<BinaryExpr>() else {
        return BTreeMap::new();
    };
    let sides = || {
        (
            bounds(binary.left(), schema),
            bounds(binary.right(), schema),
        )
    };
    match binary.op() {
        Operator::And => {
            let (mut left, right) = sides();
            for (column, ranges) in right {
                let both = match left.get(&column) {
                    Some(before) => intersect(before, &ranges),
                    None => ranges,
                };
                left.insert(column, both);
            }
            left
        }
        Operator::Or => {
            let (left, right) = sides();
            let both = |(column, ranges): (usize, Ranges)| {
                Some((column, union(&ranges, right.get(&column)?)))
            };
            left.into_iter().filter_map(both).collect()
        }
        _ => BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int32Array;
    use datafusion_expr::{col, in_list, lit};

    use super::*;
    use crate::planner::Planner;

    const VALUES: [Option<i32>; 9] = [
        None,
        Some(i32::MIN),
        Some(-3),
        Some(0),
        Some(1),
        Some(2),
        Some(5),
        Some(7),
        Some(i32::MAX),
    ];

    fn batch() -> RecordBatch {
        let array: ArrayRef = Arc::new(Int32Array::from(VALUES.to_vec()));
        let text: ArrayRef = Arc::new(arrow::array::StringViewArray::from(vec!["a"; VALUES.len()]));
        RecordBatch::try_from_iter_with_nullable([("n", array, true), ("t", text, true)]).unwrap()
    }

    fn physical(expr: &Expr) -> Arc<dyn PhysicalExpr> {
        let schema =
            datafusion_common::DFSchema::try_from(batch().schema().as_ref().clone()).unwrap();
        Planner::plain()
            .create_physical_expr(expr.clone(), &schema)
            .unwrap()
    }

    /// What DataFusion says of each value.
    fn hits(expr: &Arc<dyn PhysicalExpr>) -> Vec<bool> {
        let answers = expr
            .evaluate(&batch())
            .unwrap()
            .into_array(VALUES.len())
            .unwrap();
        answers
            .as_boolean()
            .iter()
            .map(|hit| hit == Some(true))
            .collect()
    }

    /// What the ranges of the compiled filters say.
    fn by_ranges(filters: &[Filter]) -> Vec<bool> {
        let inside = |value: &Option<i32>| {
            filters.iter().all(|filter| match &filter.form {
                Form::Ranges(ranges) => value.is_some_and(|v| {
                    ranges
                        .iter()
                        .any(|(low, high)| (*low..=*high).contains(&i128::from(v)))
                }),
                other => panic!("not ranges: {other:?}"),
            })
        };
        VALUES.iter().map(inside).collect()
    }

    #[test]
    fn conditions_on_numbers_become_ranges_that_mean_the_same() {
        let n = || col("n");
        let list = |negated| in_list(n(), vec![lit(1), lit(7), lit(2)], negated);
        let cases = [
            n().eq(lit(1)),
            n().not_eq(lit(1)),
            n().lt(lit(1)),
            n().lt_eq(lit(i32::MIN)),
            n().gt(lit(i32::MAX)),
            lit(2).gt(n()),
            n().between(lit(0), lit(5)),
            n().lt(lit(0)).or(n().gt(lit(2))),
            n().gt(lit(0)).and(n().not_eq(lit(2))).and(n().lt(lit(7))),
            list(false),
            list(true),
            n().is_not_null(),
            n().eq(lit(3)).and(n().eq(lit(4))),
        ];
        for case in cases {
            let expr = physical(&case);
            let filters = compile(&expr, &batch().schema()).unwrap();
            assert_eq!(by_ranges(&filters), hits(&expr), "{case}");
        }
    }

    #[test]
    fn bounds_never_exclude_a_hit() {
        let (n, t) = (|| col("n"), || col("t"));
        let cases = [
            n().gt(lit(1))
                .and(t().eq(lit("a")))
                .or(n().eq(lit(-3)).and(t().eq(lit("a")))),
            n().gt(lit(1)).or(t().eq(lit("b"))),
            (n() % lit(2)).eq(lit(0)).and(n().lt(lit(4))),
        ];
        for case in cases {
            let expr = physical(&case);
            let bounds = bounds(&expr, &batch().schema());
            for (hit, value) in hits(&expr).into_iter().zip(VALUES) {
                for ranges in bounds.values().filter(|_| hit) {
                    let value = i128::from(value.unwrap());
                    let kept = ranges.iter().any(|(a, b)| (*a..=*b).contains(&value));
                    assert!(kept, "{case} excludes {value}");
                }
            }
        }
    }

    #[test]
    fn a_test_of_one_text_column_depends_on_its_labels() {
        let expr = physical(&col("t").like(lit("a%")));
        let filters = compile(&expr, &batch().schema()).unwrap();
        assert!(
            matches!(
                &filters[..],
                [Filter {
                    form: Form::Labels(_),
                    ..
                }]
            ),
            "{filters:?}"
        );
        assert_eq!(filters[0].columns, [1]);
    }

    #[test]
    fn conditions_on_an_enum_become_ranges_of_stored_numbers() {
        let label = |number, text: &str| table::Label {
            number,
            text: text.into(),
        };
        let own = table::EnumType {
            name: "mood".into(),
            // The second label was made last.
            labels: vec![label(0, "sad"), label(2, "so so"), label(1, "happy")],
        };
        let field = arrow::datatypes::Field::new("m", own.data_type(), true);
        let schema: SchemaRef = Arc::new(Schema::new(vec![field]));
        let named = datafusion_common::DFSchema::try_from(schema.as_ref().clone()).unwrap();
        let compiled = |expr: Expr| {
            let expr = Planner::plain().create_physical_expr(expr, &named);
            compile(&expr.unwrap(), &schema).unwrap().remove(0).form
        };
        let place = || crate::functions::enums::place(col("m"));
        let ranges = |expr: Expr| match compiled(expr) {
            Form::Ranges(ranges) => ranges.to_vec(),
            other => panic!("not ranges: {other:?}"),
        };
        assert_eq!(ranges(place().lt(lit(2u16))), [(0, 0), (2, 2)]);
        assert_eq!(ranges(place().gt_eq(lit(1u16))), [(1, 2)]);
        assert_eq!(ranges(place().eq(lit(9u16))), []);
        assert_eq!(ranges(col("m").is_not_null()), [(i128::MIN, i128::MAX)]);
        let null = compiled(col("m").is_null().or(place().eq(lit(1u16))));
        assert!(matches!(null, Form::Any), "{null:?}");
    }

    #[test]
    fn ranges_join_and_complement() {
        assert_eq!(
            union(&[(5, 6), (1, 2)], &[(3, 4), (9, 9)]),
            [(1, 6), (9, 9)]
        );
        assert_eq!(
            complement(&[(1, 6), (9, 9)]).unwrap(),
            [(i128::MIN, 0), (7, 8), (10, i128::MAX)]
        );
        assert_eq!(intersect(&[(1, 6), (9, 9)], &[(4, 9)]), [(4, 6), (9, 9)]);
    }
}
