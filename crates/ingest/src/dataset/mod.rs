//! The files that names and patterns stand for, and their columns.
//!
//! [`find`] finds the files, [`opening`] looks at each and [`merge`] makes one list of columns of theirs; what is here
//! reads them, and [`filling`] adds what some of them lack. [`frame`] makes a dataset of batches that are no file.

mod filling;
pub(crate) mod find;
mod frame;
mod merge;
mod opening;
pub(crate) mod places;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};

use crate::batches::{self, BatchSource};
use crate::csv::Text;
use crate::dataset::filling::{Filling, Slot, constant};
use crate::dataset::places::{Numbered, field};
use crate::error::{Error, Result};
use crate::ipc::IpcFile;
use crate::json::JsonFile;
use crate::options::NullRule;
use crate::parquet::{ParquetFile, RowGroups};
use crate::piece::{Column, Piece, Pieces, cast_to};
use crate::stream::Source;

/// Bytes of text that a piece has where nothing else is asked for.
const PIECE: usize = 4 << 20;

/// What a file holds.
#[derive(Debug)]
pub(crate) enum Content {
    Text(Text),
    Json(JsonFile),
    Parquet(ParquetFile),
    Arrow(IpcFile),
    Batches(BatchSource),
}

/// Where the values of a column come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A column of the file.
    File(usize),
    /// The name of a folder that the file lies in.
    Key(usize),
    /// The file lacks it.
    Missing,
    /// The name of the file.
    Name,
    /// The number of the row in its file.
    Row,
}

/// One file of a dataset.
#[derive(Debug)]
pub(crate) struct Member {
    pub source: Arc<Source>,
    pub content: Content,
    /// The values of the dataset's keys.
    pub keys: Vec<Option<String>>,
    /// By column of the dataset.
    pub origins: Vec<Origin>,
}

/// Files that are read as one: their columns, and where the values come from.
///
/// Columns of files with names are matched by name, in any case where nothing matches as it is written; those that a
/// file lacks are NULL. Text files have the same columns each.
#[derive(Debug)]
pub struct Dataset {
    pub(crate) members: Vec<Member>,
    pub(crate) schema: SchemaRef,
    /// For each column whether its type is a guess from a part of the text.
    pub(crate) guesses: Vec<bool>,
    /// For each column of the files whether all have it and declare that it has no NULLs.
    pub(crate) required: Vec<bool>,
    pub(crate) named: bool,
}

/// A column that is asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its place in [`Dataset::schema`], or one of those behind it, of [`Dataset::places`].
    pub column: usize,
    /// The name and type to deliver it with, and whether it may be NULL.
    pub field: FieldRef,
    /// Whether the type is declared, and not what the dataset found out: numbers in text may then have zeros before
    /// them, which are lost.
    pub declared: bool,
    /// Which of its fields are NULL, in text.
    pub nulls: NullRule,
}

/// What is to be read of a dataset, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// The columns, in this order.
    pub columns: Vec<Wanted>,
    /// For each file which of its parts, as [`Dataset::groups`] counts them, can hold rows that are wanted; all
    /// where nothing is said.
    pub keep: Option<Vec<Vec<bool>>>,
    /// The number of this reader and how many readers there are: they share the pieces by number.
    pub share: (usize, usize),
    /// Bytes of text of a piece, about.
    pub piece_bytes: usize,
    /// Whether drawing a piece reads all that decoding it needs. Otherwise Parquet is read as it is decoded, which
    /// takes less memory.
    pub ahead: bool,
}

impl Request {
    /// All columns of all files as they were found.
    pub fn all(dataset: &Dataset) -> Request {
        Request::of(dataset, 0..dataset.schema.fields().len())
    }

    /// Some columns as they were found.
    pub fn of(dataset: &Dataset, columns: impl IntoIterator<Item = usize>) -> Request {
        let wanted = columns.into_iter().map(|column| Wanted {
            column,
            field: Arc::clone(&dataset.schema.fields()[column]),
            declared: !dataset.guesses[column],
            nulls: NullRule::default(),
        });
        Request {
            columns: wanted.collect(),
            keep: None,
            share: (0, 1),
            piece_bytes: PIECE,
            ahead: false,
        }
    }
}

impl Dataset {
    /// The columns: those of the files, and after them those that the names of folders are. All may be NULL.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The name and type of a column, also of one of [`Dataset::places`].
    pub fn field(&self, column: usize) -> FieldRef {
        let own = self.schema.fields();
        match column.checked_sub(own.len()) {
            None => Arc::clone(&own[column]),
            Some(place) => field(place),
        }
    }

    /// Whether the columns have names: not where they are `column_1` and so on, of text without a header.
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// Whether a column's type was inferred from a part of a text.
    pub fn is_guess(&self, column: usize) -> bool {
        self.guesses[column]
    }

    /// Whether all files declare that a column has no NULLs.
    pub fn is_required(&self, column: usize) -> bool {
        self.required.get(column).copied().unwrap_or(false)
    }

    /// How many files there are.
    pub fn files(&self) -> usize {
        self.members.len()
    }

    /// The first file, as it was named.
    pub fn path(&self) -> &Path {
        self.members[0].source.path()
    }

    /// The size of all files as they lie there; none if one is a pipe.
    pub fn bytes(&self) -> Option<u64> {
        self.members
            .iter()
            .map(|member| member.source.bytes())
            .sum()
    }

    /// How many rows there are, where all files tell.
    pub fn rows(&self) -> Option<u64> {
        let rows = |member: &Member| match &member.content {
            Content::Parquet(file) => Some(file.rows()),
            Content::Batches(batches) => batches.rows(),
            _ => None,
        };
        self.members.iter().map(rows).sum()
    }

    /// Whether all files are text as the TPC-H generator writes it, by their layout.
    pub fn is_tbl(&self) -> bool {
        self.members.iter().all(
            |member| matches!(&member.content, Content::Text(text) if text.layout.dialect.trailing),
        )
    }

    /// Whether all files are JSON.
    pub fn is_json(&self) -> bool {
        let mut members = self.members.iter();
        members.all(|member| matches!(member.content, Content::Json(_)))
    }

    /// Whether a file can be read only once, since it is a pipe.
    pub fn is_once(&self) -> bool {
        self.members.iter().any(|member| member.source.is_once())
    }

    /// Whether it is no file: batches in memory or a stream of them. Nothing is known of their values.
    pub fn is_batches(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| matches!(member.content, Content::Batches(_)))
    }

    /// Whether drawing the pieces of a request waits for nothing: no file, no stream, no other thread.
    pub fn is_at_hand(&self, request: &Request) -> bool {
        self.members.iter().all(|member| match &member.content {
            Content::Batches(batches) => {
                let origins = request
                    .columns
                    .iter()
                    .map(|wanted| member.origin(wanted.column));
                batches.is_at_hand(origins.filter_map(|origin| match origin {
                    Origin::File(column) => Some(column),
                    _ => None,
                }))
            }
            _ => false,
        })
    }

    /// Whether it is known, without reading it, that a column of batches has no NULLs.
    pub fn has_no_nulls(&self, column: usize) -> bool {
        let none = |member: &Member| match (&member.content, member.origin(column)) {
            (Content::Batches(batches), Origin::File(column)) => !batches.may_be_null(column),
            _ => false,
        };
        self.members.iter().all(none)
    }

    /// The least and the greatest value of a column of whole numbers or days in memory, which are looked at: none if they
    /// are further apart than `span`, if there are none, or if the column is no such one.
    pub fn bounds(self: &Arc<Self>, column: usize, span: u64) -> Option<(i64, i64)> {
        let request = Request::of(self, [column]);
        if !batches::is_whole(self.schema.field(column).data_type()) || !self.is_at_hand(&request) {
            return None;
        }
        let mut bounds = None::<(i64, i64)>;
        for piece in self.pieces(&request).ok()? {
            for batch in (piece.ok()?.read)().ok()? {
                let own = batches::bounds(batch.ok()?.column(0));
                bounds = match (bounds, own) {
                    (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
                    (known, None) => known,
                    (None, own) => own,
                };
                if bounds.is_some_and(|(low, high)| high.abs_diff(low) > span) {
                    return None;
                }
            }
        }
        bounds
    }

    /// Whether drawing pieces may take long: from pipes and compressed files.
    pub fn is_slow(&self) -> bool {
        self.members.iter().any(|member| !member.source.is_plain())
    }

    /// How many pieces there are, about, with text in pieces of `piece_bytes`.
    pub fn parts(&self, piece_bytes: usize) -> usize {
        let parts = |member: &Member| match &member.content {
            Content::Parquet(file) => file.count(),
            Content::Batches(batches) => batches.parts(),
            _ => {
                let bytes = member.source.bytes().unwrap_or(piece_bytes as u64);
                bytes.div_ceil(piece_bytes.max(1) as u64) as usize
            }
        };
        self.members.iter().map(parts).sum()
    }

    /// How many parts of a file there are that may be left out: row groups of Parquet, one of other files.
    pub fn groups(&self, file: usize) -> usize {
        match &self.members[file].content {
            Content::Parquet(file) => file.count(),
            _ => 1,
        }
    }

    /// What is known of a column in each of the parts of a file, with values of the column's type. None of
    /// floating-point columns, whose least and greatest values in Parquet leave NaN out.
    pub fn statistics(&self, file: usize, column: usize) -> Option<RowGroups> {
        let member = &self.members[file];
        let field = self.field(column);
        let wanted = field.data_type();
        if wanted.is_floating() {
            return None;
        }
        let origin = member.origin(column);
        match (origin, &member.content) {
            (Origin::Key(_) | Origin::Name, _) => {
                let groups = self.groups(file);
                let one = member.constant(origin);
                let value = constant(one.as_deref(), wanted, groups).ok()?;
                let (nulls, rows) = match &member.content {
                    Content::Parquet(file) => {
                        let rows: Vec<Option<u64>> = file.group_rows().map(Some).collect();
                        let none = one.is_some();
                        let nulls = rows.iter().map(|rows| if none { Some(0) } else { *rows });
                        (nulls.collect(), rows.into_iter().collect())
                    }
                    _ => (
                        UInt64Array::from(vec![one.as_ref().map(|_| 0)]),
                        UInt64Array::from(vec![None]),
                    ),
                };
                Some(RowGroups {
                    mins: Arc::clone(&value),
                    maxes: value,
                    nulls,
                    rows,
                })
            }
            (Origin::File(field), Content::Parquet(file)) => {
                let known = file.statistics(field)?;
                Some(RowGroups {
                    mins: cast_to(&known.mins, wanted).ok()?,
                    maxes: cast_to(&known.maxes, wanted).ok()?,
                    ..known
                })
            }
            _ => None,
        }
    }

    /// The rows, in order. A file is opened when its first piece is drawn; one that is another than it was when the
    /// dataset was opened fails.
    ///
    /// # Errors
    /// Those of the iterator are final: nothing comes after one.
    pub fn pieces(self: &Arc<Self>, request: &Request) -> Result<Pieces> {
        let (dataset, request) = (Arc::clone(self), request.clone());
        let fields: Vec<FieldRef> = request
            .columns
            .iter()
            .map(|wanted| Arc::clone(&wanted.field))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let (mut next, mut current, mut failed) = (0, None::<Pieces>, false);
        // The number of the next piece.
        let mut number = 0;
        Ok(Box::new(std::iter::from_fn(move || {
            while !failed {
                match current.as_mut().and_then(Iterator::next) {
                    Some(Ok(mut piece)) => {
                        if dataset.numbered(next - 1, &request).is_none() {
                            piece.number = number;
                            number += 1;
                        }
                        if piece.number as usize % request.share.1 == request.share.0 {
                            return Some(Ok(piece));
                        }
                        continue;
                    }
                    Some(Err(error)) => {
                        failed = true;
                        return Some(Err(error));
                    }
                    None => {}
                }
                if let Some(pieces) = next
                    .checked_sub(1)
                    .and_then(|last| dataset.numbered(last, &request))
                {
                    number += pieces;
                }
                if next == dataset.members.len() {
                    return None;
                }
                match dataset.begin(next, &request, &schema, number) {
                    Ok(pieces) => current = Some(pieces),
                    Err(error) => {
                        failed = true;
                        return Some(Err(error));
                    }
                }
                next += 1;
            }
            None
        })))
    }

    /// How many pieces a file has, if that is known beforehand: then it numbers them itself.
    fn numbered(&self, file: usize, request: &Request) -> Option<u64> {
        let content = match &self.members[file].content {
            Content::Parquet(content) => content,
            Content::Batches(batches) => return batches.numbered(),
            _ => return None,
        };
        let keep = request.keep.as_ref().and_then(|keep| keep.get(file));
        let kept = keep.map(|keep| keep.iter().filter(|kept| **kept).count());
        Some(kept.unwrap_or_else(|| content.count()) as u64)
    }

    /// The pieces of one file, the first of which has this number.
    fn begin(
        &self,
        file: usize,
        request: &Request,
        schema: &SchemaRef,
        number: u64,
    ) -> Result<Pieces> {
        let member = &self.members[file];
        let keep = request
            .keep
            .as_ref()
            .and_then(|keep| keep.get(file))
            .map(Vec::as_slice);
        if keep.is_some_and(|keep| !keep.contains(&true)) {
            return Ok(Box::new(std::iter::empty()));
        }
        let mut columns = vec![];
        let mut slots = Vec::with_capacity(request.columns.len());
        for wanted in &request.columns {
            slots.push(match member.origin(wanted.column) {
                Origin::File(source) => {
                    columns.push(Column {
                        source,
                        field: Arc::clone(&wanted.field),
                        strict: !wanted.declared,
                        nulls: wanted.nulls,
                    });
                    Slot::Read(columns.len() - 1)
                }
                Origin::Row => Slot::Row,
                origin => Slot::Constant(self.value(member, origin, &wanted.field)?),
            });
        }
        let columns: Arc<[Column]> = columns.into();
        let pieces = match &member.content {
            // An empty file has no columns.
            Content::Text(text) if text.layout.names.is_empty() => Box::new(std::iter::empty()),
            Content::Text(text) => text.pieces(&member.source, &columns, request.piece_bytes)?,
            Content::Json(file) => file.pieces(&member.source, &columns, request.piece_bytes)?,
            Content::Parquet(file) => file.pieces(
                &member.source,
                &columns,
                keep,
                (number, request.share),
                request.ahead,
            )?,
            Content::Arrow(file) => file.pieces(&member.source, &columns)?,
            Content::Batches(batches) => {
                batches.pieces(&member.source, &columns, (number, request.share))?
            }
        };
        let numbered = slots.iter().any(|slot| matches!(slot, Slot::Row));
        let filling = Arc::new(Filling {
            source: Arc::clone(&member.source),
            schema: Arc::clone(schema),
            slots,
        });
        let mut rows = numbered.then(|| Numbered::new(member.content.group_rows(), keep, number));
        Ok(Box::new(pieces.map(move |piece| {
            let (mut piece, filling) = (piece?, Arc::clone(&filling));
            let first = match &mut rows {
                Some(rows) => rows.first(&mut piece)?,
                None => 0,
            };
            Ok(Piece {
                number: piece.number,
                rows: piece.rows,
                bytes: piece.bytes,
                read: Box::new(move || Ok(filling.fill((piece.read)()?, first))),
            })
        })))
    }

    /// The one value that a column has in a file.
    fn value(&self, member: &Member, origin: Origin, field: &Field) -> Result<ArrayRef> {
        let value = member.constant(origin);
        if value.is_none() && !field.is_nullable() {
            let reason = format!("has no column {:?}, which must not be null", field.name());
            return Err(Error::file(member.source.path(), reason));
        }
        constant(value.as_deref(), field.data_type(), 1).map_err(|error| {
            let reason = format!(
                "the name of its folder is no value of column {:?}: {error}",
                field.name()
            );
            Error::file(member.source.path(), reason)
        })
    }
}

impl Dataset {
    /// The columns [`FILE_NAME`] and [`FILE_ROW`]. Where rows are numbered, text is decoded as its pieces are drawn.
    pub fn places(&self) -> [Wanted; 2] {
        [0, 1].map(|place| Wanted {
            column: self.schema.fields().len() + place,
            field: field(place),
            declared: true,
            nulls: NullRule::default(),
        })
    }
}

impl Member {
    /// Where the values of a column come from.
    pub fn origin(&self, column: usize) -> Origin {
        match column.checked_sub(self.origins.len()) {
            None => self.origins[column],
            Some(0) => Origin::Name,
            Some(_) => Origin::Row,
        }
    }

    /// The value of all rows in a column of this origin; none if it is NULL.
    pub fn constant(&self, origin: Origin) -> Option<Cow<'_, str>> {
        match origin {
            Origin::Key(key) => self.keys[key].as_deref().map(Cow::Borrowed),
            Origin::Name => Some(self.source.path().to_string_lossy()),
            Origin::File(_) | Origin::Missing | Origin::Row => None,
        }
    }
}

impl Content {
    /// The rows of each group of a file that has groups.
    fn group_rows(&self) -> Option<Vec<u64>> {
        match self {
            Content::Parquet(file) => Some(file.group_rows().collect()),
            _ => None,
        }
    }
}
