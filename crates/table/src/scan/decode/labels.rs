//! Texts that are stored as codes: each becomes the view of its label.

use algebra::encoded::Stored;
use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;

use crate::dictionary::Dictionary;
use crate::error::Result;
use crate::scan::chunk::{PinnedChunk, Tally};
use crate::scan::decode::views::finish;
use crate::scan::rows::{PageRows, Rows};

/// The labels of `rows`.
pub(super) fn labels(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    dictionary: Option<&Dictionary>,
    nulls: Option<NullBuffer>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    let Some(dictionary) = dictionary else {
        return Err(chunk.cannot_hold(data_type));
    };
    let mut views = Vec::with_capacity(rows.len());
    let (all, width) = (dictionary.views(), chunk.matrix.width());
    for index in 0..chunk.matrix.pages.len() {
        let page = chunk.page_rows(index);
        let part = rows.within(&page);
        if part.is_empty() {
            continue;
        }
        let (before, first) = (views.len(), page.start as u32);
        let known = match width {
            1 => lookup(chunk.values::<u8>(index)?, &part, first, all, &mut views),
            2 => lookup(chunk.values::<u16>(index)?, &part, first, all, &mut views),
            _ => lookup(chunk.values::<u32>(index)?, &part, first, all, &mut views),
        };
        if !known {
            return Err(chunk.damaged(chunk.matrix.pages[index].id, "holds an unknown code"));
        }
        tally(
            chunk.page(index)?.node(),
            ((views.len() - before) * width) as u64,
        );
    }
    finish(views, dictionary.buffers().clone(), nulls, data_type)
}

/// Appends the views of codes; false if a code has no label.
fn lookup<S: Stored>(
    codes: &[S],
    part: &PageRows<'_>,
    first: u32,
    views: &[u128],
    out: &mut Vec<u128>,
) -> bool {
    let mut most = 0;
    let last = views.len().saturating_sub(1);
    let mut view = |code: S| {
        most = most.max(code.wide() as usize);
        views[(code.wide() as usize).min(last)]
    };
    if views.is_empty() {
        return false;
    }
    match part {
        PageRows::Run(run) => out.extend(codes[run.clone()].iter().map(|c| view(*c))),
        PageRows::Some(rows) => out.extend(rows.iter().map(|r| view(codes[(*r - first) as usize]))),
    }
    most <= last
}
