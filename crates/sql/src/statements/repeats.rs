//! Running what a session ran before: a query [word for word](crate::statements::recent), or one of the same
//! [shape](crate::statements::shapes).

use std::sync::Arc;
use std::time::Instant;

use sqlparser::ast::Statement as Sql;
use syntax::key_query::KeyQuery;
use syntax::parse::{Statement, parse};
use syntax::shapes::Shape;

use crate::error::Result;
use crate::run::generic_plans::{Constants, GenericRun};
use crate::run::options::PlanUse;
use crate::run::query::Asked;
use crate::run::stream::AnswerStream;
use crate::statements::locking::is_locking;
use crate::statements::recent::Again;
use crate::statements::session::{Session, TransactionStatus};
use crate::statements::shapes::{Known, PlannedShape};

impl Session {
    /// Runs a query that ran before, by the plan that was kept of it if that still holds.
    pub(super) async fn stream_again(
        &self,
        Again { query, depth, kept }: Again,
        started: Instant,
    ) -> Result<AnswerStream> {
        if let Some(asked) = KeyQuery::of_sql(&query)
            && let Some(answer) = self.looked_up(&asked, &[], started).await?
        {
            return Ok(self.finished(answer));
        }
        let asked = Asked::Written(query, Some(kept));
        let mut answer = self
            .stream_query(asked, self.room(depth, false), started)
            .await?;
        answer.verb = "SELECT";
        Ok(answer)
    }

    /// Runs a query by the plan of its shape; none if it is to be planned as it is.
    pub(super) async fn stream_shape(
        &self,
        text: &str,
        started: Instant,
    ) -> Result<Option<AnswerStream>> {
        if self.instance().plan_use == PlanUse::Once {
            return Ok(None);
        }
        let Some(shape) = Shape::of_text(text) else {
            return Ok(None);
        };
        let version = self.instance().store.snapshot().version();
        let planned = match self.shapes().runs(&shape, version) {
            Known::Nothing => return Ok(None),
            Known::Planned(planned) => planned,
            Known::Due => match self.planned_shape(text, &shape).await {
                Some(planned) => {
                    self.shapes().keep(&shape, &planned);
                    planned
                }
                None => return Ok(None),
            },
        };
        let values: Vec<Option<&str>> = shape.values.iter().map(|own| Some(own.as_str())).collect();
        let Some(run) = planned.statement.by_generic_plan(&values) else {
            return Ok(None);
        };
        let constants = Constants {
            text: text.to_owned(),
            key: planned.key,
        };
        let depth = self.room_of(&run.readied);
        let run = GenericRun {
            constants: Some(constants),
            ..run
        };
        let asked = Asked::Prepared(Box::new(run));
        let mut answer = self.stream_query(asked, depth, started).await?;
        answer.verb = "SELECT";
        Ok(Some(answer))
    }

    /// A shape as a statement with parameters, if it is one for which that changes nothing. It is looked at outside of transactions
    /// alone, which an error would end.
    async fn planned_shape(&self, text: &str, shape: &Shape) -> Option<PlannedShape> {
        if self.transaction() != TransactionStatus::Idle {
            return None;
        }
        let parsed = parse(text).ok()?;
        let [parsed] = &parsed[..] else { return None };
        match &parsed.statement {
            Statement::Sql(sql) if matches!(**sql, Sql::Query(_)) && !is_locking(sql) => {}
            _ => return None,
        }
        let statement = self.prepare(&shape.text, &shape.declared).await.ok()??;
        if !statement.is_query || statement.parameters.len() != shape.values.len() {
            return None;
        }
        let described = self.described_before();
        let key = described.key(&shape.text, &shape.declared)?;
        statement.generic.want();
        Some(PlannedShape {
            statement: Arc::new(statement),
            key: Arc::new(key),
        })
    }
}
