//! Which pages are allocated (row B5).

use std::ops::Range;
use std::sync::Arc;

/// The bits of all pages. Cloning copies a pointer per protected page; a change copies the bits
/// of one.
///
/// Invariants:
/// 1. There is one group for each begun 8 x page size pages, each of page size bytes.
/// 2. The first bit of each group, that of the protected page, is set.
/// 3. Bits at and beyond `size` are zero.
/// 4. `set` is the number of bits set, and `taken` that of each group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bitmap {
    groups: Vec<Arc<[u64]>>,
    /// So that the search for a free page passes groups without one.
    taken: Vec<u32>,
    page_size: usize,
    /// Pages, protected ones included.
    size: u64,
    set: u64,
}

/// Why bits are not what they should be: a page, and what is wrong with its bit.
pub(super) type Unsound = (u32, &'static str);

impl Bitmap {
    /// The bits of `size` pages from their protected pages.
    pub(super) fn read(page_size: usize, size: u64, groups: &[Vec<u8>]) -> Result<Bitmap, Unsound> {
        let count = size.div_ceil(page_size as u64 * 8);
        if groups.len() as u64 != count {
            return Err((0, "there are too many or too few protected pages"));
        }
        let odd = groups.iter().position(|bytes| bytes.len() != page_size);
        if let Some(group) = odd {
            let protected = group as u64 * page_size as u64 * 8;
            return Err((protected as u32, "a protected page has another length"));
        }
        let words = |bytes: &Vec<u8>| {
            let words = bytes.chunks_exact(8);
            words
                .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
                .collect::<Arc<[u64]>>()
        };
        let groups: Vec<_> = groups.iter().map(words).collect();
        let ones = |group: &Arc<[u64]>| group.iter().map(|word| word.count_ones()).sum();
        let taken: Vec<u32> = groups.iter().map(ones).collect();
        let bitmap = Bitmap {
            set: taken.iter().copied().map(u64::from).sum(),
            taken,
            groups,
            page_size,
            size,
        };
        bitmap.verify().map(|()| bitmap)
    }

    fn verify(&self) -> Result<(), Unsound> {
        for group in 0..self.groups.len() {
            let protected = group as u64 * self.group_pages();
            if !self.get(protected) {
                return Err((protected as u32, "a protected page is not allocated"));
            }
        }
        match self.runs().last() {
            Some(run) if run.end > self.size => {
                Err(((run.end - 1) as u32, "allocated beyond the end"))
            }
            _ => Ok(()),
        }
    }

    /// Pages whose bits one protected page holds.
    pub(super) fn group_pages(&self) -> u64 {
        self.page_size as u64 * 8
    }

    /// Whether only the store may use `page`.
    pub(super) fn is_protected(&self, page: u64) -> bool {
        page.is_multiple_of(self.group_pages())
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Pages that are allocated, protected ones included.
    pub(super) fn allocated(&self) -> u64 {
        self.set
    }

    /// Protected pages.
    pub(super) fn protected(&self) -> u64 {
        self.groups.len() as u64
    }

    pub(super) fn get(&self, page: u64) -> bool {
        let (group, word, bit) = self.split(page);
        self.groups
            .get(group)
            .is_some_and(|words| words[word] & bit != 0)
    }

    fn split(&self, page: u64) -> (usize, usize, u64) {
        let within = page % self.group_pages();
        (
            (page / self.group_pages()) as usize,
            (within / 64) as usize,
            1 << (within % 64),
        )
    }

    /// Sets or clears the bit of a page below `size`; says whether it was the other before.
    pub(super) fn change(&mut self, page: u64, allocated: bool) -> bool {
        debug_assert!(page < self.size);
        if self.get(page) == allocated {
            return false;
        }
        let (group, word, bit) = self.split(page);
        Arc::make_mut(&mut self.groups[group])[word] ^= bit;
        if allocated {
            self.set += 1;
            self.taken[group] += 1;
        } else {
            self.set -= 1;
            self.taken[group] -= 1;
        }
        true
    }

    /// Makes room for pages up to `size`, which must not be less than before; allocates the
    /// protected ones among them.
    pub(super) fn grow(&mut self, size: u64) {
        debug_assert!(size >= self.size);
        self.size = size;
        while (self.groups.len() as u64) * self.group_pages() < size {
            let protected = self.groups.len() as u64 * self.group_pages();
            self.groups.push(vec![0; self.page_size / 8].into());
            self.taken.push(0);
            self.change(protected, true);
        }
    }

    /// The first page from `from` on that is not allocated, else the first of all.
    pub(super) fn free_from(&self, from: u64) -> Option<u64> {
        if self.set == self.size {
            return None;
        }
        self.free_in(from..self.size)
            .or_else(|| self.free_in(0..from.min(self.size)))
    }

    fn free_in(&self, pages: Range<u64>) -> Option<u64> {
        let mut page = pages.start;
        while page < pages.end {
            let (group, word, bit) = self.split(page);
            let end = (group as u64 + 1) * self.group_pages();
            let pages_of_group = self.group_pages() - end.saturating_sub(self.size);
            if u64::from(self.taken[group]) == pages_of_group {
                page = end;
                continue;
            }
            #[cfg(test)]
            tests::LOOKS.set(tests::LOOKS.get() + 1);
            let free = !self.groups[group][word] & !(bit - 1);
            let first = page / 64 * 64;
            if free != 0 {
                let found = first + u64::from(free.trailing_zeros());
                return (found < pages.end).then_some(found);
            }
            page = first + 64;
        }
        None
    }

    /// The bytes of a group's protected page.
    pub(super) fn bytes(&self, group: usize) -> Vec<u8> {
        let words = self.groups[group].iter();
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The groups whose bits differ from those of `before`.
    pub(super) fn changed<'a>(&'a self, before: &'a Bitmap) -> impl Iterator<Item = usize> + 'a {
        (0..self.groups.len()).filter(|&group| match before.groups.get(group) {
            Some(old) => !Arc::ptr_eq(old, &self.groups[group]),
            None => true,
        })
    }

    /// The allocated pages as ranges, in their order.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let end = self.groups.len() as u64 * self.group_pages();
        let mut page = 0;
        std::iter::from_fn(move || {
            let start = self.next(page..end, true)?;
            page = self.next(start..end, false).unwrap_or(end);
            Some(start..page)
        })
    }

    /// The first page of the range whose bit is `set`.
    fn next(&self, pages: Range<u64>, set: bool) -> Option<u64> {
        let mut page = pages.start;
        while page < pages.end {
            let (group, word, bit) = self.split(page);
            let word = self.groups[group][word];
            let wanted = if set { word } else { !word } & !(bit - 1);
            if wanted != 0 {
                return Some(page / 64 * 64 + u64::from(wanted.trailing_zeros()));
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::collections::BTreeSet;

    const PAGE: usize = 4096;
    const GROUP: u64 = 8 * PAGE as u64;

    thread_local! {
        /// Words that the search for a free page looked at.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn full_groups_are_passed() {
        const GROUPS: u64 = 40;
        let mut bitmap = empty();
        bitmap.grow(GROUPS * GROUP - 5);
        for page in 0..bitmap.size() {
            bitmap.change(page, true);
        }
        let words = PAGE / 8;
        for free in [1, 7 * GROUP + 3, GROUPS * GROUP / 2 - 1, bitmap.size() - 1] {
            bitmap.change(free, false);
            for from in [0, free, free + 1, 30 * GROUP + 9, bitmap.size()] {
                LOOKS.set(0);
                assert_eq!(bitmap.free_from(from), Some(free));
                // Of the one group that has a free page, at most twice.
                assert!(LOOKS.get() <= 2 * words, "{} words", LOOKS.get());
            }
            bitmap.change(free, true);
        }
        assert_eq!(bitmap.free_from(0), None);
    }

    fn empty() -> Bitmap {
        Bitmap::read(PAGE, 0, &[]).unwrap()
    }

    fn written(bitmap: &Bitmap) -> Vec<Vec<u8>> {
        (0..bitmap.groups.len())
            .map(|group| bitmap.bytes(group))
            .collect()
    }

    #[test]
    fn each_group_begins_with_a_protected_page() {
        let mut bitmap = empty();
        bitmap.grow(GROUP + 2);
        assert_eq!((bitmap.protected(), bitmap.allocated()), (2, 2));
        assert_eq!(bitmap.runs().collect::<Vec<_>>(), [0..1, GROUP..GROUP + 1]);
        assert_eq!(bitmap.free_from(0), Some(1));
        assert_eq!(bitmap.free_from(GROUP), Some(GROUP + 1));
        bitmap.change(GROUP + 1, true);
        assert_eq!(bitmap.free_from(GROUP), Some(1), "goes round");
    }

    #[test]
    fn bits_that_cannot_be_are_refused() {
        let mut bitmap = empty();
        bitmap.grow(10);
        let bytes = written(&bitmap);
        assert_eq!(Bitmap::read(PAGE, 10, &bytes), Ok(bitmap));
        let mut no_table = bytes.clone();
        no_table[0][0] = 0;
        assert!(Bitmap::read(PAGE, 10, &no_table).is_err_and(|(page, _)| page == 0));
        let mut short = bytes.clone();
        short[0].truncate(PAGE - 8);
        assert!(Bitmap::read(PAGE, 10, &short).is_err_and(|(page, _)| page == 0));
        assert!(Bitmap::read(PAGE, GROUP + 1, &bytes).is_err());
        let mut beyond = bytes;
        beyond[0][1] = 4;
        assert!(Bitmap::read(PAGE, 10, &beyond).is_err_and(|(page, _)| page == 10));
    }

    proptest! {
        #[test]
        fn bits_are_a_set_of_pages(
            size in 1..2 * GROUP,
            changes in prop::collection::vec((any::<u64>(), any::<bool>()), 0..60),
            from in any::<u64>(),
        ) {
            let mut bitmap = empty();
            bitmap.grow(size);
            let mut set: BTreeSet<u64> = (0..size).step_by(GROUP as usize).collect();
            for (page, allocated) in changes {
                let page = page % size;
                if bitmap.is_protected(page) {
                    continue;
                }
                let changes = if allocated { set.insert(page) } else { set.remove(&page) };
                prop_assert_eq!(bitmap.change(page, allocated), changes);
            }
            prop_assert_eq!(bitmap.allocated(), set.len() as u64);
            let runs: Vec<u64> = bitmap.runs().flatten().collect();
            prop_assert_eq!(&runs, &set.iter().copied().collect::<Vec<_>>());
            let from = from % size;
            let free = (from..size).chain(0..from).find(|page| !set.contains(page));
            prop_assert_eq!(bitmap.free_from(from), free);
            prop_assert_eq!(Bitmap::read(PAGE, size, &written(&bitmap)), Ok(bitmap));
        }
    }
}
