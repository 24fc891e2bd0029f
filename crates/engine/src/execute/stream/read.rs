//! Reading an external source as an operator of the streaming executor.

use std::future::poll_fn;
use std::time::Instant;

use arrow::array::RecordBatch;
use futures::StreamExt;

use crate::error::Result;
use crate::execute::stream::tally::Tally;
use crate::logical::external::ExternalPart;

/// The next rows of `part`. Decoding counts as work, waiting for the device as waiting for input.
pub(crate) async fn rows(part: &mut ExternalPart, tally: &Tally) -> Option<Result<RecordBatch>> {
    let mut asleep: Option<Instant> = None;
    poll_fn(|context| {
        if let Some(since) = asleep.take() {
            tally.input.add(since.elapsed());
        }
        let _working = tally.work();
        let polled = part.rows.poll_next_unpin(context);
        if polled.is_pending() {
            asleep = Some(Instant::now());
        }
        polled
    })
    .await
}
