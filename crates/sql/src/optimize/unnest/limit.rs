//! `limit` within a subquery: so many rows for each row of the domain, which a number in each group tells.

use datafusion_common::Column;
use datafusion_common::Result;
use datafusion_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion_expr::{
    Expr, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, SkipType, SortExpr, WindowFrame,
    WindowFunctionDefinition, lit,
};
use datafusion_functions_window::row_number::row_number_udwf;

use crate::error::Error;
use crate::optimize::correlated;
use crate::optimize::unnest::{Domain, Pushed};

impl Domain<'_> {
    pub(super) fn limit(&self, limit: &Limit) -> Result<Pushed> {
        if correlated::is_all(limit) {
            return self.push(&limit.input);
        }
        let (skip, fetch) = match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => (skip, fetch),
            _ => {
                return Err(Error::unsupported(
                    "not supported: a `limit` or `offset` that is no constant, in a subquery that names a column of the query around it",
                )
                .into());
            }
        };
        let columns = limit.input.schema().columns();
        let (Pushed { plan, values }, number) = self.numbered(&limit.input)?;
        let number = Expr::Column(number);
        let mut kept = number.clone().gt(lit(count(skip)));
        if let Some(fetch) = fetch {
            kept = kept.and(number.lt_eq(lit(count(skip.saturating_add(fetch)))));
        }
        let own = values.iter().cloned().chain(columns).map(Expr::Column);
        let plan = LogicalPlanBuilder::from(plan)
            .filter(kept)?
            .project(own)?
            .build()?;
        Ok(Pushed { plan, values })
    }

    /// `plan` with a column that numbers the rows for each row of the domain, from 1, in the order of its `order by`.
    fn numbered(&self, plan: &LogicalPlan) -> Result<(Pushed, Column)> {
        match plan {
            LogicalPlan::Projection(projection) => {
                let (input, number) = self.numbered(&projection.input)?;
                let mut carried = input.values.clone();
                carried.push(number.clone());
                let plan = self.projected(&projection.expr, input, &carried)?;
                Ok((plan, number))
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let (input, number) = self.numbered(&alias.input)?;
                let number = Column::new(Some(alias.alias.clone()), number.name);
                Ok((self.aliased(alias, input)?, number))
            }
            LogicalPlan::Sort(sort) => {
                let input = self.push(&sort.input)?;
                let mut keys = Vec::with_capacity(sort.expr.len());
                for key in &sort.expr {
                    let expr = self.bound(key.expr.clone(), &input.values)?;
                    keys.push(SortExpr::new(expr, key.asc, key.nulls_first));
                }
                self.number(input, keys)
            }
            other => self.number(self.push(other)?, Vec::new()),
        }
    }

    fn number(&self, input: Pushed, keys: Vec<SortExpr>) -> Result<(Pushed, Column)> {
        let Pushed { plan, values } = input;
        let number = WindowFunction {
            fun: WindowFunctionDefinition::WindowUDF(row_number_udwf()),
            params: WindowFunctionParams {
                args: Vec::new(),
                partition_by: values.iter().cloned().map(Expr::Column).collect(),
                window_frame: WindowFrame::new((!keys.is_empty()).then_some(false)),
                order_by: keys,
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        };
        let number = Expr::WindowFunction(Box::new(number));
        let made = Column::new_unqualified(number.schema_name().to_string());
        let name = self.names.next("__number");
        let own = plan.schema().columns().into_iter().map(Expr::Column);
        let own: Vec<Expr> = own
            .chain([Expr::Column(made).alias(name.as_str())])
            .collect();
        let plan = LogicalPlanBuilder::from(plan)
            .window([number])?
            .project(own)?
            .build()?;
        Ok((Pushed { plan, values }, Column::new_unqualified(name)))
    }
}

fn count(rows: usize) -> u64 {
    rows as u64
}
