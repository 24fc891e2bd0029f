//! Pages: pinning one, and reading its bytes as what they are.

use algebra::encoded::Stored;
use buffer::{PageId, Pin, Pool};

use crate::error::Result;

/// Pins a page, without suspending if it is resident.
pub(crate) async fn pin(pool: &Pool, page: PageId) -> Result<Pin<'_>> {
    match pool.try_pin(page) {
        Some(pin) => Ok(pin),
        None => Ok(pool.pin(page).await?),
    }
}

/// Bytes as numbers of their alignment, little-endian as stored; `None` if not aligned.
pub(crate) fn cast<T: Stored>(bytes: &[u8]) -> Option<&[T]> {
    const { assert!(cfg!(target_endian = "little"), "pages are little-endian") };
    // SAFETY: any bits are a value of a `Stored` type: the trait is sealed, and its types are the
    // unsigned integers. `align_to` gives only what is aligned and inside.
    let (before, values, _) = unsafe { bytes.align_to::<T>() };
    before.is_empty().then_some(values)
}
/// The texts of a page of `rows`; `None` if it holds fewer.
pub(crate) fn texts(page: &[u8], rows: usize) -> Option<Vec<&[u8]>> {
    let (offsets, heap) = page.split_at_checked(2 * (rows + 1))?;
    let offsets = cast::<u16>(offsets)?;
    offsets
        .windows(2)
        .map(|w| heap.get(w[0] as usize..w[1] as usize))
        .collect()
}
