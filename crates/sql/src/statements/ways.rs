//! Parts of columns that an `insert` or an `update` assigns: `insert into t (a[1], c.f)`, `update t set a[1].f = 1`.
//!
//! A column gets its value with other parts in it: `"array assigned"(a, 1, 'i', 1)`, `cast(row(1, (c).g) as struct(...))`.
//! Several parts of one column are assigned one after the other. In a new row there was nothing before.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, Insert, ObjectName, SetExpr, Update, VisitorMut,
};
use syntax::expression::{around, expression};
use syntax::names::{base, column_name};
use syntax::walk::WalkMut;
use syntax::ways::{Step, WAY, steps};
use table::{Definition, json_kind};

use crate::error::{Error, Result};
use crate::functions::lists::names::{ASSIGN, ASSIGN_SLICE};
use crate::functions::lists::types::{fields, is_special, item};
use crate::messages::types::{exact_name, type_name};
use crate::statements::assigned::{called, counts, is_default};

/// The longest expression that is made of one column.
const LONGEST: usize = 1 << 16;

/// A column that is assigned, and the way into it; no steps for the whole.
struct Target {
    column: String,
    steps: Vec<Step>,
}

/// The columns that are assigned, in the order of their first parts, each with the places of its targets.
type Groups = Vec<(String, Vec<usize>)>;

/// Has an `insert` that names parts of columns name the columns, and bring values of them.
///
/// # Errors
/// If there is no such column or part; if a column is named twice.
pub(crate) fn of_insert(statement: &mut Insert, definition: &Definition) -> Result<()> {
    let table = base(&definition.name);
    let targets = statement.columns.iter();
    let targets: Vec<Target> = targets
        .map(|name| target(name, Some(table), definition))
        .collect::<Result<_>>()?;
    if targets.iter().all(|own| own.steps.is_empty()) {
        return Ok(());
    }
    counts(statement, targets.len(), true)?;
    let groups = grouped(&targets, |column| {
        Error::coded(
            "42701",
            format!("column \"{column}\" specified more than once"),
        )
    })?;
    let mut values = Vec::with_capacity(groups.len());
    for (column, places) in &groups {
        values.push(if targets[places[0]].steps.is_empty() {
            placeholder(places[0])
        } else {
            let ty = type_of_column(definition, column)?;
            let none = format!("cast(null as {})", exact_name(ty));
            put(none, ty, column, &chosen(&targets, places))?
        });
    }
    statement.columns = groups.iter().map(|(column, _)| name_of(column)).collect();
    let Some(source) = &mut statement.source else {
        return Ok(());
    };
    if let SetExpr::Values(rows) = source.body.as_mut() {
        let values: Vec<Expr> = values
            .iter()
            .map(|text| expression(text))
            .collect::<Result<_>>()?;
        for row in &mut rows.rows {
            no_defaults(&targets, &row.content)?;
            let given = std::mem::take(&mut row.content);
            let places = groups.iter().map(|(_, places)| places);
            let new = places.zip(&values).map(|(places, value)| {
                if targets[places[0]].steps.is_empty() {
                    given[places[0]].clone()
                } else {
                    filled(value.clone(), &given)
                }
            });
            row.content = new.collect();
        }
        return Ok(());
    }
    let all: Vec<String> = (0..targets.len()).map(placeholder).collect();
    around(source, &values, &all)
}

/// Has an `update` that assigns parts of columns assign the columns.
///
/// # Errors
/// As [`of_insert`].
pub(crate) fn of_update(statement: &mut Update, definition: &Definition) -> Result<()> {
    let own = called(&statement.table);
    let mut targets = Vec::with_capacity(statement.assignments.len());
    for assignment in &statement.assignments {
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            // It is refused.
            return Ok(());
        };
        targets.push(target(name, own.as_deref(), definition)?);
    }
    if targets.iter().all(|own| own.steps.is_empty()) {
        return Ok(());
    }
    let groups = grouped(&targets, |column| {
        Error::coded(
            "42601",
            format!("multiple assignments to same column \"{column}\""),
        )
    })?;
    let given = std::mem::take(&mut statement.assignments).into_iter();
    let given: Vec<Expr> = given.map(|assignment| assignment.value).collect();
    no_defaults(&targets, &given)?;
    for (column, places) in &groups {
        let value = if targets[places[0]].steps.is_empty() {
            given[places[0]].clone()
        } else {
            let ty = type_of_column(definition, column)?;
            let text = put(quoted(column), ty, column, &chosen(&targets, places))?;
            filled(expression(&text)?, &given)
        };
        statement.assignments.push(Assignment {
            target: AssignmentTarget::ColumnName(name_of(column)),
            value,
        });
    }
    Ok(())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn name_of(column: &str) -> ObjectName {
    ObjectName::from(vec![Ident::with_quote('"', column)])
}

/// What stands in the place of a value that is given.
fn placeholder(at: usize) -> String {
    format!("\"value {at}\"")
}

/// What a name means in a table that the statement calls `own`.
fn target(name: &ObjectName, own: Option<&str>, definition: &Definition) -> Result<Target> {
    let mut parts: Vec<String> = Vec::with_capacity(name.0.len());
    let mut way = Vec::new();
    for part in &name.0 {
        let Some(ident) = part.as_ident() else {
            return Err(Error::unsupported(format!(
                "`{part}` is no name of a column"
            )));
        };
        let part = column_name(ident);
        match part.split_once(WAY) {
            Some((column, behind)) => {
                parts.push(column.to_owned());
                way = steps(behind)?;
            }
            None => parts.push(part),
        }
    }
    let mut all: Vec<Step> = parts.into_iter().map(Step::Field).collect();
    all.extend(way);
    let field = |at: usize| match all.get(at) {
        Some(Step::Field(name)) => Some(name.as_str()),
        _ => None,
    };
    let mut columns = definition.columns.iter();
    let found = columns.find(|column| Some(column.name.as_str()) == field(0));
    let holds = found.is_some_and(|column| {
        matches!(all.get(1), None | Some(Step::Items { .. })) || fields(&column.data_type).is_some()
    });
    // A column may have the name of its table before it, and that its schema.
    let named = |at: usize| !holds && field(at) == own && field(at + 1).is_some();
    let before = match (named(0), named(1)) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => 0,
    };
    let mut all = all.split_off(before).into_iter();
    match all.next() {
        Some(Step::Field(column)) => Ok(Target {
            column,
            steps: all.collect(),
        }),
        _ => Err(Error::Defect {
            message: "a column that is assigned has no name".into(),
        }),
    }
}

fn grouped(targets: &[Target], twice: impl Fn(&str) -> Error) -> Result<Groups> {
    let mut groups: Groups = Vec::new();
    for (at, own) in targets.iter().enumerate() {
        match groups.iter_mut().find(|(column, _)| *column == own.column) {
            None => groups.push((own.column.clone(), vec![at])),
            Some((column, places)) => {
                if own.steps.is_empty() || targets[places[0]].steps.is_empty() {
                    return Err(twice(column));
                }
                places.push(at);
            }
        }
    }
    Ok(groups)
}

fn chosen<'t>(targets: &'t [Target], places: &[usize]) -> Vec<(&'t [Step], usize)> {
    let places = places.iter();
    places.map(|&at| (&targets[at].steps[..], at)).collect()
}

fn type_of_column<'d>(definition: &'d Definition, column: &str) -> Result<&'d DataType> {
    let mut columns = definition.columns.iter();
    match columns.find(|own| own.name == column) {
        Some(own) => Ok(&own.data_type),
        None => Err(Error::coded(
            "42703",
            format!(
                "column \"{column}\" of relation \"{}\" does not exist",
                base(&definition.name)
            ),
        )),
    }
}

/// That no part is given by `default`.
fn no_defaults(targets: &[Target], values: &[Expr]) -> Result<()> {
    for (own, value) in targets.iter().zip(values) {
        let what = match own.steps.last() {
            Some(Step::Field(_)) => "a subfield",
            Some(Step::Items { .. }) => "an array element",
            None => continue,
        };
        if is_default(value) {
            return Err(Error::coded(
                "0A000",
                format!("cannot set {what} to DEFAULT"),
            ));
        }
    }
    Ok(())
}

/// The value `own`, of a type, with what is given in its parts: an expression over placeholders. `column` is where it is.
fn put(own: String, ty: &DataType, column: &str, ways: &[(&[Step], usize)]) -> Result<String> {
    let mut own = own;
    let mut at = 0;
    while let Some((way, value)) = ways.get(at) {
        let Some((step, behind)) = way.split_first() else {
            return Err(Error::Defect {
                message: "a part of a column has no way".into(),
            });
        };
        let part = part_of(ty, step, column)?;
        let mut end = at + 1;
        let new = if behind.is_empty() {
            leaf(*value, step, part)
        } else {
            // What follows at the same place goes with it.
            let goes_on = |(way, _): &&(&[Step], usize)| way.len() > 1 && way[0] == *step;
            end += ways[end..].iter().take_while(goes_on).count();
            let inner = ways[at..end].iter().map(|(way, at)| (&way[1..], *at));
            let inner: Vec<(&[Step], usize)> = inner.collect();
            put(read(&own, step)?, part, column, &inner)?
        };
        own = with(&own, ty, step, &new)?;
        if own.len() > LONGEST {
            return Err(Error::unsupported(format!(
                "too many parts of column \"{column}\" are assigned at once: assign the whole"
            )));
        }
        at = end;
    }
    Ok(own)
}

/// The type of a part.
fn part_of<'t>(ty: &'t DataType, step: &Step, column: &str) -> Result<&'t DataType> {
    match step {
        Step::Field(name) => {
            let Some(all) = fields(ty) else {
                return Err(Error::coded(
                    "42804",
                    format!(
                        "cannot assign to field \"{name}\" of column \"{column}\" because its type {} is not a composite type",
                        type_name(ty)
                    ),
                ));
            };
            match all.iter().find(|field| field.name() == name) {
                Some(field) => Ok(field.data_type()),
                None => Err(Error::coded(
                    "42703",
                    format!(
                        "cannot assign to field \"{name}\" of column \"{column}\" because there is no such column in data type {}",
                        type_name(ty)
                    ),
                )),
            }
        }
        Step::Items { kinds, .. } => match item(ty) {
            _ if json_kind(ty).is_some() => Ok(ty),
            Some(item) if kinds == "i" => Ok(item),
            Some(_) if kinds.len() == 1 => Ok(ty),
            Some(_) => Err(Error::unsupported(
                "assignments to items of arrays with more than one dimension are not supported",
            )),
            None => Err(Error::coded(
                "42804",
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    type_name(ty)
                ),
            )),
        },
    }
}

/// A value that is given for a part of this type.
fn leaf(value: usize, step: &Step, ty: &DataType) -> String {
    let own = placeholder(value);
    let cast = match step {
        Step::Field(_) => true,
        Step::Items { .. } => is_special(ty) && json_kind(ty).is_none(),
    };
    if cast {
        format!("cast({own} as {})", exact_name(ty))
    } else {
        own
    }
}

/// A part of a value.
fn read(own: &str, step: &Step) -> Result<String> {
    match step {
        Step::Field(name) => Ok(format!("(({own}).{})", quoted(name))),
        Step::Items { kinds, subscripts } if kinds == "i" => {
            Ok(format!("(({own})[{}])", subscripts.join(", ")))
        }
        Step::Items { .. } => Err(Error::unsupported(
            "assignments to parts of slices are not supported",
        )),
    }
}

/// A value with another part.
fn with(own: &str, ty: &DataType, step: &Step, new: &str) -> Result<String> {
    match step {
        Step::Field(name) => {
            let all = fields(ty).into_iter().flatten();
            let items = all.map(|field| {
                if field.name() == name {
                    Ok(new.to_owned())
                } else {
                    read(own, &Step::Field(field.name().clone()))
                }
            });
            let items: Vec<String> = items.collect::<Result<_>>()?;
            Ok(format!(
                "cast(row({}) as {})",
                items.join(", "),
                exact_name(ty)
            ))
        }
        Step::Items { kinds, subscripts } => {
            let items = kinds.chars().all(|kind| kind == 'i');
            let function = if items { ASSIGN } else { ASSIGN_SLICE };
            let behind: String = subscripts.iter().map(|own| format!(", {own}")).collect();
            Ok(format!("\"{function}\"({own}, {new}, '{kinds}'{behind})"))
        }
    }
}

/// An expression with the values in the places that are kept for them.
fn filled(mut expr: Expr, values: &[Expr]) -> Expr {
    struct Fill<'v>(&'v [Expr]);

    impl VisitorMut for Fill<'_> {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Identifier(ident) = &*expr
                && ident.quote_style.is_some()
                && let Some(at) = ident.value.strip_prefix("value ")
                && let Ok(at) = at.parse::<usize>()
                && let Some(value) = self.0.get(at)
            {
                *expr = Expr::Nested(Box::new(value.clone()));
            }
            ControlFlow::Continue(())
        }
    }

    let _ = expr.walk_mut(&mut Fill(values));
    expr
}
