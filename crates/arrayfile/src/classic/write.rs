//! Writing NetCDF files: version 2 where it has the types and lengths, and 5 otherwise.

use std::path::Path;

use array::{Array, DataType, Dimension, Entries, MetadataValue, Region, Scalar};
use io::{Device, File};

use crate::aside::Aside;
use crate::axis;
use crate::cf;
use crate::copy::{each_run, swap};
use crate::error::{Error, Result};
use crate::target::Target;

/// From this length on a variable needs version 5.
const LONG: u64 = 1 << 31;

/// A variable that is written.
#[derive(Debug)]
struct Variable {
    name: String,
    data_type: DataType,
    /// The numbers of its dimensions.
    dimensions: Vec<usize>,
    /// What stands in place of cells without a value.
    fill: Option<Scalar>,
    bytes: u64,
    /// What is said of its values.
    metadata: Entries,
}

/// A NetCDF file that is being written: a variable for each attribute, and one for each dimension that has coordinates.
#[derive(Debug)]
pub(crate) struct ClassicTarget {
    file: File,
    aside: Aside,
    shape: Vec<u64>,
    /// For each attribute, where its values begin, and its type.
    places: Vec<(u64, DataType)>,
}

/// What stands in place of cells without a value if nothing is said: what the NetCDF libraries have for it, and NaN.
pub(crate) fn usual_fill(of: DataType) -> Scalar {
    match of {
        DataType::Bool | DataType::I8 => Scalar::Int(-127),
        DataType::I16 => Scalar::Int(-32_767),
        DataType::I32 => Scalar::Int(-2_147_483_647),
        DataType::I64 => Scalar::Int(-9_223_372_036_854_775_806),
        DataType::U8 => Scalar::Int(255),
        DataType::U16 => Scalar::Int(65_535),
        DataType::U32 => Scalar::Int(4_294_967_295),
        DataType::U64 => Scalar::Int(18_446_744_073_709_551_614),
        DataType::F32 | DataType::F64 => Scalar::Float(f64::NAN),
    }
}

impl ClassicTarget {
    /// Begins the file for attributes of an array, each with what stands for cells without a value, and writes the
    /// coordinates.
    ///
    /// # Errors
    /// [`Error::Export`] for an array without cells, a name that NetCDF has not, or a coordinate that is no double;
    /// [`Error::Exists`], [`Error::Io`].
    pub fn create(
        path: &Path,
        array: &Array,
        attributes: &[(usize, Option<Scalar>)],
    ) -> Result<ClassicTarget> {
        let schema = array.schema();
        let refused = |what: String| Error::Export {
            array: array.name().to_owned(),
            what,
        };
        let shape = schema.shape();
        if shape.contains(&0) {
            let what =
                "has no cells, and a length of 0 says something else in NetCDF; export it as Zarr";
            return Err(refused(what.to_owned()));
        }
        let dimensions = schema.dimensions();
        let mut variables = Vec::new();
        for (at, dimension) in dimensions.iter().enumerate() {
            let said = schema.metadata().of(Some(dimension.name()));
            if let Some(data_type) = axis::value_type(dimension, said, false).map_err(refused)? {
                variables.push(Variable {
                    metadata: said.to_vec(),
                    name: dimension.name().to_owned(),
                    data_type,
                    dimensions: vec![at],
                    fill: None,
                    bytes: dimension.length() * data_type.width() as u64,
                });
            }
        }
        let coordinates = variables.len();
        let cells: u64 = shape.iter().product();
        for &(number, fill) in attributes {
            let attribute = &schema.attributes()[number];
            variables.push(Variable {
                metadata: schema.metadata().of(Some(attribute.name())).to_vec(),
                name: attribute.name().to_owned(),
                data_type: attribute.data_type(),
                dimensions: (0..shape.len()).collect(),
                fill,
                bytes: cells * attribute.data_type().width() as u64,
            });
        }
        let names = variables.iter().map(|of| of.name.as_str());
        for name in names.chain(dimensions.iter().map(Dimension::name)) {
            if name.contains('/') || name.ends_with(' ') {
                return Err(refused(format!("NetCDF has no name '{name}'")));
            }
        }
        let (header, begins) = header(dimensions, &variables, schema.metadata().of(None));
        let mut aside = Aside::new(path)?;
        let file = File::create(aside.path())?;
        aside.made();
        file.write_at(0, &header)?;
        for (of, &at) in variables[..coordinates].iter().zip(&begins) {
            write_coordinates(&file, &dimensions[of.dimensions[0]], of.data_type, at)?;
        }
        let front = begins[coordinates];
        let last = variables
            .iter()
            .zip(&begins)
            .map(|(of, at)| at + of.bytes.next_multiple_of(4));
        file.allocate(front, last.max().unwrap_or(front) - front)?;
        let places = begins
            .iter()
            .copied()
            .zip(variables.iter().map(|of| of.data_type));
        Ok(ClassicTarget {
            file,
            aside,
            shape,
            places: places.skip(coordinates).collect(),
        })
    }
}

/// Writes the coordinates of a dimension from byte `at` on.
///
/// # Errors
/// A full disk, for one.
fn write_coordinates(file: &File, of: &Dimension, data_type: DataType, at: u64) -> Result<()> {
    let width = data_type.width();
    for start in (0..of.length()).step_by(axis::AT_A_TIME as usize) {
        let end = of.length().min(start + axis::AT_A_TIME);
        let mut bytes = axis::values(of, data_type, start..end);
        swap(width, &mut bytes);
        file.write_at(at + start * width as u64, &bytes)?;
    }
    Ok(())
}

/// The number that stands for a type. Both versions have the first six.
fn type_number(of: DataType) -> u32 {
    match of {
        DataType::Bool | DataType::I8 => 1,
        DataType::I16 => 3,
        DataType::I32 => 4,
        DataType::F32 => 5,
        DataType::F64 => 6,
        DataType::U8 => 7,
        DataType::U16 => 8,
        DataType::U32 => 9,
        DataType::I64 => 10,
        DataType::U64 => 11,
    }
}

/// A header that is put together.
struct Writing {
    bytes: Vec<u8>,
    /// Whether counts have 8 bytes.
    large: bool,
}

impl Writing {
    fn u32(&mut self, number: u32) {
        self.bytes.extend(number.to_be_bytes());
    }

    /// A count, which fits where the version was chosen by it.
    fn count(&mut self, number: u64) {
        if self.large {
            self.bytes.extend(number.to_be_bytes());
        } else {
            self.u32(u32::try_from(number).unwrap_or(u32::MAX));
        }
    }

    /// A name, or other bytes with their count.
    fn counted(&mut self, bytes: &[u8], count: u64) {
        self.count(count);
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.counted(name.as_bytes(), name.len() as u64);
    }

    fn attribute(&mut self, (name, of, count, bytes): &Coded<'_>) {
        self.name(name);
        self.u32(*of);
        self.counted(bytes, *count);
    }

    /// The front of a list.
    fn list(&mut self, tag: u32, count: usize) {
        self.u32(if count == 0 { 0 } else { tag });
        self.count(count as u64);
    }
}

/// An attribute as it stands in a file: its name, the number of its type, how many values it has, and their bytes.
type Coded<'a> = (&'a str, u32, u64, Vec<u8>);

/// What is said of a file, or of a variable whose values have a type, as attributes. They have the types that all versions
/// have, or that of the variable.
fn coded<'a>(entries: &'a [(String, MetadataValue)], of: Option<DataType>) -> Vec<Coded<'a>> {
    let one = |(name, value): &'a (String, MetadataValue)| match value {
        MetadataValue::Numbers(numbers) => {
            let (of, mut bytes) = cf::numbers((name, numbers), of, false)?;
            swap(of.width(), &mut bytes);
            let count = bytes.len() / of.width();
            Some((name.as_str(), type_number(of), count as u64, bytes))
        }
        MetadataValue::Texts(texts) => {
            let bytes = texts.join("\n").into_bytes();
            Some((name.as_str(), 2, bytes.len() as u64, bytes))
        }
    };
    entries.iter().filter_map(one).collect()
}

/// The header of a file, and where each variable begins.
fn header(
    dimensions: &[Dimension],
    variables: &[Variable],
    global: &[(String, MetadataValue)],
) -> (Vec<u8>, Vec<u64>) {
    let large = variables
        .iter()
        .any(|of| type_number(of.data_type) > 6 || of.bytes >= LONG)
        || dimensions.iter().any(|of| of.length() >= LONG);
    // Places have 8 bytes in both versions, so that they do not change how long the header is.
    let mut places = vec![0; variables.len()];
    let front = bytes_of((dimensions, global), variables, &places, large).len() as u64;
    let mut at = front;
    for (place, of) in places.iter_mut().zip(variables) {
        *place = at;
        at += of.bytes.next_multiple_of(4);
    }
    (
        bytes_of((dimensions, global), variables, &places, large),
        places,
    )
}

fn bytes_of(
    (dimensions, global): (&[Dimension], &[(String, MetadataValue)]),
    variables: &[Variable],
    places: &[u64],
    large: bool,
) -> Vec<u8> {
    let mut out = Writing {
        bytes: vec![b'C', b'D', b'F', if large { 5 } else { 2 }],
        large,
    };
    out.count(0);
    out.list(10, dimensions.len());
    for of in dimensions {
        out.name(of.name());
        out.count(of.length());
    }
    let global = coded(global, None);
    out.list(12, global.len());
    global.iter().for_each(|of| out.attribute(of));
    out.list(11, variables.len());
    for (of, place) in variables.iter().zip(places) {
        out.name(&of.name);
        out.count(of.dimensions.len() as u64);
        of.dimensions.iter().for_each(|&at| out.count(at as u64));
        // One with nulls has three values.
        let bool = of.data_type == DataType::Bool && of.fill.is_none();
        let said = coded(&of.metadata, Some(of.data_type));
        let own = usize::from(of.fill.is_some()) + usize::from(bool);
        out.list(12, own + said.len());
        if let Some(fill) = of.fill {
            out.name("_FillValue");
            out.u32(type_number(of.data_type));
            out.counted(&number_bytes(of.data_type, fill), 1);
        }
        if bool {
            // As xarray says it.
            out.name("dtype");
            out.u32(2);
            out.name("bool");
        }
        said.iter().for_each(|of| out.attribute(of));
        out.u32(type_number(of.data_type));
        out.count(of.bytes.next_multiple_of(4));
        out.bytes.extend(place.to_be_bytes());
    }
    out.bytes
}

/// A number as it stands in a file.
fn number_bytes(of: DataType, value: Scalar) -> Vec<u8> {
    let of = if of == DataType::Bool {
        DataType::I8
    } else {
        of
    };
    let mut bytes = array::Buffer::filled(of, 1, value).bytes().to_vec();
    swap(of.width(), &mut bytes);
    bytes
}

impl Target for ClassicTarget {
    fn write(&mut self, field: usize, region: &Region, values: &[u8]) -> Result<()> {
        let (at, data_type) = self.places[field];
        let width = data_type.width();
        let mut values = values.to_vec();
        swap(width, &mut values);
        let mut rest = &values[..];
        each_run(&self.shape, region, &mut |first, cells| {
            let (run, after) = rest.split_at(cells as usize * width);
            rest = after;
            Ok(self.file.write_at(at + first * width as u64, run)?)
        })
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.file.sync()?;
        let bytes = self.file.len()?;
        self.aside.publish()?;
        Ok(bytes)
    }
}
