//! Strings as rows of a shared array: a join copies row numbers, and the strings themselves only when they are
//! needed.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use algebra::filter::{compact, gather};
use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StructArray};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use table::json_kind;

use crate::error::{Error, Result};

/// Strings, one per row.
#[derive(Clone, Debug)]
pub struct Strings {
    /// The shared array, of string views.
    base: ArrayRef,
    /// Which of its rows these are; `None` for all of them, in order.
    rows: Option<Vec<u32>>,
}

/// Arrays longer than this belong to a join table, which lives as long as the query, and are shared; shorter ones
/// hold the decoded rows of a single vector.
const SHARED: usize = 2 * algebra::VECTOR_ROWS;
/// Longest string, in bytes, that its view holds whole.
const INLINE: u32 = 12;
/// The bit at which the buffer number stands in the view of a longer string.
const BUFFER: u32 = 64;

impl Strings {
    /// All strings of `base`, an array of string views.
    pub fn new(base: ArrayRef) -> Strings {
        Strings { base, rows: None }
    }

    /// No strings.
    pub fn none() -> Strings {
        Strings::new(Arc::new(StringViewArray::new_null(0)))
    }

    /// The same strings. Those that use less than half of the buffers of their array are rows of it, which are copied where they are
    /// kept.
    pub(crate) fn passing(self) -> Strings {
        match (self.base.as_string_view_opt(), &self.rows) {
            (Some(views), None) if is_sparse(views) => {
                let rows = (0..self.base.len() as u32).collect();
                let rows = Some(rows);
                Strings { rows, ..self }
            }
            _ => self,
        }
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.rows.as_ref().map_or(self.base.len(), Vec::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shared array, and which rows of it these are (`None` for all, in order).
    pub(crate) fn parts(&self) -> (&ArrayRef, Option<&[u32]>) {
        (&self.base, self.rows.as_deref())
    }

    /// The strings at `rows`.
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

    /// Keeps the strings at `rows`, which ascend.
    pub fn keep(&mut self, rows: &[u32]) {
        match &mut self.rows {
            None => self.rows = Some(rows.to_vec()),
            Some(own) => compact(own, rows),
        }
    }

    /// Whether each of them is so short that its view holds it whole. A NULL may count as a long one.
    pub(crate) fn is_inline(&self) -> bool {
        let Some(views) = self.base.as_string_view_opt() else {
            return false;
        };
        let views = views.views();
        let is_short = |view: &u128| *view as u32 <= INLINE;
        match &self.rows {
            None => views.iter().all(is_short),
            Some(rows) => rows.iter().all(|row| is_short(&views[*row as usize])),
        }
    }

    /// The strings of a run of rows.
    pub fn run(&self, run: Range<usize>) -> Strings {
        match &self.rows {
            None => Strings::new(self.base.slice(run.start, run.len())),
            Some(own) => Strings {
                base: self.base.clone(),
                rows: Some(own[run].to_vec()),
            },
        }
    }

    /// The strings as an array of string views, which shares the buffers of the underlying array.
    ///
    /// # Errors
    /// An internal error if the underlying array is of another type.
    pub fn array(&self) -> Result<ArrayRef> {
        match &self.rows {
            None => Ok(self.base.clone()),
            Some(rows) => Ok(Arc::new(picked(views_of(&self.base)?, rows))),
        }
    }

    /// Bytes that these strings take on their own: row numbers if they are rows of a shared array, otherwise views
    /// and string bytes.
    pub(crate) fn memory(&self) -> usize {
        match &self.rows {
            Some(rows) => size_of_val(&rows[..]),
            None => match self.base.as_string_view_opt() {
                Some(views) => 16 * views.len() + views.total_buffer_bytes_used(),
                None => 16 * self.base.len(),
            },
        }
    }

    /// A copy with buffers of its own.
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

    /// Appends `more` to `parts`. Returns the bytes by which this grows their memory.
    pub(crate) fn add(parts: &mut Vec<Strings>, more: &Strings) -> Result<usize> {
        let Some(rows) = &more.rows else {
            parts.push(more.clone());
            return Ok(more.memory());
        };
        // Row numbers now, and views as well once all parts are concatenated.
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

    /// Concatenates `parts`.
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

    /// Concatenates the rows of `runs`, each a pair of a part and its rows. Takes time linear in the number of rows
    /// and of buffers, whatever the number of runs; every buffer in use is shared once.
    ///
    /// # Errors
    /// Those of [`Strings::array`]; [`Error::Unsupported`] if there are more buffers than an array may have.
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
    views.ok_or_else(|| Error::internal(format!("strings held as {}", base.data_type())))
}

/// The rows `rows` of `array`, sharing its buffers.
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

/// One input of a concatenation.
struct Source<'t> {
    views: &'t StringViewArray,
    rows: Option<&'t [u32]>,
    /// The number in the output of each of its buffers; [`UNMET`] until the first string in that buffer is added.
    buffers: Vec<u32>,
}

/// Marks a buffer of which no string was added yet.
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

/// A concatenation in progress: the views of all strings, and each buffer once.
struct Joined {
    views: Vec<u128>,
    /// Once a NULL was seen, as long as the views.
    valid: Option<Vec<bool>>,
    buffers: Vec<Buffer>,
    /// The numbers of the buffers, by their address and length.
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

    /// Adds the rows `run` of `source`.
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

    /// `view` with the buffer number it has in the output.
    #[inline(always)]
    fn moved(&mut self, view: u128, array: &StringViewArray, buffers: &mut [u32]) -> Result<u128> {
        if view as u32 <= INLINE {
            return Ok(view);
        }
        let own = (view >> BUFFER) as u32 as usize;
        // Only the view of a NULL may name a buffer that does not exist.
        let Some(place) = buffers.get_mut(own) else {
            return Ok(0);
        };
        if *place == UNMET {
            *place = self.place(&array.data_buffers()[own])?;
        }
        let mask = u128::from(u32::MAX) << BUFFER;
        Ok(view & !mask | u128::from(*place) << BUFFER)
    }

    /// The number of `buffer` in the output; adds it if it is new.
    #[cold]
    fn place(&mut self, buffer: &Buffer) -> Result<u32> {
        let next = u32::try_from(self.buffers.len())
            .ok()
            .filter(|n| *n < UNMET);
        let next = next.ok_or_else(|| Error::Unsupported("strings in so many buffers".into()))?;
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
        // SAFETY: a view that does not hold its whole string comes from a sound array; `place` gave its buffer the
        // number that the view now names, and its offset and length are unchanged.
        unsafe { StringViewArray::new_unchecked(views, self.buffers, nulls) }
    }
}

/// `array`, or a copy of it if it uses less than half of its buffers: otherwise a few strings would keep the pages
/// of a file in memory. The same of JSON, which is strings within a struct.
pub(crate) fn compacted(array: ArrayRef) -> ArrayRef {
    if json_kind(array.data_type()).is_some() {
        let (fields, texts, nulls) = array.as_struct().clone().into_parts();
        let texts = texts.into_iter().map(compacted).collect();
        return match StructArray::try_new(fields, texts, nulls) {
            Ok(own) => Arc::new(own),
            Err(_) => array,
        };
    }
    let Some(views) = array.as_string_view_opt() else {
        return array;
    };
    if is_sparse(views) {
        Arc::new(views.gc())
    } else {
        array
    }
}

/// Whether an array uses less than half of its buffers.
fn is_sparse(views: &StringViewArray) -> bool {
    let shared: usize = views.data_buffers().iter().map(|b| b.len()).sum();
    shared > 2 * views.total_buffer_bytes_used()
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
    fn a_single_long_text_is_noticed() {
        let texts = ["", "twelve bytes", "thirteen byte"];
        let all = Strings::new(Arc::new(StringViewArray::from_iter_values(texts)));
        assert!(!all.is_inline() && all.run(0..2).is_inline() && Strings::none().is_inline());
        assert!(all.at(&[1, 0, 1]).is_inline() && !all.at(&[0, 2]).is_inline());
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

    #[test]
    fn passing_texts_do_not_keep_what_they_lie_in() {
        let long = |n: usize| format!("a text with the number {n}");
        let all = StringViewArray::from_iter_values((0..2_000).map(long));
        let few: ArrayRef = Arc::new(all.slice(7, 2));
        for (texts, most) in [
            (Strings::new(few.clone()), usize::MAX),
            (Strings::new(few.clone()).passing(), 64),
        ] {
            assert_eq!(strings(&texts), [long(7), long(8)]);
            let mut parts = vec![];
            Strings::add(&mut parts, &texts).unwrap();
            let array = parts[0].array().unwrap();
            let buffers = array.as_string_view().data_buffers().iter();
            assert!(buffers.map(|b| b.len()).sum::<usize>() <= most);
        }
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
