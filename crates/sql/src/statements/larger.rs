//! Rows of a stream in larger batches, for what takes less per row the more rows there are.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use futures::{Stream, StreamExt, stream};
use memory::Budget;

use crate::error::Result;
use crate::resources::budget::{Held, footprint};

/// The most rows of a batch, but for one that came with more.
const MOST: usize = 1 << 20;
/// What part of the memory limit the rows of a batch, and what is made of them, may take.
const PART: u64 = 8;
/// How often the values of a batch are in memory while something is made of it.
const COPIES: u64 = 6;

/// A stream, and what of it is to be handed on next.
struct Gathering<'s> {
    rows: Pin<Box<dyn Stream<Item = Result<RecordBatch>> + Send + 's>>,
    /// What comes after the rows that were gathered.
    next: VecDeque<Result<RecordBatch>>,
    budget: Arc<Budget>,
    /// The memory of the batch that was handed on last.
    held: Option<Held>,
}

/// The `rows`, which have one schema, in their order, in batches of up to about a million and of no more memory than `budget`
/// leaves. An error comes behind the rows that came before it.
pub(crate) fn larger<'s>(
    rows: impl Stream<Item = Result<RecordBatch>> + Send + 's,
    budget: Arc<Budget>,
) -> impl Stream<Item = Result<RecordBatch>> + Send + 's {
    let gathering = Gathering {
        rows: Box::pin(rows),
        next: VecDeque::new(),
        budget,
        held: None,
    };
    stream::unfold(gathering, |mut gathering| async move {
        let batch = gathering.next().await?;
        Some((batch, gathering))
    })
}

impl Gathering<'_> {
    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        self.held = None;
        let mut held = Held::of(&self.budget);
        let (mut some, mut count, mut bytes) = (Vec::new(), 0, 0);
        loop {
            let next = match self.next.pop_front() {
                Some(next) => Some(next),
                None => self.rows.next().await,
            };
            let batch = match next {
                Some(Ok(batch)) => batch,
                Some(Err(error)) if some.is_empty() => return Some(Err(error)),
                Some(Err(error)) => {
                    self.next.push_back(Err(error));
                    break;
                }
                None => break,
            };
            let more = COPIES * footprint(&batch);
            let fits =
                count + batch.num_rows() <= MOST && bytes + more <= self.budget.limit() / PART;
            let joins = some.is_empty() || fits && held.more(more).is_ok();
            if !joins {
                self.next.push_back(Ok(batch));
                break;
            }
            count += batch.num_rows();
            bytes += more;
            some.push(batch);
        }
        let first = some.first()?;
        let whole = match some.len() {
            1 => Ok(first.clone()),
            _ => concat_batches(&first.schema(), &some).map_err(Into::into),
        };
        self.held = Some(held);
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::error::Error;

    fn batch(from: i64, rows: i64) -> RecordBatch {
        let own: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + rows));
        RecordBatch::try_from_iter([("a", own)]).unwrap()
    }

    /// The first value and the number of rows of each batch, and errors.
    async fn run(rows: Vec<Result<RecordBatch>>, limit: u64) -> Vec<Option<(i64, usize)>> {
        let budget = Budget::new(limit);
        let larger = larger(stream::iter(rows), Arc::clone(&budget));
        let told = larger.map(|batch| {
            let batch = batch.ok()?;
            let values = batch.column(0).as_primitive::<Int64Type>().values();
            assert!(values.windows(2).all(|pair| pair[0] + 1 == pair[1]));
            Some((values.first().copied().unwrap_or(-1), batch.num_rows()))
        });
        let told = told.collect().await;
        assert_eq!(budget.used(), 0);
        told
    }

    #[tokio::test]
    async fn batches_become_larger_and_stay_in_order() {
        let rows = || (0..300).map(|at| Ok(batch(at * 8_192, 8_192))).collect();
        let whole = 128 * 8_192;
        assert_eq!(
            run(rows(), u64::MAX / 2).await,
            [
                Some((0, whole)),
                Some((whole as i64, whole)),
                Some((2 * whole as i64, 44 * 8_192))
            ]
        );
        let few = run(rows(), 64 << 20).await;
        assert!(few.len() > 2 && few.len() < 40, "{few:?}");
        assert_eq!(run(rows(), 1).await.len(), 300);
        assert_eq!(run(vec![], 1).await, []);
    }

    #[tokio::test]
    async fn an_error_comes_behind_the_rows_before_it() {
        let error = || Err(Error::unsupported("this"));
        let rows = vec![Ok(batch(0, 2)), Ok(batch(2, 3)), error(), Ok(batch(5, 1))];
        let told = run(rows, 1 << 30).await;
        assert_eq!(told, [Some((0, 5)), None, Some((5, 1))]);
        assert_eq!(run(vec![error()], 1 << 30).await, [None]);
    }
}
