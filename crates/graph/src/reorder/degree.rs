//! By falling degree, those of the same degree as before.

use crate::error::Result;
use crate::job::Job;
use crate::reorder::neighbours::Neighbours;

/// The vertices in their new order.
pub(crate) async fn sequence(lists: &mut Neighbours<'_>, job: &mut Job<'_>) -> Result<Vec<u32>> {
    let degrees = lists.degrees(job).await?;
    Ok(falling(&degrees))
}

/// The vertices by falling degree.
pub(crate) fn falling(degrees: &[u32]) -> Vec<u32> {
    let mut sequence: Vec<u32> = (0..degrees.len() as u32).collect();
    // With the number in the key an unstable sort, which needs no more memory, is a stable one.
    sequence.sort_unstable_by_key(|&vertex| (!degrees[vertex as usize], vertex));
    sequence
}
