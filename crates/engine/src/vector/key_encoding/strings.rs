//! Strings as words of a key.

use algebra::filter::gather;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;

use crate::error::Result;
use crate::vector::interner::{BYTES_AHEAD, INLINE, Interner, NOBODY, VIEWS_AHEAD};
use crate::vector::strings::Strings;
use crate::vector::value::{Type, Values, Vector};

/// Stands in the lower half of a string's first word, where others have the length: the upper half is the number of a longer string.
const NUMBERED: u64 = u32::MAX as u64;

/// Scratch for the words of strings. Reused from batch to batch.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    views: Vec<u128>,
    /// The places of long strings in the vector, and their rows in the array.
    places: Vec<u32>,
    rows: Vec<u32>,
    /// The numbers and hashes of these strings.
    numbers: Vec<u32>,
    hashes: Vec<u64>,
    /// The words of the labels of a dictionary.
    low: Vec<u64>,
    high: Vec<u64>,
    /// First words without the numbers of long strings.
    hashed: Vec<u64>,
}

impl Scratch {
    /// First words without the numbers of long strings.
    pub fn without_numbers(&mut self, low: &[u64]) -> &[u64] {
        self.hashed.clear();
        self.hashed.extend(low.iter().copied().map(without_number));
        &self.hashed
    }
}

/// The interners of a key's long strings, by the position of the vector in the key.
pub(crate) enum StringKeys<'a> {
    /// New strings are added.
    Adding(&'a mut Vec<Interner>),
    /// New strings match no key.
    Known(&'a [Interner]),
}

/// The first word of the long string with this number; of one that matches no key, if it is [`NOBODY`].
pub(super) fn numbered(number: u32) -> u64 {
    u64::from(number) << 32 | NUMBERED
}

/// The number of the long string with this first word; `None` for a short string.
pub(super) fn number_in(low: u64) -> Option<u32> {
    (low as u32 == NUMBERED as u32).then_some((low >> 32) as u32)
}

/// The first word without the number of a long string, which is another one in each interner: what is hashed of it.
pub(super) fn without_number(low: u64) -> u64 {
    match number_in(low) {
        Some(_) => NUMBERED,
        None => low,
    }
}

/// First words of strings, with the numbers that the long ones have in `theirs` replaced by those that they have, or get, in
/// `mine`. `high` are the second words; the blocks of `theirs` are shared by `mine` from block `first` on.
pub(super) fn renumber(
    (mine, theirs, first): (&mut Interner, &Interner, u32),
    (low, high): (&[u64], &[u64]),
    out: &mut Vec<u64>,
) {
    let later = |row: usize| low.get(row).copied().and_then(number_in);
    out.clear();
    out.extend(low.iter().enumerate().map(|(row, word)| {
        if let Some(number) = later(row + VIEWS_AHEAD) {
            theirs.ahead_view(number);
        }
        if let Some(number) = later(row + BYTES_AHEAD) {
            theirs.ahead_bytes(number);
        }
        let Some(number) = number_in(*word) else {
            return *word;
        };
        mine.ahead(high, row);
        numbered(mine.adopt_one(theirs, first, number, high[row]))
    }));
}

/// The two words of each string of a vector, and whether some are long. `texts` are the interners of the key, `position` is the
/// place of the vector in it.
pub(super) fn text_words(
    (vector, ty): (&Vector, &Type),
    (texts, position): (&mut StringKeys<'_>, usize),
    scratch: &mut Scratch,
    (low, high): (&mut Vec<u64>, &mut Vec<u64>),
) -> Result<bool> {
    if let (Values::Code(codes), Some(labels)) = (&vector.values, &ty.labels) {
        // The words of each label once, if there are fewer labels than rows.
        if labels.len() <= codes.len() {
            let labels = Strings::new(labels.labels().clone());
            let mut own = (
                std::mem::take(&mut scratch.low),
                std::mem::take(&mut scratch.high),
            );
            let long = string_words(
                (&labels, None),
                (texts, position),
                scratch,
                (&mut own.0, &mut own.1),
            )?;
            gather_labels(codes, &own.0, low);
            gather_labels(codes, &own.1, high);
            (scratch.low, scratch.high) = own;
            return Ok(long);
        }
    }
    let valid = vector.valid.as_deref();
    let own = match &vector.values {
        Values::Text(some) => {
            return string_words((some, valid), (texts, position), scratch, (low, high));
        }
        _ => vector.to_arrow(&Type {
            data: DataType::Utf8View,
            ..ty.clone()
        })?,
    };
    string_words(
        (&Strings::new(own), valid),
        (texts, position),
        scratch,
        (low, high),
    )
}

/// The word of each row's label. The code of a NULL may be any number.
fn gather_labels(codes: &[u32], labels: &[u64], out: &mut Vec<u64>) {
    out.clear();
    out.extend(
        codes
            .iter()
            .map(|code| labels.get(*code as usize).copied().unwrap_or(0)),
    );
}

/// The two words of each string, and whether some are long; both words are 0 where `valid` or the array says that it is NULL.
fn string_words(
    (strings, valid): (&Strings, Option<&[bool]>),
    (texts, position): (&mut StringKeys<'_>, usize),
    scratch: &mut Scratch,
    (low, high): (&mut Vec<u64>, &mut Vec<u64>),
) -> Result<bool> {
    let (base, rows) = strings.parts();
    let array = base.as_string_view();
    match rows {
        None => views_into(array.views(), (low, high)),
        Some(rows) => {
            gather(array.views(), rows, &mut scratch.views);
            views_into(&scratch.views, (low, high));
        }
    }
    let at = |place: usize| rows.map_or(place as u32, |rows| rows[place]);
    if valid.is_some() || base.null_count() > 0 {
        for place in 0..low.len() {
            let there = valid.is_none_or(|valid| valid[place]);
            if !there || array.is_null(at(place) as usize) {
                (low[place], high[place]) = (0, 0);
            }
        }
    }
    let is_long = |low: &u64| *low as u32 > INLINE;
    if !low.iter().fold(false, |any, low| any | is_long(low)) {
        return Ok(false);
    }
    let Scratch {
        places,
        rows,
        numbers,
        hashes,
        ..
    } = scratch;
    places.clear();
    places.extend((0..low.len() as u32).filter(|place| is_long(&low[*place as usize])));
    rows.clear();
    rows.extend(places.iter().map(|place| at(*place as usize)));
    texts.number((base, rows), position, (numbers, hashes));
    for ((place, number), hash) in places.iter().zip(numbers).zip(hashes) {
        (low[*place as usize], high[*place as usize]) = (numbered(*number), *hash);
    }
    Ok(true)
}

/// The halves of views.
fn views_into(views: &[u128], (low, high): (&mut Vec<u64>, &mut Vec<u64>)) {
    low.clear();
    low.extend(views.iter().map(|view| *view as u64));
    high.clear();
    high.extend(views.iter().map(|view| (*view >> 64) as u64));
}

impl StringKeys<'_> {
    /// The numbers and hashes of strings that are rows of `base`, none of them NULL.
    fn number(
        &mut self,
        (base, rows): (&ArrayRef, &[u32]),
        position: usize,
        (out, hashes): (&mut Vec<u32>, &mut Vec<u64>),
    ) {
        match self {
            StringKeys::Adding(interners) => {
                if interners.len() <= position {
                    interners.resize_with(position + 1, Interner::default);
                }
                interners[position].add_hashed(base, rows, out, hashes);
            }
            StringKeys::Known(interners) => match interners.get(position) {
                Some(interner) => interner.find(base.as_string_view(), rows, out, hashes),
                None => {
                    out.clear();
                    out.resize(rows.len(), NOBODY);
                    hashes.clear();
                    hashes.resize(rows.len(), 0);
                }
            },
        }
    }
}
