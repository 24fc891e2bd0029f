//! Looks at the files of a dataset: what they hold, and which columns they have together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};

use crate::csv::Text;
use crate::csv::infer::Kinds;
use crate::dataset::find::{Found, find};
use crate::dataset::merge::Columns;
use crate::dataset::{Content, Dataset, Member, Origin};
use crate::error::{Error, Result};
use crate::ipc::IpcFile;
use crate::json::JsonFile;
use crate::options::{Format, Options};
use crate::parquet::ParquetFile;
use crate::piece::plain;
use crate::stream::Source;

/// Records of text files, all together, that types are inferred from.
const SAMPLED: usize = 100_000;

/// Records of each further file that are looked at.
const SAMPLED_LATER: usize = 20;

impl Dataset {
    /// Looks at the files that `names` stand for: paths, `-` for standard input, patterns, folders of partitions.
    ///
    /// # Errors
    /// [`Error::File`] for one that is not there, cannot be read, or has other columns than the files before it;
    /// [`Error::Options`] for options that do not fit the files.
    pub fn open(names: &[PathBuf], options: &Options) -> Result<Dataset> {
        open(names, options)
    }
}

fn open(names: &[PathBuf], options: &Options) -> Result<Dataset> {
    options.check()?;
    let found = find(names, options)?;
    let keys: Vec<String> = found[0].keys.iter().map(|(name, _)| name.clone()).collect();
    let (mut opening, mut left) = (
        Opening {
            options: options.clone(),
            columns: Columns::default(),
            typed: false,
        },
        SAMPLED,
    );
    let mut members = Vec::with_capacity(found.len());
    let mut maps = Vec::with_capacity(found.len());
    for file in found {
        let (source, content) = opening.content(&file, left.max(SAMPLED_LATER))?;
        if let Content::Text(text) = &content {
            left -= text.layout.sampled.min(left);
        }
        maps.push(opening.map(source.path(), &content)?);
        members.push((source, content, keys_of(&file, &keys)));
    }
    opening.finish(members, maps, &keys)
}

/// The values of a file's keys, in the order of `names`.
fn keys_of(file: &Found, names: &[String]) -> Vec<Option<String>> {
    let value = |name: &String| {
        let found = file
            .keys
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.clone())
    };
    names.iter().map(value).collect()
}

/// A file that was looked at, and the values of its keys.
type Opened = (Arc<Source>, Content, Vec<Option<String>>);

/// A dataset whose files are being looked at.
struct Opening {
    options: Options,
    columns: Columns,
    /// Whether a file was seen that declares its types.
    typed: bool,
}

impl Opening {
    fn content(&mut self, file: &Found, rows: usize) -> Result<(Arc<Source>, Content)> {
        // Files after the first are recognised by its names.
        if self.columns.named && self.options.expected.is_empty() {
            self.options.expected = self
                .columns
                .all
                .iter()
                .map(|column| column.name.clone())
                .collect();
        }
        let (source, stream, format) = Source::open(&file.path, &self.options)?;
        let content = match format {
            Format::Csv | Format::Tbl | Format::Text => {
                Content::Text(Text::open(&source, stream, &self.options, format, rows)?)
            }
            Format::Json => Content::Json(JsonFile::open(&source, stream, &self.options, rows)?),
            Format::Parquet => Content::Parquet(ParquetFile::open(&source, stream)?),
            Format::Arrow => Content::Arrow(IpcFile::open(&source, stream)?),
        };
        Ok((Arc::new(source), content))
    }

    /// For each column known so far, the field of this file that fills it.
    fn map(&mut self, path: &Path, content: &Content) -> Result<Vec<Option<usize>>> {
        let schema = match content {
            Content::Text(text) if text.layout.names.is_empty() => return Ok(vec![]),
            Content::Text(text) => return self.columns.add_text(path, &text.layout),
            Content::Json(file) => file.schema(),
            Content::Parquet(file) => file.schema(),
            Content::Arrow(file) => file.schema(),
            Content::Batches(batches) => batches.schema(),
        };
        self.typed = true;
        let given = schema.fields().iter().map(|field| {
            let given = self.options.type_of(field.name()).cloned();
            let data_type = given.unwrap_or_else(|| plain(field.data_type()));
            (field.name().clone(), data_type, !field.is_nullable())
        });
        let given: Vec<_> = given.collect();
        let found = matches!(content, Content::Json(_));
        self.columns.add_typed(path, given.into_iter(), found)
    }

    /// The columns of the files, and for each whether its type is a guess.
    fn fields(&self) -> (Vec<Field>, Vec<bool>) {
        let (mut fields, mut guesses) = (vec![], vec![]);
        for column in &self.columns.all {
            let given = self.options.type_of(&column.name);
            let text = (self.options.all_text && column.is_guess()).then_some(DataType::Utf8View);
            guesses.push(given.is_none() && column.is_guess());
            let data_type = given.cloned().map(|given| plain(&given)).or(text);
            let data_type = data_type.unwrap_or_else(|| column.data_type());
            let data_type = match data_type {
                DataType::Null => DataType::Utf8View,
                known => known,
            };
            fields.push(Field::new(&column.name, data_type, true));
        }
        (fields, guesses)
    }

    /// Adds the columns that the names of folders are to `fields`, and returns their places there.
    fn key_fields(
        &self,
        members: &[Opened],
        keys: &[String],
        fields: &mut Vec<Field>,
    ) -> Vec<usize> {
        let known = keys.iter().map(|key| {
            let place = self.columns.place(key);
            (key, place.unwrap_or(usize::MAX))
        });
        // The name of a folder wins over a column of the same name, as it does elsewhere.
        let mut key_places = vec![];
        for (number, (key, place)) in known.enumerate() {
            let values = members
                .iter()
                .filter_map(|(_, _, values)| values[number].as_deref());
            let mut kinds = Kinds::default();
            values.for_each(|value| kinds.add(Kinds::of(value)));
            let data_type = self
                .options
                .type_of(key)
                .cloned()
                .unwrap_or_else(|| kinds.data_type());
            match fields.get_mut(place) {
                Some(field) => field.set_data_type(data_type),
                None => {
                    fields.push(Field::new(key, data_type, true));
                }
            }
            key_places.push(if place < self.columns.all.len() {
                place
            } else {
                fields.len() - 1
            });
        }
        key_places
    }

    fn finish(
        self,
        members: Vec<Opened>,
        maps: Vec<Vec<Option<usize>>>,
        keys: &[String],
    ) -> Result<Dataset> {
        let (mut fields, mut guesses) = self.fields();
        let key_places = self.key_fields(&members, keys, &mut fields);
        guesses.resize(fields.len(), false);
        self.check_types(&fields)?;
        if fields.is_empty() {
            let path = members[0].0.path();
            let reason = "is empty and has no columns; give them (--schema for imports)";
            return Err(Error::file(path, reason));
        }
        let count = fields.len();
        let everywhere = |place: usize| {
            maps.iter()
                .all(|map| map.get(place).copied().flatten().is_some())
        };
        let all = self.columns.all.iter().enumerate();
        let required = all.map(|(place, column)| column.required && everywhere(place));
        let required = required.collect();
        let members = members
            .into_iter()
            .zip(maps)
            .map(|((source, content, keys), map)| {
                let mut origins: Vec<Origin> = (0..count)
                    .map(|place| {
                        map.get(place)
                            .copied()
                            .flatten()
                            .map_or(Origin::Missing, Origin::File)
                    })
                    .collect();
                for (number, place) in key_places.iter().enumerate() {
                    origins[*place] = Origin::Key(number);
                }
                Member {
                    source,
                    content,
                    keys,
                    origins,
                }
            });
        Ok(Dataset {
            members: members.collect(),
            schema: Arc::new(Schema::new(fields)),
            guesses,
            required,
            named: self.columns.named,
        })
    }

    /// Types that are given must be those of columns.
    fn check_types(&self, fields: &[Field]) -> Result<()> {
        let unknown = self.options.types.iter().find(|(name, _)| {
            !fields
                .iter()
                .any(|field| field.name().eq_ignore_ascii_case(name))
        });
        match unknown {
            None => Ok(()),
            Some((name, _)) => {
                let names: Vec<&str> = fields
                    .iter()
                    .map(|field| field.name().as_str())
                    .take(12)
                    .collect();
                Err(Error::Options(format!(
                    "a type is given for column {name:?}, which is not there; there are: {}",
                    names.join(", ")
                )))
            }
        }
    }
}
