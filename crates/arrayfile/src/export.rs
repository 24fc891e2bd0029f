//! Arrays into files.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{Array, Attribute, DataType, Layout, Region, Scalar, Schema};
use store::Snapshot;

use crate::classic::{self, ClassicTarget};
use crate::copy::boxes;
use crate::error::{Error, Result};
use crate::hdf5::{Flavour, HdfTarget};
use crate::job::Job;
use crate::npy::{NpyTarget, NpzTarget};
use crate::options::{ExportOptions, Format, Packing};
use crate::target::Target;
use crate::zarr::{Version, ZarrAttribute, ZarrTarget};

/// The most bytes of a region that is read in one go for a file without chunks.
const SLAB: u64 = 128 << 20;

/// What an export did.
#[derive(Debug, Clone)]
pub struct Exported {
    /// What was written.
    pub format: Format,
    /// Bytes of the values of all cells, in memory.
    pub bytes: u64,
    /// Bytes of the file, or of the files of a folder.
    pub written: u64,
    /// How long it took.
    pub time: Duration,
}

/// Writes an attribute of the array `name` of a snapshot into a file or folder that is not there yet, chunk by chunk. The
/// file appears when it is complete.
///
/// A Zarr array has the array's chunks, fill value and names of dimensions; coordinates are not written: what is read
/// back has whole numbers from 0. An HDF5 or NetCDF file has names and coordinates of dimensions, and all attributes
/// unless one is chosen; what stands for nulls in it is no other value's. Those of HDF5 have the array's chunks, and
/// dimensions without a limit where it grows.
///
/// # Errors
/// [`Error::Array`] if there is no such array; [`Error::Exists`]; [`Error::Export`] if the file cannot have what the array
/// has: several attributes of which none is chosen, nulls; [`Error::Options`], [`Error::Io`], [`Error::System`],
/// [`Error::Memory`], [`Error::Interrupted`].
pub async fn export(
    snapshot: &Snapshot,
    name: &str,
    path: &Path,
    options: &ExportOptions,
    mut job: Job<'_>,
) -> Result<Exported> {
    let begun = Instant::now();
    Format::refuse_compressed(path)?;
    let format = match options.format {
        Some(format) => format,
        None => Format::of_name(path)?,
    };
    let array = Array::open(snapshot, name)?;
    if options.group && !matches!(format, Format::Zarr2 | Format::Zarr3) {
        return Err(Error::Options {
            what: format!("groups are of Zarr, and this is {format}; leave --group out"),
        });
    }
    let fields = fields(&array, format, options)?;
    let mut target = target((format, path), &array, &fields, options)?;
    let shape = array.schema().shape();
    let chunk = array
        .schema()
        .dimensions()
        .iter()
        .map(|of| of.chunk_length());
    let chunk: Vec<u64> = chunk.collect();
    let widths = fields.iter().map(|of| of.width);
    let total = array.schema().cells().saturating_mul(widths.clone().sum());
    let widest = widths.max().unwrap_or(1);
    let most = if matches!(format, Format::Npy | Format::Npz | Format::NetCdf3) {
        SLAB.min(job.free() / 4)
    } else {
        0
    };
    let lengths = slab(&shape, &chunk, widest, most);
    let copies = match format {
        // Read, made whole at an edge, brought in order, packed.
        Format::Hdf5 | Format::NetCdf4 => 5,
        Format::NetCdf3 => 3,
        _ => 2,
    };
    let needed = lengths
        .iter()
        .product::<u64>()
        .saturating_mul(widest * copies);
    let _reserved = job.reserve("a chunk of the array", needed)?;
    let mut done = 0;
    let mut values = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        for region in boxes(&shape, &lengths) {
            job.at(done, total)?;
            values.resize(region.cells("a chunk")? * field.width as usize, 0);
            read(&array, &region, field, &mut values).await?;
            target.write(at, &region, &values)?;
            done += values.len() as u64;
        }
    }
    job.at(total, total)?;
    Ok(Exported {
        format,
        bytes: total,
        written: target.finish()?,
        time: begun.elapsed(),
    })
}

/// An attribute that is exported.
#[derive(Debug, Clone, Copy)]
struct Exporting {
    /// Its number in the array.
    number: usize,
    /// Bytes of a value.
    width: u64,
    /// What is written in place of nulls and of cells that do not exist.
    stand_in: Option<Scalar>,
    /// Whether no other cell may have that value.
    alone: bool,
}

/// The attributes that are exported: the one that was chosen, or the only one; a file of variables has all.
fn fields(array: &Arc<Array>, format: Format, options: &ExportOptions) -> Result<Vec<Exporting>> {
    let schema = array.schema();
    let variables = format.has_variables() || options.group;
    let all = variables || format == Format::Npz;
    let numbers = if all && options.attribute.is_none() {
        (0..schema.attributes().len()).collect()
    } else {
        vec![attribute(array, options)?.0]
    };
    let one = |number: usize| {
        let attribute = &schema.attributes()[number];
        let lacks = attribute.is_nullable() || schema.layout() != Layout::Dense;
        let stand_in = match options.null {
            None if variables => lacks.then(|| classic::usual_fill(attribute.data_type())),
            _ if variables && !lacks => None,
            _ => stand_in(attribute, options)?,
        };
        Ok(Exporting {
            number,
            width: attribute.data_type().width() as u64,
            stand_in,
            alone: variables,
        })
    };
    numbers.into_iter().map(one).collect()
}

/// What is written in place of nulls and of cells that do not exist.
fn stand_in(attribute: &Attribute, options: &ExportOptions) -> Result<Option<Scalar>> {
    let data_type = attribute.data_type();
    match options.null.map(|null| (null, null.cast(data_type))) {
        None if data_type.is_float() => Ok(Some(Scalar::Float(f64::NAN))),
        None => Ok(None),
        Some((_, Some(fitting))) if !fitting.is_null() => Ok(Some(fitting)),
        Some((null, _)) => Err(Error::Options {
            what: format!(
                "{null} cannot stand for nulls: attribute '{}' is {data_type}",
                attribute.name()
            ),
        }),
    }
}

/// Begins the file.
fn target(
    (format, path): (Format, &Path),
    array: &Array,
    fields: &[Exporting],
    options: &ExportOptions,
) -> Result<Box<dyn Target>> {
    let packing = options.packing;
    let schema = array.schema();
    let data_type = schema.attributes()[fields[0].number].data_type();
    let version = match format {
        Format::Npy | Format::Npz if !matches!(packing, Packing::Usual | Packing::None) => {
            return Err(Error::Options {
                what: format!("{format} is written as it is, never compressed; take zarr"),
            });
        }
        Format::Npz => {
            let members: Vec<_> = fields
                .iter()
                .map(|of| &schema.attributes()[of.number])
                .map(|of| (of.name(), of.data_type()))
                .collect();
            let target = NpzTarget::create(path, &members, &schema.shape())?;
            return Ok(Box::new(target));
        }
        Format::Npy => {
            return Ok(Box::new(NpyTarget::create(
                path,
                data_type,
                &schema.shape(),
            )?));
        }
        Format::Hdf5 | Format::NetCdf4 => {
            let fields: Vec<_> = fields.iter().map(|of| (of.number, of.stand_in)).collect();
            let flavour = match format {
                Format::Hdf5 => Flavour::Hdf5,
                _ => Flavour::NetCdf,
            };
            let target = HdfTarget::create(path, array, &fields, flavour, packing)?;
            return Ok(Box::new(target));
        }
        Format::NetCdf3 if packing != Packing::Usual && packing != Packing::None => {
            return Err(Error::Options {
                what: "a NetCDF-3 file is never compressed; take netcdf (NetCDF-4) or zarr"
                    .to_owned(),
            });
        }
        Format::NetCdf3 => {
            let fields: Vec<_> = fields.iter().map(|of| (of.number, of.stand_in)).collect();
            return Ok(Box::new(ClassicTarget::create(path, array, &fields)?));
        }
        Format::Zarr2 => Version::V2,
        Format::Zarr3 => Version::V3,
    };
    let of = |field: &Exporting| zarr_attribute(schema, field);
    let target = if options.group {
        let all: Vec<_> = fields.iter().map(of).collect();
        ZarrTarget::create_group(path, (array.name(), schema), &all, packing, version)?
    } else {
        ZarrTarget::create(path, schema, &of(&fields[0]), packing, version)?
    };
    Ok(Box::new(target))
}

/// An attribute as an array of Zarr.
fn zarr_attribute<'a>(schema: &'a Schema, field: &Exporting) -> ZarrAttribute<'a> {
    let attribute = &schema.attributes()[field.number];
    let data_type = match (attribute.data_type(), field.stand_in) {
        // Truth values of which some are missing are numbers.
        (DataType::Bool, Some(Scalar::Int(_))) => DataType::I8,
        (of, _) => of,
    };
    let fill = match attribute.fill_value() {
        fill if !fill.is_null() && schema.layout() == Layout::Dense => fill,
        _ => field
            .stand_in
            .or(Scalar::Int(0).cast(data_type))
            .unwrap_or(Scalar::Int(0)),
    };
    ZarrAttribute {
        name: attribute.name(),
        data_type,
        fill,
        missing: field.stand_in,
    }
}

/// The attribute that is exported, and its number.
fn attribute<'a>(array: &'a Arc<Array>, options: &ExportOptions) -> Result<(usize, &'a Attribute)> {
    let attributes = array.schema().attributes();
    let number = match &options.attribute {
        Some(name) => array.schema().attribute(name, "export")?,
        None if attributes.len() == 1 => 0,
        None => {
            let names: Vec<_> = attributes
                .iter()
                .map(|of| format!("'{}'", of.name()))
                .collect();
            return Err(Error::Export {
                array: array.name().to_owned(),
                what: format!(
                    "has several attributes, a file has one: choose one of {}",
                    names.join(", ")
                ),
            });
        }
    };
    Ok((number, &attributes[number]))
}

/// The lengths of what is read in one go: whole chunks, and as many trailing dimensions in full as `most` bytes allow.
fn slab(shape: &[u64], chunk: &[u64], width: u64, most: u64) -> Vec<u64> {
    let lengths = |full: usize| -> Vec<u64> {
        let all = shape.iter().zip(chunk).enumerate();
        all.map(|(at, (&length, &chunk))| {
            if at >= full {
                length.max(1)
            } else {
                chunk.min(length.max(1))
            }
        })
        .collect()
    };
    let fits = |lengths: &Vec<u64>| {
        let bytes = lengths
            .iter()
            .try_fold(width, |all, &of| all.checked_mul(of));
        bytes.is_some_and(|bytes| bytes <= most)
    };
    let rank = shape.len();
    (1..rank)
        .map(lengths)
        .find(fits)
        .unwrap_or_else(|| lengths(rank))
}

/// Reads the values of a region, with something in place of nulls and of cells that do not exist.
async fn read(array: &Array, region: &Region, field: &Exporting, into: &mut [u8]) -> Result<()> {
    let schema = array.schema();
    let number = field.number;
    let attribute = &schema.attributes()[number];
    if schema.layout() == Layout::Dense && !attribute.is_nullable() {
        return Ok(array.read_into(region, number, into).await?);
    }
    let wanted: Vec<bool> = (0..schema.attributes().len())
        .map(|at| at == number)
        .collect();
    let block = array.read(region, &wanted).await?;
    let Some(column) = block.column(number) else {
        return Ok(());
    };
    into.copy_from_slice(column.values().bytes());
    let missing =
        |cell: usize| !block.exists(cell) || column.valid().is_some_and(|of| of[cell] == 0);
    let data_type = attribute.data_type();
    let stands = |of| array::Buffer::filled(bytes_type(data_type), 1, of);
    let stand_in = field.stand_in.map(stands);
    if let (true, Some(of)) = (field.alone, field.stand_in) {
        let twice = |cell| !missing(cell) && column.get(cell) == of;
        if (0..block.cells()).any(twice) {
            return Err(Error::Export {
                array: array.name().to_owned(),
                what: format!(
                    "attribute '{}' has the value {of}, which is to stand for cells without a value: say another one with \
                     --null",
                    attribute.name()
                ),
            });
        }
    }
    let width = data_type.width();
    for cell in (0..block.cells()).filter(|&cell| missing(cell)) {
        let Some(stand_in) = &stand_in else {
            return Err(Error::Export {
                array: array.name().to_owned(),
                what: format!(
                    "attribute '{}' has cells without a value, which {data_type} in a file cannot have: say what to \
                     write in their place",
                    attribute.name()
                ),
            });
        };
        into[cell * width..][..width].copy_from_slice(stand_in.bytes());
    }
    Ok(())
}

/// The type that a stand-in is written in: of a bool it is a byte that is neither.
fn bytes_type(of: DataType) -> DataType {
    if of == DataType::Bool {
        DataType::I8
    } else {
        of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_dimensions_are_read_in_full_as_fit() {
        let of = |most| slab(&[100, 50, 10], &[10, 10, 10], 8, most);
        assert_eq!(of(0), [10, 10, 10]);
        assert_eq!(of(40_000), [10, 50, 10]);
        assert_eq!(
            of(u64::MAX),
            [10, 50, 10],
            "the first is the one that is walked along"
        );
        assert_eq!(slab(&[7], &[3], 8, u64::MAX), [3]);
        let covered: Vec<_> = boxes(&[3, 2], &[2, 2]).collect();
        assert_eq!(
            covered,
            [Region::new([(0, 2), (0, 2)]), Region::new([(2, 3), (0, 2)])]
        );
        assert_eq!(boxes(&[0, 2], &[1, 1]).count(), 0);
    }
}
