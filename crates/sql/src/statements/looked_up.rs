//! Queries for the row of one key as statements of a session: where it is awaited, in its open transaction if it has one.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::DataType;
use futures::FutureExt;
use syntax::key_query::{KeyQuery, KeyValue};

use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::run::instance::Instance;
use crate::statements::entered::{Entered, Shared};
use crate::statements::lookup::{self, Known};

/// The answer of `query` as a statement of a session, with these parameters; none if it is to be planned.
///
/// # Errors
/// Those of [`answer`](lookup::answer); if the transaction in progress has failed. It has failed after any of them.
pub(crate) async fn within(
    instance: &Arc<Instance>,
    shared: Shared,
    (query, parameters): (&KeyQuery, &[KeyValue]),
    started: Instant,
) -> Result<Option<Answer>> {
    let work = async {
        let mut entered = Entered::new(Arc::clone(instance), shared).await?;
        let asked = (query, parameters);
        let answer = lookup::answer(&mut entered.scope(), asked, started).await?;
        entered.succeed();
        Ok(answer)
    };
    caught(work).await
}

/// What `work` gives; a panic in it is an error, as one on a worker is.
pub(super) async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(done) => done,
        Err(panic) => Err(Error::of_panic(panic.as_ref())),
    }
}

/// What is known of `query`, some of whose parameters are `declared`; none if it is to be planned to know it.
///
/// # Errors
/// As [`within`], before any row is looked for.
pub(crate) async fn described(
    instance: &Arc<Instance>,
    shared: Shared,
    query: &KeyQuery,
    declared: &[Option<DataType>],
) -> Result<Option<Known>> {
    let work = async {
        let mut entered = Entered::new(Arc::clone(instance), shared).await?;
        let described = lookup::of_table(&mut entered.scope(), query, declared)?;
        entered.succeed();
        Ok(described)
    };
    caught(work).await
}
