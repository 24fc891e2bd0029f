//! The columns that several files have together.

use std::path::{Path, PathBuf};

use arrow::datatypes::DataType;

use crate::csv::infer::Kinds;
use crate::csv::layout::Layout;
use crate::error::{Error, Result};

/// What is known of a column's type.
#[derive(Clone, Debug)]
enum Known {
    /// The kinds of values that text files have.
    Kinds(Kinds),
    /// The type that a file declares.
    Type(DataType),
    /// The type that was found for a part of a file that declares none.
    Found(DataType),
}

impl Known {
    fn data_type(&self) -> DataType {
        match self {
            Known::Kinds(kinds) => kinds.data_type(),
            Known::Type(data_type) | Known::Found(data_type) => data_type.clone(),
        }
    }

    /// The type that holds the values of both.
    fn with(&self, other: &Known) -> Option<Known> {
        match (self, other) {
            (Known::Kinds(a), Known::Kinds(b)) => {
                let mut both = *a;
                both.add(*b);
                Some(Known::Kinds(both))
            }
            // A text file without values says nothing.
            (Known::Kinds(none), known) | (known, Known::Kinds(none)) if none.is_empty() => {
                Some(known.clone())
            }
            (Known::Type(_), _) | (_, Known::Type(_)) => {
                common(&self.data_type(), &other.data_type()).map(Known::Type)
            }
            _ => common(&self.data_type(), &other.data_type()).map(Known::Found),
        }
    }
}

/// The type that holds all values of both.
fn common(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::*;
    let rank = |data_type: &DataType| match data_type {
        Int8 => Some(1),
        Int16 => Some(2),
        Int32 => Some(3),
        Int64 => Some(4),
        _ => None,
    };
    match (a, b) {
        _ if a == b => Some(a.clone()),
        (Null, other) | (other, Null) => Some(other.clone()),
        (Float32 | Float64, Float32 | Float64) => Some(Float64),
        (Float32 | Float64, whole) | (whole, Float32 | Float64) if whole.is_integer() => {
            Some(Float64)
        }
        _ => match (rank(a)?, rank(b)?) {
            (first, second) if first >= second => Some(a.clone()),
            _ => Some(b.clone()),
        },
    }
}

/// A column of several files.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    pub name: String,
    known: Known,
    /// No file that has it has NULLs in it, by what they declare.
    pub required: bool,
    /// The first file that has it.
    path: PathBuf,
}

impl Merged {
    /// The type that holds the values of all files.
    pub fn data_type(&self) -> DataType {
        self.known.data_type()
    }

    /// Whether the type was inferred from a part of a text.
    pub fn is_guess(&self) -> bool {
        matches!(self.known, Known::Kinds(_) | Known::Found(_))
    }
}

/// Columns as more and more files are looked at.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub all: Vec<Merged>,
    /// Whether they have names, which columns of text without a header do not.
    pub named: bool,
    /// How many columns the text files have, and the first of them.
    text: Option<(usize, PathBuf)>,
}

impl Columns {
    /// The place of the column of that name: as it is written, else in any case.
    pub fn place(&self, name: &str) -> Option<usize> {
        let exact = self.all.iter().position(|column| column.name == name);
        exact.or_else(|| {
            let lower = name.to_lowercase();
            let mut alike = self
                .all
                .iter()
                .enumerate()
                .filter(|(_, column)| column.name.to_lowercase() == lower);
            alike.next().map(|(place, _)| place)
        })
    }

    /// Adds a text file; gives for each column the field that it is.
    pub fn add_text(&mut self, path: &Path, layout: &Layout) -> Result<Vec<Option<usize>>> {
        let known = layout.kinds.iter().map(|kinds| Known::Kinds(*kinds));
        let free = |(name, known): (String, Known)| (name, known, false);
        if let Some((width, first)) = &self.text
            && *width != layout.names.len()
        {
            return Err(Error::file(
                path,
                format!(
                    "has {} columns where {} has {width}; read them one by one, or give the delimiter",
                    layout.names.len(),
                    first.display()
                ),
            ));
        }
        let begun = self.text.is_some();
        self.text
            .get_or_insert_with(|| (layout.names.len(), path.to_owned()));
        if begun && !(layout.header && self.named) {
            for (place, known) in known.enumerate() {
                self.add(path, place, known, false)?;
            }
            return Ok((0..self.all.len())
                .map(|place| (place < layout.names.len()).then_some(place))
                .collect());
        }
        let before = self.all.len();
        self.named |= layout.named;
        let fields = layout.names.iter().cloned().zip(known).map(free);
        let map = self.add_named(path, fields.collect())?;
        if begun && self.all.len() > before {
            let extra = &self.all[before].name;
            let reason = format!(
                "has a column {extra:?} that {} lacks; text files that are read together have the same columns",
                self.all[0].path.display()
            );
            return Err(Error::file(path, reason));
        }
        Ok(map)
    }

    /// Adds a file whose columns have names, types and whether they are required; gives for each column the field
    /// that it is. The types are `found` in a part of the file, or else declared by it.
    pub fn add_typed(
        &mut self,
        path: &Path,
        fields: impl Iterator<Item = (String, DataType, bool)>,
        found: bool,
    ) -> Result<Vec<Option<usize>>> {
        self.named = true;
        let known = if found { Known::Found } else { Known::Type };
        self.add_named(
            path,
            fields
                .map(|(name, data_type, required)| (name, known(data_type), required))
                .collect(),
        )
    }

    fn add_named(
        &mut self,
        path: &Path,
        fields: Vec<(String, Known, bool)>,
    ) -> Result<Vec<Option<usize>>> {
        let before = self.all.len();
        let mut map = vec![None; before];
        for (field, (name, known, required)) in fields.into_iter().enumerate() {
            // Two columns of one file are two, however alike their names.
            let exact = self.all.iter().position(|column| column.name == name);
            let place = exact.or_else(|| {
                self.place(&name)
                    .filter(|place| *place < before && map[*place].is_none())
            });
            match place {
                Some(place) if map[place].is_some() => {
                    return Err(Error::file(
                        path,
                        format!("has two columns {name:?}; rename one of them"),
                    ));
                }
                Some(place) => {
                    self.add(path, place, known, required)?;
                    map[place] = Some(field);
                }
                None => {
                    self.all.push(Merged {
                        name,
                        known,
                        required,
                        path: path.to_owned(),
                    });
                    map.push(Some(field));
                }
            }
        }
        Ok(map)
    }

    fn add(&mut self, path: &Path, place: usize, known: Known, required: bool) -> Result<()> {
        let column = &mut self.all[place];
        column.required &= required;
        match column.known.with(&known) {
            Some(both) => column.known = both,
            None => {
                return Err(Error::file(
                    path,
                    format!(
                        "column {:?} is {} here, but {} in {}; give its type",
                        column.name,
                        known.data_type(),
                        column.known.data_type(),
                        column.path.display()
                    ),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_widen() {
        use DataType::*;
        for (a, b, wanted) in [
            (Int32, Int64, Some(Int64)),
            (Int8, Int8, Some(Int8)),
            (Int64, Float32, Some(Float64)),
            (Null, Date32, Some(Date32)),
            (Utf8View, Int64, None),
            (Date32, Int64, None),
            (UInt8, Int64, None),
        ] {
            assert_eq!(common(&a, &b), wanted, "{a} {b}");
            assert_eq!(common(&b, &a), wanted, "{b} {a}");
        }
    }

    #[test]
    fn columns_are_matched_by_name() {
        let mut columns = Columns::default();
        let fields = |names: &[&str]| {
            names
                .iter()
                .map(|name| ((*name).to_owned(), DataType::Int64, true))
                .collect::<Vec<_>>()
                .into_iter()
        };
        let path = Path::new("x");
        assert_eq!(
            columns.add_typed(path, fields(&["a", "b"]), false).unwrap(),
            [Some(0), Some(1)]
        );
        assert_eq!(
            columns.add_typed(path, fields(&["B", "c"]), false).unwrap(),
            [None, Some(0), Some(1)]
        );
        assert_eq!(
            columns.add_typed(path, fields(&["b", "B"]), false).unwrap(),
            [None, Some(0), None, Some(1)]
        );
        assert!(columns.add_typed(path, fields(&["q", "q"]), false).is_err());
    }
}
