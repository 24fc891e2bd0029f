//! `from t tablesample bernoulli (10)`: rows of `t` that a random number chooses.

use std::ops::ControlFlow;

use functions::lists::names::SHARE;
use messages::{Error, Result};
use sqlparser::ast::{
    Expr, ObjectNamePart, SetExpr, TableAlias, TableFactor, TableSample, TableSampleKind,
    TableSampleMethod, TableSampleModifier, VisitorMut, visit_expressions,
};

use crate::call::call;
use crate::constant::Constant;
use crate::flow::flow;
use crate::returning::plain_query;

/// Puts a table of which a part is taken into a query of its own.
pub(super) struct Samples;

impl VisitorMut for Samples {
    type Break = Box<Error>;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Box<Error>> {
        flow(sampled(factor))
    }
}

fn sampled(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table {
        name,
        alias,
        sample: sample @ Some(_),
        args: None,
        ..
    } = factor
    else {
        return Ok(());
    };
    let Some(TableSampleKind::BeforeTableAlias(own) | TableSampleKind::AfterTableAlias(own)) =
        &*sample
    else {
        return Ok(());
    };
    let Some(share) = share(own)? else {
        return Ok(());
    };
    let called = name.0.last().and_then(ObjectNamePart::as_ident).cloned();
    let alias = match (alias.take(), called) {
        (Some(alias), _) => alias,
        (None, Some(name)) => TableAlias {
            explicit: true,
            name,
            columns: vec![],
            at: None,
        },
        (None, None) => return Ok(()),
    };
    *sample = None;
    // All rows and none are told without a random number.
    let condition = match share {
        Share::Number(all) if all >= 1.0 => "true".to_string(),
        Share::Number(none) if none <= 0.0 => "false".to_string(),
        Share::Number(share) => format!("random() < {share:.17}"),
        Share::Computed(_) => "random() < 1".to_string(),
    };
    let mut query = plain_query(&format!("select * from t where {condition}"))?;
    if let Share::Computed(percentage) = share
        && let SetExpr::Select(select) = query.body.as_mut()
        && let Some(Expr::BinaryOp { right, .. }) = &mut select.selection
    {
        **right = call(SHARE, vec![*percentage]);
    }
    let inner = std::mem::replace(
        factor,
        TableFactor::Derived {
            lateral: false,
            subquery: plain_query("select 1")?,
            alias: Some(alias),
            sample: None,
        },
    );
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(from) = select.from.first_mut()
    {
        from.relation = inner;
    }
    if let TableFactor::Derived { subquery, .. } = factor {
        *subquery = query;
    }
    Ok(())
}

/// Which part of the rows is wanted.
enum Share {
    /// From 0 to 1.
    Number(f64),
    /// A percentage, which depends on no row.
    Computed(Box<Expr>),
}

/// Which part of the rows is wanted; none for samples of other databases.
fn share(sample: &TableSample) -> Result<Option<Share>> {
    let TableSample {
        modifier: TableSampleModifier::TableSample,
        name: Some(TableSampleMethod::Bernoulli | TableSampleMethod::System),
        quantity: Some(quantity),
        seed,
        bucket: None,
        offset: None,
    } = sample
    else {
        return Ok(None);
    };
    if !quantity.parenthesized || quantity.unit.is_some() {
        return Ok(None);
    }
    if seed.is_some() {
        return Err(Error::unsupported(
            "`repeatable` is not supported in `tablesample`: leave it out, or keep the sample in a table",
        ));
    }
    let number = match &quantity.value {
        Expr::UnaryOp { .. } | Expr::Value(_) | Expr::Nested(_) | Expr::Cast { .. } => {
            match Constant::of(&quantity.value) {
                Some(Constant::Null) => {
                    return Err(Error::coded(
                        "2202H",
                        "TABLESAMPLE parameter cannot be null",
                    ));
                }
                _ => quantity.value.to_string().parse::<f64>().ok(),
            }
        }
        _ => None,
    };
    let Some(percentage) = number else {
        if visit_expressions(&quantity.value, named).is_break() {
            return Err(Error::unsupported(
                "`tablesample` takes a percentage that is made of constants",
            ));
        }
        return Ok(Some(Share::Computed(Box::new(quantity.value.clone()))));
    };
    if !(0.0..=100.0).contains(&percentage) {
        return Err(Error::coded(
            "2202H",
            "sample percentage must be between 0 and 100",
        ));
    }
    Ok(Some(Share::Number(percentage / 100.0)))
}

/// Whether an expression depends on more than constants.
fn named(expr: &Expr) -> ControlFlow<()> {
    match expr {
        Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Nested(_)
        | Expr::Cast { .. }
        | Expr::UnaryOp { .. }
        | Expr::BinaryOp { .. } => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    }
}
