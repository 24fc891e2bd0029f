//! Writing a Zarr array.

use std::fs;
use std::io::Write;
use std::path::Path;

use array::{Buffer, DataType, Dimension, MetadataValue, Region, Scalar, Schema};
use serde_json::{Value, json};

use crate::aside::{Aside, sync_folder};
use crate::axis::{AT_A_TIME, value_type, values};
use crate::copy::copy_common;
use crate::error::{Error, Result};
use crate::options::Packing;
use crate::target::Target;
use crate::zarr::codec::pack;
use crate::zarr::metadata::{Keys, fill_json};
use crate::zarr::{attributes, v2, v3};

/// The versions of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V2,
    V3,
}

/// An attribute that becomes an array.
#[derive(Debug, Clone)]
pub(crate) struct ZarrAttribute<'a> {
    pub name: &'a str,
    pub data_type: DataType,
    /// What cells have that are not written.
    pub fill: Scalar,
    /// What stands for cells without a value, if there may be some.
    pub missing: Option<Scalar>,
}

/// An array or a group of some that is being written: regions are chunks.
#[derive(Debug)]
pub(crate) struct ZarrTarget {
    aside: Aside,
    version: Version,
    packing: Packing,
    arrays: Vec<Written>,
    written: u64,
}

/// An array that is being written.
#[derive(Debug)]
struct Written {
    /// What stands before the names of its files.
    prefix: String,
    data_type: DataType,
    chunk: Vec<u64>,
    fill: Vec<u8>,
    /// Whether chunks that have nothing but the fill value are left out.
    sparse: bool,
    keys: Keys,
}

impl ZarrTarget {
    /// Begins the array of an attribute, with its fill value for cells that are not written.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::System`].
    pub fn create(
        path: &Path,
        schema: &Schema,
        of: &ZarrAttribute<'_>,
        packing: Packing,
        version: Version,
    ) -> Result<ZarrTarget> {
        let mut target = ZarrTarget::begin(path, packing, version)?;
        let names: Vec<&str> = schema.dimensions().iter().map(|of| of.name()).collect();
        let (shape, chunk) = (schema.shape(), chunk_of(schema));
        let lengths = (&shape[..], &chunk[..]);
        let mut described = target.described(of.data_type, lengths, (of.fill, packing), &names);
        // There is one place for what is said of the attribute and of the array.
        let metadata = schema.metadata();
        for entries in [metadata.of(Some(of.name)), metadata.of(None)] {
            say(entries, &mut described);
        }
        let values = (of.data_type, of.fill);
        target.add("", values, lengths.1, described, true)?;
        Ok(target)
    }

    /// Begins a group, as xarray reads it: an array for each attribute, and one for each dimension that has coordinates.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::System`]; [`Error::Export`] if coordinates are no doubles, or two arrays have one name.
    pub fn create_group(
        path: &Path,
        (array, schema): (&str, &Schema),
        attributes: &[ZarrAttribute<'_>],
        packing: Packing,
        version: Version,
    ) -> Result<ZarrTarget> {
        let wrong = |what: String| Error::Export {
            array: array.to_owned(),
            what,
        };
        let names: Vec<&str> = schema.dimensions().iter().map(|of| of.name()).collect();
        if let Some(of) = attributes.iter().find(|of| names.contains(&of.name)) {
            let name = of.name;
            return Err(wrong(format!(
                "has an attribute and a dimension '{name}', which a group of Zarr cannot have; export it without --group"
            )));
        }
        let all = attributes
            .iter()
            .map(|of| of.name)
            .chain(names.iter().copied());
        // They become names of folders.
        let mut odd = all.filter(|name| name.starts_with('.') || name.contains(['/', '\\']));
        if let Some(name) = odd.next() {
            return Err(wrong(format!("'{name}' is no name that a folder can have")));
        }
        let mut scales = Vec::new();
        for dimension in schema.dimensions() {
            let said = schema.metadata().of(Some(dimension.name()));
            if let Some(of) = value_type(dimension, said, true).map_err(wrong)? {
                scales.push((dimension, of));
            }
        }
        let mut target = ZarrTarget::begin(path, packing, version)?;
        target.group(schema.metadata().of(None))?;
        let (shape, chunk) = (schema.shape(), chunk_of(schema));
        let lengths = (&shape[..], &chunk[..]);
        for of in attributes {
            let fill = of.missing.unwrap_or(of.fill);
            let (mut array, said) =
                target.described(of.data_type, lengths, (fill, packing), &names);
            // In version 2 readers take the fill value for a missing one, in version 3 they are told.
            match (version, of.missing) {
                (Version::V2, None) => array["fill_value"] = Value::Null,
                (Version::V3, Some(missing)) => {
                    array["attributes"] =
                        json!({ "_FillValue": missing_json(missing, of.data_type) });
                }
                _ => {}
            }
            let sparse = version == Version::V3 || of.missing.is_some();
            let values = (of.data_type, fill);
            let mut described = (array, said);
            say(schema.metadata().of(Some(of.name)), &mut described);
            target.add(of.name, values, lengths.1, described, sparse)?;
        }
        for (dimension, of) in scales {
            let entries = schema.metadata().of(Some(dimension.name()));
            target.scale(dimension, of, entries)?;
        }
        Ok(target)
    }

    fn begin(path: &Path, packing: Packing, version: Version) -> Result<ZarrTarget> {
        let mut aside = Aside::new(path)?;
        fs::create_dir(aside.path()).map_err(Error::system(path, "make the folder"))?;
        aside.made();
        Ok(ZarrTarget {
            aside,
            version,
            packing,
            arrays: Vec::new(),
            written: 0,
        })
    }

    /// Writes the metadata of the group, of which this is said.
    fn group(&mut self, entries: &[(String, MetadataValue)]) -> Result<()> {
        let mut attributes = json!({});
        attributes::add(entries, &mut attributes);
        match self.version {
            Version::V2 => {
                self.json(".zgroup", &json!({ "zarr_format": 2 }))?;
                if entries.is_empty() {
                    return Ok(());
                }
                self.json(".zattrs", &attributes)
            }
            Version::V3 => {
                let group =
                    json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
                self.json("zarr.json", &group)
            }
        }
    }

    /// The metadata of an array, and in version 2 its attributes.
    fn described(
        &self,
        data_type: DataType,
        lengths: (&[u64], &[u64]),
        (fill, packing): (Scalar, Packing),
        names: &[&str],
    ) -> (Value, Option<Value>) {
        match self.version {
            Version::V2 => {
                let (array, attributes) = v2::encode(data_type, lengths, fill, packing, names);
                (array, Some(attributes))
            }
            Version::V3 => (v3::encode(data_type, lengths, fill, packing, names), None),
        }
    }

    /// Writes the metadata of an array in the folder `name`, whose chunks are written next.
    fn add(
        &mut self,
        name: &str,
        (data_type, fill): (DataType, Scalar),
        chunk: &[u64],
        (array, attributes): (Value, Option<Value>),
        sparse: bool,
    ) -> Result<()> {
        let prefix = match name {
            "" => String::new(),
            name => format!("{name}/"),
        };
        match attributes {
            Some(attributes) => {
                self.json(&format!("{prefix}.zarray"), &array)?;
                self.json(&format!("{prefix}.zattrs"), &attributes)?;
            }
            None => self.json(&format!("{prefix}zarr.json"), &array)?,
        }
        let (start, separator) = match self.version {
            Version::V2 => (None, '.'),
            Version::V3 => (Some("c"), '/'),
        };
        self.arrays.push(Written {
            prefix,
            data_type,
            chunk: chunk.to_vec(),
            fill: Buffer::filled(data_type, 1, fill).bytes().to_vec(),
            sparse,
            keys: Keys {
                prefix: start,
                separator,
            },
        });
        Ok(())
    }

    /// Writes the coordinates of a dimension as an array of its name, of which this is said.
    fn scale(
        &mut self,
        dimension: &Dimension,
        of: DataType,
        entries: &[(String, MetadataValue)],
    ) -> Result<()> {
        let length = dimension.length();
        let (shape, chunk) = ([length], [length.clamp(1, AT_A_TIME)]);
        let names = [dimension.name()];
        let zero = Scalar::Int(0).cast(of).unwrap_or(Scalar::Int(0));
        let lengths = (&shape[..], &chunk[..]);
        let (mut array, said) = self.described(of, lengths, (zero, Packing::None), &names);
        if self.version == Version::V2 {
            array["fill_value"] = Value::Null;
        }
        let mut described = (array, said);
        say(entries, &mut described);
        self.add(dimension.name(), (of, zero), &chunk, described, false)?;
        let Some(written) = self.arrays.pop() else {
            return Ok(());
        };
        for number in 0..length.div_ceil(chunk[0]) {
            let start = number * chunk[0];
            let mut bytes = values(dimension, of, start..length.min(start + chunk[0]));
            // The last chunk has all its cells, too.
            bytes.resize(chunk[0] as usize * of.width(), 0);
            let name = format!("{}{}", written.prefix, written.keys.name(&[number]));
            self.file(&name, &bytes)?;
        }
        Ok(())
    }

    fn json(&mut self, name: &str, value: &Value) -> Result<()> {
        self.file(name, format!("{value:#}\n").as_bytes())
    }

    /// Writes a file, and the folders that it lies in.
    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.aside.path().join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::system(folder, "make the folder"))?;
        }
        let written = fs::File::create_new(&path).and_then(|mut file| file.write_all(bytes));
        written.map_err(Error::system(&path, "write"))?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// Adds what is said of an array to its attributes, which version 3 has among its metadata.
fn say(entries: &[(String, MetadataValue)], (array, said): &mut (Value, Option<Value>)) {
    match said {
        Some(object) => attributes::add(entries, object),
        None => attributes::add(entries, &mut array["attributes"]),
    }
}

/// The cells of a chunk along each dimension.
fn chunk_of(schema: &Schema) -> Vec<u64> {
    let dimensions = schema.dimensions().iter();
    dimensions.map(|of| of.chunk_length()).collect()
}

/// The value that stands for a missing one, as xarray has it in attributes: floats are their bytes in base 64.
fn missing_json(missing: Scalar, of: DataType) -> Value {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if !of.is_float() {
        return fill_json(missing);
    }
    let bytes = Buffer::filled(of, 1, missing).bytes().to_vec();
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            if at > three.len() {
                text.push('=');
            } else {
                let six = (bits >> (18 - 6 * at)) & 63;
                text.push(char::from(LETTERS[six as usize]));
            }
        }
    }
    text.into()
}

impl Target for ZarrTarget {
    fn write(&mut self, field: usize, region: &Region, values: &[u8]) -> Result<()> {
        let of = &self.arrays[field];
        let width = of.data_type.width();
        if of.sparse && values.chunks_exact(width).all(|value| value == of.fill) {
            return Ok(());
        }
        let at: Vec<u64> = region
            .ranges()
            .iter()
            .zip(&of.chunk)
            .map(|(range, by)| range.0 / by)
            .collect();
        let whole = Region::new(
            at.iter()
                .zip(&of.chunk)
                .map(|(at, by)| (at * by, (at + 1) * by)),
        );
        let name = format!("{}{}", of.prefix, of.keys.name(&at));
        // A chunk at the edge has all its cells, too.
        let padded;
        let bytes = if whole == *region {
            values
        } else {
            let cells = whole.cells("a chunk")?;
            let mut all = of.fill.repeat(cells);
            copy_common(width, (region, values), (&whole, &mut all));
            padded = all;
            &padded
        };
        let packed = pack(bytes, self.packing);
        let packed = packed.map_err(Error::system(self.aside.path(), "compress a chunk of"))?;
        self.file(&name, &packed)
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        sync_all(self.aside.path())?;
        let written = self.written;
        self.aside.publish()?;
        Ok(written)
    }
}

/// Makes a folder and all in it survive a loss of power. At the end rather than file by file: the system has begun to write
/// them meanwhile.
fn sync_all(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(Error::system(folder, "read"))? {
        let path = entry.map_err(Error::system(folder, "read"))?.path();
        if path.is_dir() {
            sync_all(&path)?;
        } else {
            let synced = fs::File::open(&path).and_then(|file| file.sync_all());
            synced.map_err(Error::system(&path, "sync"))?;
        }
    }
    sync_folder(folder)
}
