//! `from t tablesample bernoulli (10)`: rows of `t` that a random number chooses.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectNamePart, SetExpr, TableAlias, TableFactor, TableSample, TableSampleKind,
    TableSampleMethod, TableSampleModifier, VisitorMut,
};

use crate::error::{Error, Result};
use crate::frontend::constant::Constant;
use crate::frontend::flow::flow;
use crate::frontend::returning::plain_query;

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
        all if all >= 1.0 => "true".to_string(),
        none if none <= 0.0 => "false".to_string(),
        share => format!("random() < {share:.17}"),
    };
    let mut query = plain_query(&format!("select * from t where {condition}"))?;
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

/// Which part of the rows is wanted, from 0 to 1; none for samples of other databases.
fn share(sample: &TableSample) -> Result<Option<f64>> {
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
        return Err(Error::unsupported(
            "`tablesample` takes a number, the percentage: an expression is not supported",
        ));
    };
    if !(0.0..=100.0).contains(&percentage) {
        return Err(Error::coded(
            "2202H",
            "sample percentage must be between 0 and 100",
        ));
    }
    Ok(Some(percentage / 100.0))
}
