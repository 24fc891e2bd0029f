//! What a file of NetCDF before HDF5 begins with: dimensions, attributes and variables.

use array::{Buffer, DataType, MAX_DIMENSIONS, Scalar};
use io::Device;

use crate::copy::swap;
use crate::error::{Error, Result};
use crate::values::bytes_mut;
use crate::variables::model::{Extent, Role, Value, Variable};

/// The most bytes of a header that are read.
const MOST: u64 = 64 << 20;

/// The bytes of a header that are read at once.
const PIECE: u64 = 64 << 10;

const DIMENSIONS: u64 = 10;
const VARIABLES: u64 = 11;
const ATTRIBUTES: u64 = 12;

/// Where the values of a variable lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The first value.
    pub at: u64,
    /// Whether its first dimension is that of records.
    pub records: bool,
}

/// What a header says.
#[derive(Debug)]
pub(super) struct ClassicHeader {
    pub variables: Vec<Variable>,
    /// What is said of the file.
    pub attributes: Vec<(String, Value)>,
    pub places: Vec<Place>,
    /// From one record to the next.
    pub record_bytes: u64,
}

/// Fields of a header, the most significant byte first.
struct Fields<'a> {
    device: &'a dyn Device,
    bytes: Vec<u8>,
    at: usize,
    end: u64,
    /// Bytes of a count, 8 in version 5.
    count: usize,
    /// Bytes of a place in the file, 4 in version 1.
    place: usize,
}

impl Fields<'_> {
    fn wrong<T>(&self, what: &str) -> Result<T> {
        Err(Error::malformed(self.device.path(), what))
    }

    fn take(&mut self, count: u64) -> Result<&[u8]> {
        let need = (self.at as u64).saturating_add(count);
        if need > self.end.min(MOST) {
            return self.wrong("ends within its header; it was not written to its end");
        }
        while (self.bytes.len() as u64) < need {
            let from = self.bytes.len() as u64;
            let more = PIECE.max(need - from).min(self.end - from);
            self.bytes.resize((from + more) as usize, 0);
            self.device
                .read_at(from, &mut self.bytes[from as usize..])?;
        }
        let from = self.at;
        self.at = need as usize;
        Ok(&self.bytes[from..self.at])
    }

    fn number(&mut self, bytes: usize) -> Result<u64> {
        let taken = self.take(bytes as u64)?;
        Ok(taken
            .iter()
            .fold(0, |all, &byte| all << 8 | u64::from(byte)))
    }

    fn count(&mut self) -> Result<u64> {
        self.number(self.count)
    }

    /// Takes bytes and what fills them up to a multiple of four.
    fn padded(&mut self, count: u64) -> Result<Vec<u8>> {
        let all = count.checked_next_multiple_of(4).unwrap_or(u64::MAX);
        let taken = self.take(all)?;
        Ok(taken[..count as usize].to_vec())
    }

    fn name(&mut self) -> Result<String> {
        let count = self.count()?;
        let bytes = self.padded(count)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// How many entries a list has.
    fn list(&mut self, of: u64) -> Result<u64> {
        match (self.number(4)?, self.count()?) {
            (0, 0) => Ok(0),
            (tag, count) if tag == of => Ok(count),
            _ => self.wrong("has a list in its header that is none"),
        }
    }

    fn attributes(&mut self) -> Result<Vec<(String, Value)>> {
        let mut found = Vec::new();
        for _ in 0..self.list(ATTRIBUTES)? {
            let name = self.name()?;
            let kind = self.number(4)?;
            let count = self.count()?;
            let width = match data_type(kind) {
                Some(of) => of.width(),
                None if kind == 2 => 1,
                None => return self.wrong("has an attribute of a type that there is not"),
            };
            let bytes = self.padded(count.saturating_mul(width as u64))?;
            let value = match data_type(kind) {
                Some(of) => Value::Numbers(scalars(of, bytes)),
                None => {
                    let text = String::from_utf8_lossy(&bytes);
                    Value::Texts(vec![text.trim_end_matches('\0').trim_end().to_owned()])
                }
            };
            found.push((name, value));
        }
        Ok(found)
    }
}

fn scalars(of: DataType, mut bytes: Vec<u8>) -> Vec<Scalar> {
    swap(of.width(), &mut bytes);
    let mut values = Buffer::zeros(of, bytes.len() / of.width());
    bytes_mut(&mut values).copy_from_slice(&bytes);
    (0..values.len()).map(|at| values.get(at)).collect()
}

/// The type of a number; `None` for texts, and where there is no such type.
fn data_type(kind: u64) -> Option<DataType> {
    Some(match kind {
        1 => DataType::I8,
        3 => DataType::I16,
        4 => DataType::I32,
        5 => DataType::F32,
        6 => DataType::F64,
        7 => DataType::U8,
        8 => DataType::U16,
        9 => DataType::U32,
        10 => DataType::I64,
        11 => DataType::U64,
        _ => return None,
    })
}

/// A dimension: its name and cells; none for that of records.
type Named = (String, u64);

/// Reads the header of a file.
///
/// # Errors
/// [`Error::Malformed`] if it is cut or says what cannot be; [`Error::Io`].
pub(super) fn read(device: &dyn Device) -> Result<ClassicHeader> {
    let mut fields = Fields {
        device,
        bytes: Vec::new(),
        at: 0,
        end: device.len()?,
        count: 4,
        place: 4,
    };
    let version = fields.take(4)?[3];
    match version {
        1 => {}
        2 => fields.place = 8,
        5 => (fields.place, fields.count) = (8, 8),
        _ => {
            let what = format!("is NetCDF of version {version}; versions 1, 2 and 5 are read");
            return Err(Error::unsupported(device.path(), what));
        }
    }
    let said = fields.count()?;
    let mut dimensions: Vec<Named> = Vec::new();
    for _ in 0..fields.list(DIMENSIONS)? {
        dimensions.push((fields.name()?, fields.count()?));
    }
    let attributes = fields.attributes()?;
    let mut raw = Vec::new();
    for _ in 0..fields.list(VARIABLES)? {
        raw.push(variable(&mut fields, &dimensions)?);
    }
    let unknown = if fields.count == 4 {
        0xffff_ffff
    } else {
        u64::MAX
    };
    let found = finished(&mut fields, raw, (said != unknown).then_some(said))?;
    Ok(ClassicHeader {
        attributes,
        ..found
    })
}

/// A variable whose records were not counted yet.
struct Raw {
    variable: Variable,
    place: Place,
    /// Bytes of a value.
    width: u64,
}

fn variable(fields: &mut Fields<'_>, dimensions: &[Named]) -> Result<Raw> {
    let name = fields.name()?;
    let rank = fields.count()?;
    if rank > MAX_DIMENSIONS as u64 {
        return fields.wrong(&format!(
            "'{name}' has {rank} dimensions; there can be {MAX_DIMENSIONS}"
        ));
    }
    let mut extents = Vec::new();
    for at in 0..rank {
        let number = fields.count()?;
        let Some((of, length)) = usize::try_from(number)
            .ok()
            .and_then(|of| dimensions.get(of))
        else {
            return fields.wrong(&format!("'{name}' has a dimension that there is not"));
        };
        if *length == 0 && at > 0 {
            return fields.wrong(&format!("'{name}' has records in an inner dimension"));
        }
        extents.push(Extent {
            length: *length,
            unlimited: *length == 0,
            name: Some(of.clone()),
            coordinates: None,
        });
    }
    let attributes = fields.attributes()?;
    let kind = fields.number(4)?;
    fields.count()?;
    let at = fields.number(fields.place)?;
    let known = data_type(kind);
    if known.is_none() && kind != 2 {
        return fields.wrong(&format!("'{name}' has a type that there is not"));
    }
    let own = extents.len() == 1 && extents[0].name.as_ref() == Some(&name);
    Ok(Raw {
        place: Place {
            at,
            records: extents.first().is_some_and(|of| of.unlimited),
        },
        width: known.map_or(1, |of| of.width() as u64),
        variable: Variable {
            role: if own { Role::Coordinates } else { Role::Data },
            data_type: known.ok_or_else(|| "has texts, which are not read".to_owned()),
            half: false,
            extents,
            chunk: None,
            fill: None,
            attributes,
            name,
        },
    })
}

/// Counts records and ties dimensions to their coordinates.
fn finished(fields: &mut Fields<'_>, raw: Vec<Raw>, said: Option<u64>) -> Result<ClassicHeader> {
    let cells = |of: &Raw| {
        let inner = usize::from(of.place.records);
        let lengths = of.variable.extents[inner..].iter();
        lengths
            .map(|of| of.length)
            .try_fold(of.width, u64::checked_mul)
    };
    let of_records: Vec<&Raw> = raw.iter().filter(|of| of.place.records).collect();
    let alone = of_records.len() == 1;
    let mut record_bytes = 0u64;
    for of in &of_records {
        let bytes = cells(of).and_then(|bytes| {
            // The only variable is not filled up.
            if alone {
                Some(bytes)
            } else {
                bytes.checked_next_multiple_of(4)
            }
        });
        match bytes.and_then(|bytes| record_bytes.checked_add(bytes)) {
            Some(all) => record_bytes = all,
            None => return fields.wrong("has records that are too long"),
        }
    }
    let first = of_records
        .iter()
        .map(|of| of.place.at)
        .min()
        .unwrap_or(fields.end);
    let fitting = fields
        .end
        .saturating_sub(first)
        .checked_div(record_bytes)
        .unwrap_or(0);
    let records = said.unwrap_or(fitting);
    for of in &raw {
        let own = cells(of).unwrap_or(u64::MAX);
        let before = match of.place.records {
            true if records == 0 => continue,
            true => record_bytes.saturating_mul(records - 1),
            false => 0,
        };
        let end = of.place.at.saturating_add(before).saturating_add(own);
        if end > fields.end {
            let (name, has) = (&of.variable.name, fields.end);
            return fields.wrong(&format!(
                "has {has} bytes, and the values of '{name}' end at {end}; it was not written to its end"
            ));
        }
    }
    let places = raw.iter().map(|of| of.place).collect();
    let variables = raw.into_iter().map(|of| of.variable).collect();
    Ok(ClassicHeader {
        variables: tied(variables, records),
        attributes: Vec::new(),
        places,
        record_bytes,
    })
}

/// The variables with their records counted, and each dimension tied to the variable that is called like it.
fn tied(mut variables: Vec<Variable>, records: u64) -> Vec<Variable> {
    let coordinates: Vec<(String, usize)> = variables
        .iter()
        .enumerate()
        .filter(|(_, of)| of.role == Role::Coordinates)
        .map(|(at, of)| (of.name.clone(), at))
        .collect();
    for variable in &mut variables {
        for extent in &mut variable.extents {
            if extent.unlimited {
                extent.length = records;
            }
            let found = coordinates
                .iter()
                .find(|(name, _)| extent.name.as_ref() == Some(name));
            extent.coordinates = found.map(|(_, at)| *at);
        }
        // All is written; this is what cells have that come later.
        variable.fill = variable.numbers("_FillValue").first().copied();
    }
    variables
}
