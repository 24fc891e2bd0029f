//! Queries of a session that differ in constants alone: they are run by the [plan of their shape](crate::run::generic_plans).
//!
//! Texts that a session runs again word for word have [plans of their own](crate::statements::recent). A shape is planned for any
//! constants when a third text has it, and anew after the store has changed and some more had it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::Statement as Sql;
use parking_lot::Mutex;

use crate::error::Result;
use crate::frontend::parse::{Statement, parse};
use crate::frontend::shapes::Shape;
use crate::run::generic_plans::{Constants, GenericRun};
use crate::run::kept_plans::PlanKey;
use crate::run::options::PlanUse;
use crate::run::query::Asked;
use crate::run::stream::AnswerStream;
use crate::statements::described::PreparedStatement;
use crate::statements::locking::is_locking;
use crate::statements::session::{Session, TransactionStatus};

/// Most shapes that a session keeps.
const SHAPES: usize = 64;
/// The text of a shape for which it is planned first, and at most so many texts are waited for later.
const FIRST_DUE: usize = 3;
const LATEST_DUE: usize = 96;

/// The shapes that a session ran last.
#[derive(Debug, Default)]
pub(super) struct Shapes(Mutex<VecDeque<Ran>>);

#[derive(Debug)]
struct Ran {
    text: String,
    declared: Vec<Option<DataType>>,
    /// The version of the store that its texts saw.
    version: u64,
    /// How many texts of it have run at that version.
    times: usize,
    /// At how many it is planned: of a store that changes all the time at more each time, as planning it takes as long as planning a
    /// few texts.
    due: usize,
    /// What it was planned to, if it was.
    planned: Option<PlannedShape>,
}

/// A shape with parameters as a statement, and what planning looked at.
#[derive(Clone, Debug)]
struct PlannedShape {
    statement: Arc<PreparedStatement>,
    key: Arc<PlanKey>,
}

/// What is known of a shape.
enum Known {
    /// It is to be planned now.
    Due,
    Planned(PlannedShape),
    /// Its texts are planned one by one.
    Nothing,
}

impl Shapes {
    /// What is known of a shape, one more text of which runs at this version of the store.
    fn runs(&self, shape: &Shape, version: u64) -> Known {
        let mut all = self.0.lock();
        let is = |ran: &Ran| ran.text == shape.text && ran.declared == shape.declared;
        let place = all.iter().position(is);
        let Some(mut ran) = place.and_then(|place| all.remove(place)) else {
            if all.len() >= SHAPES {
                all.pop_front();
            }
            all.push_back(Ran {
                text: shape.text.clone(),
                declared: shape.declared.clone(),
                version,
                times: 1,
                due: FIRST_DUE,
                planned: None,
            });
            return Known::Nothing;
        };
        if ran.version != version {
            ran.version = version;
            ran.times = 0;
            if ran.planned.take().is_some() {
                ran.due = (2 * ran.due).min(LATEST_DUE);
            }
        }
        ran.times += 1;
        let known = match &ran.planned {
            Some(planned) => Known::Planned(planned.clone()),
            None if ran.times == ran.due => Known::Due,
            None => Known::Nothing,
        };
        all.push_back(ran);
        known
    }

    /// Keeps what a shape was planned to.
    fn keep(&self, shape: &Shape, planned: &PlannedShape) {
        let mut all = self.0.lock();
        let is = |ran: &&mut Ran| ran.text == shape.text && ran.declared == shape.declared;
        if let Some(ran) = all.iter_mut().find(is) {
            ran.planned = Some(planned.clone());
        }
    }
}

impl Session {
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
