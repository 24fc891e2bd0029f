//! A group of Zarr as variables: its arrays, those of groups within it, and what their attributes say of them. So xarray
//! writes data sets: a dimension has the coordinates of the array that has its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use array::{DataType, Region, Scalar};
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::job::Job;
use crate::source::Source;
use crate::variables::model::{Container, Extent, Role, Value, Variable};
use crate::zarr::metadata::fill;
use crate::zarr::source::{Described, Node, ZarrSource, node};

/// The most groups within groups.
const MOST_LEVELS: usize = 16;

/// The most arrays of a group.
const MOST_ARRAYS: usize = 1 << 14;

/// The arrays of a group.
pub(super) struct ZarrGroup {
    folder: PathBuf,
    variables: Vec<Variable>,
    /// The folder of each variable.
    folders: Vec<PathBuf>,
    /// Those that were made ready.
    open: BTreeMap<usize, ZarrSource>,
}

impl ZarrGroup {
    /// Finds the arrays of the group in a folder.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::System`].
    pub fn open(folder: &Path) -> Result<ZarrGroup> {
        let mut group = ZarrGroup {
            folder: folder.to_owned(),
            variables: Vec::new(),
            folders: Vec::new(),
            open: BTreeMap::new(),
        };
        group.walk(folder, "", MOST_LEVELS)?;
        group.tie();
        Ok(group)
    }

    /// Adds the arrays in a folder, and in groups below.
    fn walk(&mut self, folder: &Path, group: &str, levels: usize) -> Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(Error::system(folder, "read"))? {
            let entry = entry.map_err(Error::system(folder, "read"))?;
            // Links are not followed, as they may lead back.
            if entry.file_type().is_ok_and(|of| of.is_dir()) {
                names.extend(entry.file_name().to_str().map(str::to_owned));
            }
        }
        names.sort();
        for short in names {
            let path = folder.join(&short);
            let name = match group {
                "" => short,
                group => format!("{group}/{short}"),
            };
            match node(&path)? {
                Some(Node::Array(array)) => {
                    if self.variables.len() >= MOST_ARRAYS {
                        let what = format!("has more than {MOST_ARRAYS} arrays");
                        return Err(Error::unsupported(&self.folder, what));
                    }
                    self.variables.push(variable(name, &array));
                    self.folders.push(path);
                }
                Some(Node::Group) if levels > 0 => self.walk(&path, &name, levels - 1)?,
                Some(Node::Group) | None => {}
            }
        }
        Ok(())
    }

    /// Says of dimensions which array has their coordinates: that of their name in the same group.
    fn tie(&mut self) {
        let is_scale = |of: &Variable| of.role == Role::Coordinates;
        let scales = self
            .variables
            .iter()
            .enumerate()
            .filter(|(_, of)| is_scale(of));
        let scales: BTreeMap<String, usize> =
            scales.map(|(at, of)| (of.name.clone(), at)).collect();
        for variable in &mut self.variables {
            let front = &variable.name[..variable.name.rfind('/').map_or(0, |at| at + 1)];
            for extent in &mut variable.extents {
                let name = extent.name.as_ref().map(|name| format!("{front}{name}"));
                extent.coordinates = name.and_then(|name| scales.get(&name).copied());
            }
        }
    }
}

fn variable(name: String, of: &Described) -> Variable {
    let extents = of
        .shape
        .iter()
        .zip(&of.names)
        .map(|(&length, name)| Extent {
            length,
            unlimited: false,
            name: name.clone(),
            coordinates: None,
        });
    let short = name.rsplit('/').next().unwrap_or(&name);
    let own = matches!(&of.names[..], [Some(dimension)] if dimension == short);
    let metadata = of.metadata.as_ref();
    let data_type = metadata.map(|of| of.data_type).map_err(Clone::clone);
    let known = data_type.as_ref().ok().copied();
    let mut attributes: Vec<(String, Value)> = Vec::new();
    for (name, value) in of.attributes.as_object().into_iter().flatten() {
        attributes.extend(value_of(name, value, known).map(|value| (name.clone(), value)));
    }
    let fill = metadata.ok().and_then(|of| of.fill);
    let says = attributes.iter().any(|(name, _)| name == "_FillValue");
    if let (Some(fill), true, false) = (fill, of.fill_is_missing, says) {
        attributes.push(("_FillValue".to_owned(), Value::Numbers(vec![fill])));
    }
    Variable {
        role: if own { Role::Coordinates } else { Role::Data },
        data_type,
        half: false,
        extents: extents.collect(),
        chunk: metadata.ok().map(|of| of.chunk.clone()),
        fill,
        attributes,
        name,
    }
}

/// The value of an attribute; `None` of one that is neither numbers nor texts.
fn value_of(name: &str, value: &Json, data_type: Option<DataType>) -> Option<Value> {
    let number = |value: &Json| match value {
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Some(Scalar::Int(whole.into())),
            (None, Some(whole)) => Some(Scalar::Int(whole.into())),
            (None, None) => number.as_f64().map(Scalar::Float),
        },
        _ => None,
    };
    match (value, data_type) {
        // Floats as texts: a word, or their bytes in base 64, as xarray writes them.
        (Json::String(text), Some(of)) if of.is_float() && name == "_FillValue" => {
            let word = fill(value, of).ok().flatten();
            let found = word.or_else(|| of_base64(text, of));
            found.map(|of| Value::Numbers(vec![of]))
        }
        (Json::String(text), _) => Some(Value::Texts(vec![text.clone()])),
        (Json::Array(list), _) => {
            let numbers: Option<Vec<Scalar>> = list.iter().map(number).collect();
            let texts = || {
                let texts = list.iter().map(|of| of.as_str().map(str::to_owned));
                texts.collect::<Option<Vec<String>>>().map(Value::Texts)
            };
            numbers.map(Value::Numbers).or_else(texts)
        }
        (value, _) => number(value).map(|of| Value::Numbers(vec![of])),
    }
}

/// A float whose bytes, the lowest first, are written in base 64.
fn of_base64(text: &str, of: DataType) -> Option<Scalar> {
    let (mut bits, mut held, mut bytes) = (0_u32, 0, Vec::new());
    for letter in text.trim_end_matches('=').bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 255).ok()?);
        }
    }
    let float = match (bytes.len(), of) {
        (8, _) => f64::from_le_bytes(bytes.try_into().ok()?),
        (4, _) => f32::from_le_bytes(bytes.try_into().ok()?).into(),
        _ => return None,
    };
    Some(Scalar::Float(float))
}

impl Container for ZarrGroup {
    fn path(&self) -> &Path {
        &self.folder
    }

    fn variables(&self) -> &[Variable] {
        &self.variables
    }

    fn prepare(&mut self, variable: usize, job: &Job<'_>, kept: u64) -> Result<()> {
        if let (false, Some(folder)) = (
            self.open.contains_key(&variable),
            self.folders.get(variable),
        ) {
            self.open
                .insert(variable, ZarrSource::open(folder, job, kept)?);
        }
        Ok(())
    }

    fn stored(&self, variable: usize) -> Option<Vec<Region>> {
        self.open.get(&variable)?.stored(0).ok().flatten()
    }

    fn read(&mut self, variable: usize, region: &Region, into: &mut [u8]) -> Result<()> {
        match self.open.get_mut(&variable) {
            Some(source) => source.read(0, region, into),
            None => Err(Error::unsupported(
                &self.folder,
                "an array of it is not read",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attributes_are_numbers_or_texts() {
        let of = |name: &str, value: Json| value_of(name, &value, Some(DataType::F64));
        assert_eq!(
            of("scale_factor", json!(0.5)),
            Some(Value::Numbers(vec![Scalar::Float(0.5)]))
        );
        assert_eq!(
            of("units", json!("days")),
            Some(Value::Texts(vec!["days".into()]))
        );
        assert_eq!(
            of("valid_range", json!([1, 2])),
            Some(Value::Numbers(vec![Scalar::Int(1), Scalar::Int(2)]))
        );
        assert_eq!(of("other", json!({ "a": 1 })), None);
        assert_eq!(of("other", json!([1, "a"])), None);
        // -999.5 as a double.
        assert_eq!(
            of("_FillValue", json!("AAAAAAA8j8A=")),
            Some(Value::Numbers(vec![Scalar::Float(-999.5)]))
        );
        let nan = of("_FillValue", json!("NaN"));
        assert!(matches!(nan, Some(Value::Numbers(of)) if of[0].to_f64().is_some_and(f64::is_nan)));
        assert_eq!(of("_FillValue", json!("no")), None);
    }
}
