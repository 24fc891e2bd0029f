//! Where the rows of a source go: in blocks to others, or to the end of the pipeline at once.

use std::sync::Arc;

use table::Filter;

use crate::error::Result;
use crate::execute::pieces::OpenRows;
use crate::execute::sink::SinkState;
use crate::execute::stream::block::Block;
use crate::execute::stream::tally::Tally;

/// Where a source gets empty blocks and delivers full ones.
pub(crate) trait BlockPort: Send {
    /// An empty block.
    fn empty(&mut self, tally: &Tally) -> impl Future<Output = Result<Block>> + Send;

    /// Delivers a block with rows.
    fn full(&mut self, block: Block, tally: &Tally) -> impl Future<Output = Result<()>> + Send;

    /// The filters of the scan in their current order, if it is not that of the plan.
    fn filters(&self) -> Option<Arc<[Filter]>> {
        None
    }

    /// Takes opened rows to the end of the pipeline, and says whether the limit is reached; gives them back if they are to be
    /// passed on in blocks.
    fn take_on(
        &mut self,
        rows: OpenRows,
        _tally: &Tally,
    ) -> impl Future<Output = Result<std::result::Result<bool, OpenRows>>> + Send {
        std::future::ready(Ok(Err(rows)))
    }

    /// The rows that it took to the end of the pipeline itself.
    fn into_sink(self) -> Option<SinkState>;

    /// Reports that a piece was opened, and whether any of its rows are left.
    fn opened(&self, _left: bool) {}
}
