//! Queries of a session that differ in constants alone: they are run by the [plan of their shape](crate::run::generic_plans).
//!
//! Texts that a session runs again word for word have [plans of their own](crate::statements::recent). A shape is planned for any
//! constants when a third text has it, and anew after the store has changed and some more had it.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::datatypes::DataType;
use parking_lot::Mutex;
use syntax::shapes::Shape;

use crate::run::kept_plans::PlanKey;
use crate::statements::described::PreparedStatement;

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
pub(super) struct PlannedShape {
    pub statement: Arc<PreparedStatement>,
    pub key: Arc<PlanKey>,
}

/// What is known of a shape.
pub(super) enum Known {
    /// It is to be planned now.
    Due,
    Planned(PlannedShape),
    /// Its texts are planned one by one.
    Nothing,
}

impl Shapes {
    /// What is known of a shape, one more text of which runs at this version of the store.
    pub(super) fn runs(&self, shape: &Shape, version: u64) -> Known {
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
    pub(super) fn keep(&self, shape: &Shape, planned: &PlannedShape) {
        let mut all = self.0.lock();
        let is = |ran: &&mut Ran| ran.text == shape.text && ran.declared == shape.declared;
        if let Some(ran) = all.iter_mut().find(is) {
            ran.planned = Some(planned.clone());
        }
    }
}
