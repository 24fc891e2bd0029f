//! Tables that a `from` names with their schemas: `t.*` stands for the columns of `s.t`, and `t.a` is none of two tables
//! `t` of several schemas.

use std::ops::ControlFlow;

use messages::Error;
use sqlparser::ast::{
    Expr, ObjectName, ObjectNamePart, Select, SelectItem, SelectItemQualifiedWildcardKind,
    TableFactor, TableWithJoins, Visitor, VisitorMut,
};

use crate::names::column_name;
use crate::walk::Walk;

/// Writes `t.*` as the planner finds it.
///
/// # Errors
/// If `t` may be one of several tables.
pub(super) struct Qualified;

/// A table of a `from`: what its columns may be called by, and its whole name if that has a schema.
struct Named {
    base: String,
    whole: Option<ObjectName>,
}

impl VisitorMut for Qualified {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        let mut all = Vec::new();
        select.from.iter().for_each(|from| tables(from, &mut all));
        if all.iter().all(|table| table.whole.is_none()) {
            return ControlFlow::Continue(());
        }
        let count = |name: &str| all.iter().filter(|table| table.base == name).count();
        let mut twice = all.iter().map(|table| table.base.as_str());
        if twice.any(|name| count(name) > 1) {
            let names = all.iter().map(|table| table.base.clone());
            let mut several = Several(names.filter(|name| count(name) > 1).collect());
            select.walk(&mut several)?;
        }
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) = item
            {
                whole(name, &all)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Gives the name before `.*` the schema of its table.
fn whole(name: &mut ObjectName, all: &[Named]) -> ControlFlow<Box<Error>> {
    let [part] = &name.0[..] else {
        return ControlFlow::Continue(());
    };
    let own = part.as_ident().map(column_name);
    let mut tables = all.iter().filter(|table| Some(&table.base) == own.as_ref());
    match (tables.next(), tables.next()) {
        (Some(Named { base, .. }), Some(_)) => ControlFlow::Break(Box::new(ambiguous(base))),
        (
            Some(Named {
                whole: Some(whole), ..
            }),
            None,
        ) => {
            *name = whole.clone();
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Continue(()),
    }
}

fn ambiguous(name: &str) -> Error {
    Error::coded("42702", format!("table reference \"{name}\" is ambiguous"))
}

/// The tables of a `from`.
fn tables(from: &TableWithJoins, all: &mut Vec<Named>) {
    let joined = from.joins.iter().map(|join| &join.relation);
    for factor in std::iter::once(&from.relation).chain(joined) {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => tables(table_with_joins, all),
            TableFactor::Table {
                name,
                alias: None,
                args: None,
                ..
            } => {
                let base = name.0.last().and_then(ObjectNamePart::as_ident);
                all.extend(base.map(|base| Named {
                    base: column_name(base),
                    whole: (name.0.len() > 1).then(|| name.clone()),
                }));
            }
            TableFactor::Table {
                alias: Some(alias), ..
            }
            | TableFactor::Derived {
                alias: Some(alias), ..
            } => all.push(Named {
                base: column_name(&alias.name),
                whole: None,
            }),
            _ => {}
        }
    }
}

/// Finds columns before which stands a name that several tables have.
struct Several(Vec<String>);

impl Visitor for Several {
    type Break = Box<Error>;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<Error>> {
        match expr {
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [table, _] if self.0.contains(&column_name(table)) => {
                    ControlFlow::Break(Box::new(ambiguous(&column_name(table))))
                }
                _ => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        }
    }
}
