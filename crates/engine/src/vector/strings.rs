//! Texts: rows of an array that is shared, so that what a join finds is copied when it is needed, not at each step.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use algebra::filter::{compact, gather};
use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};

use crate::error::{Error, Result};

/// Texts, one per row.
#[derive(Clone, Debug)]
pub struct Strings {
    /// An array of string views.
    base: ArrayRef,
    /// Which rows of it; `None`: all, in order.
    rows: Option<Vec<u32>>,
}

/// Arrays that are longer than what one vector's rows are decoded into belong to a table that is looked up, and are
/// there as long as the query runs.
const SHARED: usize = 2 * algebra::VECTOR_ROWS;
/// Views of texts up to this long hold all of them.
const INLINE: u32 = 12;
/// Where the number of its buffer stands in the view of a longer text.
const BUFFER: u32 = 64;

impl Strings {
    /// Those of an array of string views.
    pub fn new(base: ArrayRef) -> Strings {
        Strings { base, rows: None }
    }

    /// None.
    pub fn none() -> Strings {
        Strings::new(Arc::new(StringViewArray::new_null(0)))
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.rows.as_ref().map_or(self.base.len(), Vec::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array they are rows of, and which, if not all in order.
    pub(crate) fn parts(&self) -> (&ArrayRef, Option<&[u32]>) {
        (&self.base, self.rows.as_deref())
    }

    /// Those at `rows`.
    pub fn at(&self, rows: &[u32]) -> Strings {
        let rows = match &self.rows {
            None => rows.to_vec(),
            Some(own) => {
                let mut picked = Vec::new();
                gather(own, rows, &mut picked);
                picked
            }
        };
        Strings {
            base: self.base.clone(),
            rows: Some(rows),
        }
    }

    /// Keeps those at `rows`, which ascend.
    pub fn keep(&mut self, rows: &[u32]) {
        match &mut self.rows {
            None => self.rows = Some(rows.to_vec()),
            Some(own) => compact(own, rows),
        }
    }

    /// Those of a run of rows.
    pub fn run(&self, run: Range<usize>) -> Strings {
        match &self.rows {
            None => Strings::new(self.base.slice(run.start, run.len())),
            Some(own) => Strings {
                base: self.base.clone(),
                rows: Some(own[run].to_vec()),
            },
        }
    }

    /// As an array of string views, which shares the buffers of the one that these are rows of.
    ///
    /// # Errors
    /// An internal one, for rows of an array of another type.
    pub fn array(&self) -> Result<ArrayRef> {
        match &self.rows {
            None => Ok(self.base.clone()),
            Some(rows) => Ok(Arc::new(picked(views_of(&self.base)?, rows))),
        }
    }

    /// Bytes that these rows take by themselves: their views, or their row numbers, and the texts that lie in no view
    /// unless a table that is there anyway holds them.
    pub(crate) fn memory(&self) -> usize {
        match &self.rows {
            Some(rows) => size_of_val(&rows[..]),
            None => match self.base.as_string_view_opt() {
                Some(views) => 16 * views.len() + views.total_buffer_bytes_used(),
                None => 16 * self.base.len(),
            },
        }
    }

    /// The same texts in memory of their own.
    ///
    /// # Errors
    /// Those of [`Strings::array`].
    pub(crate) fn copied(&self) -> Result<Strings> {
        Ok(Strings::new(Arc::new(self.array()?.as_string_view().gc())))
    }

    /// Whether both are rows of the same array.
    fn same(&self, other: &Strings) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    /// Adds `more` behind the texts of `parts`; gives the bytes that they take by that.
    pub(crate) fn add(parts: &mut Vec<Strings>, more: &Strings) -> Result<usize> {
        let Some(rows) = &more.rows else {
            parts.push(more.clone());
            return Ok(more.memory());
        };
        // Their views will stand beside the rows when all parts are put together.
        let shared = rows.len() * (size_of::<u32>() + size_of::<u128>());
        match parts.last_mut() {
            Some(last) if last.same(more) && last.rows.is_some() => {
                if let Some(own) = &mut last.rows {
                    own.extend_from_slice(rows);
                }
                Ok(shared)
            }
            _ if more.base.len() > SHARED => {
                parts.push(more.clone());
                Ok(shared)
            }
            _ => {
                let own = Strings::new(compacted(more.array()?));
                let bytes = own.memory();
                parts.push(own);
                Ok(bytes)
            }
        }
    }

    /// All of `parts`, in order.
    ///
    /// # Errors
    /// Those of [`Strings::array`].
    pub fn concat(parts: &[Strings]) -> Result<Strings> {
        match parts {
            [] => Ok(Strings::none()),
            [one] => Ok(one.clone()),
            _ => {
                let all: Vec<_> = parts.iter().map(|part| 0..part.len()).enumerate().collect();
                Strings::runs(&parts.iter().collect::<Vec<_>>(), &all)
            }
        }
    }

    /// The rows of `runs`, each of one of `parts`, one after the other. Takes time for each row and for each buffer of
    /// each part, however many runs there are; each buffer that a text lies in is shared once.
    ///
    /// # Errors
    /// Those of [`Strings::array`]; more buffers than an array may have.
    pub(crate) fn runs(parts: &[&Strings], runs: &[(usize, Range<usize>)]) -> Result<Strings> {
        if let [first, others @ ..] = parts
            && others.iter().all(|other| first.same(other))
            && let Some(rows) = parts
                .iter()
                .map(|p| p.rows.as_deref())
                .collect::<Option<Vec<_>>>()
        {
            let runs = runs.iter().map(|(part, run)| &rows[*part][run.clone()]);
            return Ok(Strings {
                base: first.base.clone(),
                rows: Some(runs.collect::<Vec<_>>().concat()),
            });
        }
        let rows = runs.iter().map(|(_, run)| run.len()).sum();
        let mut joined = Joined::with_capacity(rows);
        let sources = parts.iter().map(|part| Source::new(part));
        let mut sources = sources.collect::<Result<Vec<_>>>()?;
        for (part, run) in runs {
            joined.add(&mut sources[*part], run.clone())?;
        }
        Ok(Strings::new(Arc::new(joined.finish())))
    }
}

fn views_of(base: &ArrayRef) -> Result<&StringViewArray> {
    let views = base.as_string_view_opt();
    views.ok_or_else(|| Error::internal(format!("texts held as {}", base.data_type())))
}

/// The rows `rows` of `array`, sharing all of its buffers as one.
fn picked(array: &StringViewArray, rows: &[u32]) -> StringViewArray {
    let (views, buffers, nulls) = array.clone().into_parts();
    let picked: Vec<u128> = rows.iter().map(|row| views[*row as usize]).collect();
    let nulls = nulls.map(|nulls| {
        rows.iter()
            .map(|row| nulls.is_valid(*row as usize))
            .collect()
    });
    // SAFETY: each view is one of the array's, whose buffers these are.
    unsafe { StringViewArray::new_unchecked(ScalarBuffer::from(picked), buffers, nulls) }
}

/// Texts that others are put together from.
struct Source<'t> {
    views: &'t StringViewArray,
    rows: Option<&'t [u32]>,
    /// What stands for each of its buffers in what is put together; [`UNMET`] until a text of it comes.
    buffers: Vec<u32>,
}

/// Of a buffer that no text was seen of.
const UNMET: u32 = u32::MAX;

impl<'t> Source<'t> {
    fn new(texts: &'t Strings) -> Result<Source<'t>> {
        let views = views_of(&texts.base)?;
        Ok(Source {
            views,
            rows: texts.rows.as_deref(),
            buffers: vec![UNMET; views.data_buffers().len()],
        })
    }
}

/// Texts being put together: views of all, and each buffer that they lie in once.
struct Joined {
    views: Vec<u128>,
    /// As long as the views, once a NULL was seen.
    valid: Option<Vec<bool>>,
    buffers: Vec<Buffer>,
    /// The buffers by where they begin and how long they are.
    known: HashMap<(usize, usize), u32>,
}

impl Joined {
    fn with_capacity(rows: usize) -> Joined {
        Joined {
            views: Vec::with_capacity(rows),
            valid: None,
            buffers: vec![],
            known: HashMap::new(),
        }
    }

    /// Adds some rows of `source`.
    fn add(&mut self, source: &mut Source<'_>, run: Range<usize>) -> Result<()> {
        self.add_valid(source, run.clone());
        let views = source.views.views();
        match source.rows {
            None => {
                for view in &views[run] {
                    let view = self.moved(*view, source.views, &mut source.buffers)?;
                    self.views.push(view);
                }
            }
            Some(rows) => {
                for row in &rows[run] {
                    let view = views[*row as usize];
                    let view = self.moved(view, source.views, &mut source.buffers)?;
                    self.views.push(view);
                }
            }
        }
        Ok(())
    }

    /// `view` of an array, as it is here.
    #[inline(always)]
    fn moved(&mut self, view: u128, array: &StringViewArray, buffers: &mut [u32]) -> Result<u128> {
        if view as u32 <= INLINE {
            return Ok(view);
        }
        let own = (view >> BUFFER) as u32 as usize;
        // Only what is NULL may name a buffer that is not there.
        let Some(place) = buffers.get_mut(own) else {
            return Ok(0);
        };
        if *place == UNMET {
            *place = self.place(&array.data_buffers()[own])?;
        }
        let mask = u128::from(u32::MAX) << BUFFER;
        Ok(view & !mask | u128::from(*place) << BUFFER)
    }

    /// The number of `buffer`, which is added if it is not there.
    #[cold]
    fn place(&mut self, buffer: &Buffer) -> Result<u32> {
        let next = u32::try_from(self.buffers.len())
            .ok()
            .filter(|n| *n < UNMET);
        let next = next.ok_or_else(|| Error::Unsupported("texts in so many places".into()))?;
        let key = (buffer.as_ptr().addr(), buffer.len());
        let place = *self.known.entry(key).or_insert(next);
        if place == next {
            self.buffers.push(buffer.clone());
        }
        Ok(place)
    }

    fn add_valid(&mut self, source: &Source<'_>, run: Range<usize>) {
        let rows = self.views.len();
        match (source.views.nulls(), &mut self.valid) {
            (None, None) => {}
            (None, Some(valid)) => valid.resize(rows + run.len(), true),
            (Some(nulls), valid) => {
                let valid = valid.get_or_insert_with(|| vec![true; rows]);
                match source.rows {
                    None => valid.extend(run.map(|row| nulls.is_valid(row))),
                    Some(own) => {
                        valid.extend(own[run].iter().map(|row| nulls.is_valid(*row as usize)));
                    }
                }
            }
        }
    }

    fn finish(self) -> StringViewArray {
        let nulls = self.valid.map(NullBuffer::from);
        let views = ScalarBuffer::from(self.views);
        // SAFETY: each view that is not all of its text is one of an array whose buffer it names is the one that
        // `place` put there for it, unchanged; so are its place in that buffer and its length.
        unsafe { StringViewArray::new_unchecked(views, self.buffers, nulls) }
    }
}

/// `array`, with bytes of its own if those that it shares are many more: a few texts would keep pages of a file in memory.
pub(crate) fn compacted(array: ArrayRef) -> ArrayRef {
    let Some(views) = array.as_string_view_opt() else {
        return array;
    };
    let shared: usize = views.data_buffers().iter().map(|b| b.len()).sum();
    match shared > 2 * views.total_buffer_bytes_used() {
        true => Arc::new(views.gc()),
        false => array,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strings(texts: &Strings) -> Vec<String> {
        let array = texts.array().unwrap();
        let array = array.as_string_view();
        array.iter().map(|t| t.unwrap().to_string()).collect()
    }

    #[test]
    fn few_texts_do_not_keep_many() {
        let long = |n: usize| format!("a text with the number {n}");
        let all: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..2_000).map(long)));
        let few = Strings::new(all).at(&[7, 1_900]);
        let mut parts = vec![];
        Strings::add(&mut parts, &few).unwrap();
        assert_eq!(strings(&parts[0]), [long(7), long(1_900)]);
        let array = parts[0].array().unwrap();
        let buffers = array.as_string_view().data_buffers().iter();
        let held: usize = buffers.map(|b| b.len()).sum();
        assert!(held <= 64, "{held} bytes");
    }

    fn buffers(texts: &Strings) -> usize {
        texts.array().unwrap().as_string_view().data_buffers().len()
    }

    /// An array whose texts lie in as many buffers as it is made of pieces.
    fn of_pieces(pieces: usize) -> Strings {
        let piece = |n: usize| {
            let text = |row: usize| format!("row {row} of the piece with the number {n}");
            let array = StringViewArray::from_iter_values((0..SHARED).map(text));
            Strings::new(Arc::new(array))
        };
        Strings::concat(&(0..pieces).map(piece).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn buffers_are_shared_once_however_many_runs_there_are() {
        let parts = [of_pieces(30), of_pieces(30)];
        // Arrow begins new buffers while an array grows, so a piece has some.
        let each = buffers(&parts[0]);
        assert!((30..200).contains(&each), "{each}");
        let rows = parts[0].len();
        // A run for each thousand rows, of both in turn.
        let runs: Vec<(usize, Range<usize>)> = (0..rows / 1_000)
            .flat_map(|n| [0, 1].map(|part| (part, n * 1_000..(n + 1) * 1_000)))
            .collect();
        let all = Strings::runs(&[&parts[0], &parts[1]], &runs).unwrap();
        assert_eq!(buffers(&all), 2 * each);
        let expected: Vec<String> = runs
            .iter()
            .flat_map(|(part, run)| strings(&parts[*part].run(run.clone())))
            .collect();
        assert_eq!(strings(&all), expected);
        // The same array again and again, and rows of it.
        let again = [
            parts[0].run(0..9),
            parts[0].at(&[5, 100_000]),
            parts[0].run(3..4),
        ];
        assert_eq!(buffers(&Strings::concat(&again).unwrap()), 2);
        // What no text lies in is not kept.
        let few = Strings::concat(&[parts[0].run(0..9), parts[1].run(0..9)]).unwrap();
        assert_eq!(buffers(&few), 2);
    }

    #[test]
    fn short_texts_and_nulls_are_put_together() {
        let some = StringViewArray::from_iter([Some("short"), None, Some("a text that is long")]);
        let some = Strings::new(Arc::new(some));
        let none = Strings::new(Arc::new(StringViewArray::from_iter_values(["", "b"])));
        let all = Strings::concat(&[none.clone(), some.at(&[2, 1, 0]), none, some]).unwrap();
        let array = all.array().unwrap();
        let list: Vec<Option<&str>> = array.as_string_view().iter().collect();
        let (long, short) = (Some("a text that is long"), Some("short"));
        let (empty, b) = (Some(""), Some("b"));
        assert_eq!(
            list,
            [empty, b, long, None, short, empty, b, short, None, long]
        );
    }

    proptest! {
        /// Whatever is done to them, they are what a plain list would be.
        #[test]
        fn texts_are_a_list(
            lengths in prop::collection::vec(1usize..5_000, 1..4),
            steps in prop::collection::vec((0usize..4, any::<prop::sample::Index>(), any::<u64>()), 0..12),
        ) {
            let array = |from: usize, rows: usize| -> ArrayRef {
                Arc::new(StringViewArray::from_iter_values((from..from + rows).map(|n| format!("text number {n}"))))
            };
            let mut pool: Vec<(Strings, Vec<String>)> = lengths.iter().enumerate().map(|(i, rows)| {
                let texts = Strings::new(array(i * 10_000, *rows));
                let list = strings(&texts);
                (texts, list)
            }).collect();
            for (what, which, seed) in steps {
                let (mut texts, mut list) = pool[which.index(pool.len())].clone();
                let rows: Vec<u32> = (0..list.len() as u32).filter(|row| seed >> (row % 64) & 1 == 1).collect();
                match what {
                    0 => {
                        let rows: Vec<u32> = rows.iter().rev().copied().collect();
                        list = rows.iter().map(|r| list[*r as usize].clone()).collect();
                        texts = texts.at(&rows);
                    }
                    1 => {
                        list = rows.iter().map(|r| list[*r as usize].clone()).collect();
                        texts.keep(&rows);
                    }
                    2 => {
                        let run = list.len() / 3..list.len() / 2;
                        list = list[run.clone()].to_vec();
                        texts = texts.run(run);
                    }
                    _ => {
                        let mut parts = vec![];
                        for (texts, _) in &pool {
                            Strings::add(&mut parts, texts).unwrap();
                        }
                        Strings::add(&mut parts, &texts).unwrap();
                        Strings::add(&mut parts, &texts).unwrap();
                        list = pool.iter().map(|(_, list)| list.clone()).chain([list.clone(), list]).flatten().collect();
                        texts = Strings::concat(&parts).unwrap();
                    }
                }
                prop_assert_eq!(texts.len(), list.len());
                prop_assert_eq!(&strings(&texts), &list);
                if list.len() < 50_000 {
                    pool.push((texts, list));
                }
            }
        }
    }
}
