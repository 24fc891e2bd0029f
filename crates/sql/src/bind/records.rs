//! `json_populate_record(null::t, j)` and its kind, whose values are of the type of their first argument: that type is written
//! there, as a cast, since the columns that they have in `from` follow from it.

use std::ops::ControlFlow;

use catalog::search_path::SearchPath;
use sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, Query, SelectItem, SetExpr, Statement as Sql,
    StructField, TableAlias, TableAliasColumnDef, TableFactor, Value, VisitorMut,
};
use syntax::call::call;
use syntax::flow::{flow, outcome};
use syntax::names::column_name;
use syntax::walk::WalkMut;
use table::Tables;

use crate::bind::composites;
use crate::error::{Error, Result};
use crate::functions::json::populate;
use crate::functions::lists::names::FIELDS;

/// Puts other functions in the places of these.
///
/// # Errors
/// For a first argument that does not say its type, and for calls in places where they cannot be.
pub(crate) fn take(statement: &mut Sql, tables: &Tables, path: &SearchPath) -> Result<()> {
    outcome(statement.walk_mut(&mut Records { tables, path }))
}

struct Records<'t> {
    tables: &'t Tables,
    path: &'t SearchPath,
}

impl VisitorMut for Records<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        flow(self.query(query))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Box<Error>> {
        flow(self.table(factor))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        flow(self.expr(expr))
    }
}

/// One of these functions.
struct Known {
    name: &'static str,
    /// The place of its kind of JSON among the names of functions of both.
    kind: usize,
    /// Whether it gives several rows.
    several: bool,
}

fn known(name: &ObjectName) -> Option<Known> {
    let [part] = &name.0[..] else {
        return None;
    };
    let name = part.as_ident().map(column_name)?;
    let (name, kind, several) = match name.as_str() {
        "json_populate_record" => ("json_populate_record", 0, false),
        "json_populate_recordset" => ("json_populate_recordset", 0, true),
        "jsonb_populate_record" => ("jsonb_populate_record", 1, false),
        "jsonb_populate_recordset" => ("jsonb_populate_recordset", 1, true),
        _ => return None,
    };
    Some(Known {
        name,
        kind,
        several,
    })
}

/// What such a call makes values of.
struct Record {
    own: Known,
    /// The first argument, and the type to which it is cast.
    base: Expr,
    data_type: DataType,
    json: Expr,
    fields: Vec<StructField>,
    /// Whether there is something to test of its values.
    is_tested: bool,
}

impl Record {
    /// The struct.
    fn value(&self) -> Expr {
        let value = call(
            populate::RECORD[self.own.kind],
            vec![self.base.clone(), self.json.clone()],
        );
        if self.is_tested {
            cast(value, self.data_type.clone())
        } else {
            value
        }
    }

    /// An array of the structs that are its rows.
    fn rows(&self) -> Expr {
        if !self.own.several {
            return call(populate::ONE, vec![self.value()]);
        }
        let rows = call(
            populate::RECORDS[self.own.kind],
            vec![self.base.clone(), self.json.clone()],
        );
        if !self.is_tested {
            return rows;
        }
        let item = Box::new(self.data_type.clone());
        cast(rows, DataType::Array(ArrayElemTypeDef::AngleBracket(item)))
    }
}

impl Records<'_> {
    /// Sets that are columns of a query: `unnest` of their rows. In an order they would be as others of the select list are,
    /// which are put in order when a statement is read.
    fn query(&self, query: &mut Query) -> Result<()> {
        if query.order_by.is_some() {
            return Ok(());
        }
        let SetExpr::Select(select) = query.body.as_mut() else {
            return Ok(());
        };
        for item in &mut select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item
            else {
                continue;
            };
            if let Some((own, args)) = called(expr)
                && own.several
            {
                let rows = self.record(own, args)?.rows();
                *expr = call("unnest", vec![rows]);
            }
        }
        Ok(())
    }

    fn expr(&self, expr: &mut Expr) -> Result<()> {
        let Some((own, args)) = called(expr) else {
            return Ok(());
        };
        if own.several {
            return Err(Error::unsupported(format!(
                "{} gives several rows: write it in `from`, or as a column of a query without an order",
                own.name
            )));
        }
        *expr = self.record(own, args)?.value();
        Ok(())
    }

    fn table(&self, factor: &mut TableFactor) -> Result<()> {
        let (own, args, alias, numbered) = match factor {
            TableFactor::Table {
                name,
                args: Some(args),
                alias,
                with_ordinality,
                ..
            } => (known(name), &args.args, alias, *with_ordinality),
            TableFactor::Function {
                name,
                args,
                alias,
                with_ordinality,
                ..
            } => (known(name), &*args, alias, *with_ordinality),
            _ => return Ok(()),
        };
        let Some(own) = own else {
            return Ok(());
        };
        if numbered {
            return Err(Error::unsupported(format!(
                "`{}(...) with ordinality` is not supported",
                own.name
            )));
        }
        let record = self.record(own, args)?;
        let rows = record.rows();
        let names: Vec<String> = record
            .fields
            .iter()
            .filter_map(|field| field.field_name.as_ref().map(column_name))
            .collect();
        let columns = names.iter().map(|name| {
            let name = Expr::value(Value::SingleQuotedString(name.clone()));
            call(FIELDS, vec![rows.clone(), name])
        });
        let array_exprs = columns.collect();
        let alias = with_columns(alias.take(), names, record.own.name)?;
        *factor = TableFactor::UNNEST {
            alias: Some(alias),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
        Ok(())
    }

    fn record(&self, own: Known, args: &[FunctionArg]) -> Result<Record> {
        let [
            FunctionArg::Unnamed(FunctionArgExpr::Expr(base)),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(json)),
        ] = args
        else {
            return Err(Error::coded(
                "42883",
                format!(
                    "function {} takes a value of a composite type, and JSON",
                    own.name
                ),
            ));
        };
        let untyped = || {
            Error::unsupported(format!(
                "{} of a first argument that is no cast is not supported: write its composite type, as in null::type",
                own.name
            ))
        };
        let data_type = type_of(base).ok_or_else(untyped)?;
        let (behind, is_tested) = match composites::named(data_type, self.tables, self.path) {
            Some((own, 0)) => (
                composites::behind(own, self.tables)?,
                composites::is_tested(own, self.tables)?,
            ),
            _ => (data_type.clone(), false),
        };
        let DataType::Struct(fields, _) = behind else {
            return Err(Error::coded(
                "42804",
                format!(
                    "first argument of {} must be a row type: {data_type} is no composite type that was created",
                    own.name
                ),
            ));
        };
        Ok(Record {
            base: base.clone(),
            data_type: data_type.clone(),
            json: json.clone(),
            fields,
            is_tested,
            own,
        })
    }
}

/// A call of one of these functions, and its arguments.
fn called(expr: &Expr) -> Option<(Known, &[FunctionArg])> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let own = known(&function.name).filter(|_| is_plain(function))?;
    match &function.args {
        FunctionArguments::List(list) => Some((own, list.args.as_slice())),
        _ => None,
    }
}

/// Whether a call has nothing but arguments.
fn is_plain(function: &Function) -> bool {
    function.over.is_none()
        && function.filter.is_none()
        && function.null_treatment.is_none()
        && function.within_group.is_empty()
        && matches!(&function.args, FunctionArguments::List(list) if list.clauses.is_empty() && list.duplicate_treatment.is_none())
}

/// The type to which an expression is cast.
fn type_of(expr: &Expr) -> Option<&DataType> {
    match expr {
        Expr::Nested(inner) => type_of(inner),
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            data_type,
            ..
        } => Some(data_type),
        Expr::TypedString(typed) => Some(&typed.data_type),
        _ => None,
    }
}

/// The alias with a name for each column: as it says, otherwise that of the field.
fn with_columns(alias: Option<TableAlias>, names: Vec<String>, called: &str) -> Result<TableAlias> {
    let mut alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', called),
        columns: vec![],
        at: None,
    });
    if alias.columns.len() > names.len() {
        return Err(Error::coded(
            "42P10",
            format!(
                "table \"{}\" has {} columns available but {} columns specified",
                alias.name.value,
                names.len(),
                alias.columns.len()
            ),
        ));
    }
    let given = alias.columns.len();
    let rest = names.into_iter().skip(given);
    alias.columns.extend(rest.map(|name| TableAliasColumnDef {
        name: Ident::with_quote('"', name),
        data_type: None,
    }));
    Ok(alias)
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}
