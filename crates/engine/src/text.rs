//! Texts: rows of an array that is shared, so that what a join finds is copied when it is needed, not at each step.

use std::ops::Range;
use std::sync::Arc;

use algebra::filter::{compact, gather};
use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, UInt32Array};
use arrow::compute::{concat, take};

use crate::error::Result;

/// Texts, one per row.
#[derive(Clone, Debug)]
pub struct Texts {
    /// An array of string views.
    base: ArrayRef,
    /// Which rows of it; `None`: all, in order.
    rows: Option<Vec<u32>>,
}

/// Arrays that are longer than what one vector's rows are decoded into belong to a table that is looked up, and are
/// there as long as the query runs.
const SHARED: usize = 2 * algebra::VECTOR_ROWS;

impl Texts {
    /// Those of an array of string views.
    pub fn new(base: ArrayRef) -> Texts {
        Texts { base, rows: None }
    }

    /// None.
    pub fn none() -> Texts {
        Texts::new(Arc::new(StringViewArray::new_null(0)))
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
    pub fn at(&self, rows: &[u32]) -> Texts {
        let rows = match &self.rows {
            None => rows.to_vec(),
            Some(own) => {
                let mut picked = Vec::new();
                gather(own, rows, &mut picked);
                picked
            }
        };
        Texts {
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
    pub fn run(&self, run: Range<usize>) -> Texts {
        match &self.rows {
            None => Texts::new(self.base.slice(run.start, run.len())),
            Some(own) => Texts {
                base: self.base.clone(),
                rows: Some(own[run].to_vec()),
            },
        }
    }

    /// As an array of string views.
    ///
    /// # Errors
    /// When there are too many bytes for one array.
    pub fn array(&self) -> Result<ArrayRef> {
        Ok(match &self.rows {
            None => self.base.clone(),
            Some(rows) => take(&self.base, &UInt32Array::from(rows.clone()), None)?,
        })
    }

    /// The same texts in memory of their own.
    ///
    /// # Errors
    /// Those of [`Texts::array`].
    pub(crate) fn copied(&self) -> Result<Texts> {
        Ok(Texts::new(Arc::new(self.array()?.as_string_view().gc())))
    }

    /// Whether both are rows of the same array.
    fn same(&self, other: &Texts) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    /// Adds `more` behind the texts of `parts`.
    pub(crate) fn add(parts: &mut Vec<Texts>, more: &Texts) -> Result<()> {
        let Some(rows) = &more.rows else {
            parts.push(more.clone());
            return Ok(());
        };
        match parts.last_mut() {
            Some(last) if last.same(more) && last.rows.is_some() => {
                if let Some(own) = &mut last.rows {
                    own.extend_from_slice(rows);
                }
            }
            _ if more.base.len() > SHARED => parts.push(more.clone()),
            _ => parts.push(Texts::new(compacted(more.array()?))),
        }
        Ok(())
    }

    /// All of `parts`, in order.
    ///
    /// # Errors
    /// Those of [`Texts::array`].
    pub fn concat(parts: &[Texts]) -> Result<Texts> {
        let [first, others @ ..] = parts else {
            return Ok(Texts::none());
        };
        if others.is_empty() {
            return Ok(first.clone());
        }
        let rows: Option<Vec<&[u32]>> = parts.iter().map(|part| part.rows.as_deref()).collect();
        if let Some(rows) = rows.filter(|_| others.iter().all(|other| first.same(other))) {
            return Ok(Texts {
                base: first.base.clone(),
                rows: Some(rows.concat()),
            });
        }
        let arrays = parts.iter().map(Texts::array).collect::<Result<Vec<_>>>()?;
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        Ok(Texts::new(concat(&arrays)?))
    }
}

/// `array`, with bytes of its own if those that it shares are many more: a few texts would keep pages of a file in memory.
fn compacted(array: ArrayRef) -> ArrayRef {
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

    fn strings(texts: &Texts) -> Vec<String> {
        let array = texts.array().unwrap();
        let array = array.as_string_view();
        array.iter().map(|t| t.unwrap().to_string()).collect()
    }

    #[test]
    fn few_texts_do_not_keep_many() {
        let long = |n: usize| format!("a text with the number {n}");
        let all: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..2_000).map(long)));
        let few = Texts::new(all).at(&[7, 1_900]);
        let mut parts = vec![];
        Texts::add(&mut parts, &few).unwrap();
        assert_eq!(strings(&parts[0]), [long(7), long(1_900)]);
        let array = parts[0].array().unwrap();
        let buffers = array.as_string_view().data_buffers().iter();
        let held: usize = buffers.map(|b| b.len()).sum();
        assert!(held <= 64, "{held} bytes");
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
            let mut pool: Vec<(Texts, Vec<String>)> = lengths.iter().enumerate().map(|(i, rows)| {
                let texts = Texts::new(array(i * 10_000, *rows));
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
                            Texts::add(&mut parts, texts).unwrap();
                        }
                        Texts::add(&mut parts, &texts).unwrap();
                        Texts::add(&mut parts, &texts).unwrap();
                        list = pool.iter().map(|(_, list)| list.clone()).chain([list.clone(), list]).flatten().collect();
                        texts = Texts::concat(&parts).unwrap();
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
