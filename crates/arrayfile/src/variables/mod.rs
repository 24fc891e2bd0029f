//! Variables of HDF5 and NetCDF files as the attributes and dimensions of an array, by the CF conventions.

mod choose;
mod coordinates;
pub(crate) mod model;

use array::{DataType, Region, Scalar};

use crate::cf;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::source::{Axis, Field, Header, Source};
use crate::variables::choose::{attribute_names, chosen};
use crate::variables::coordinates::coordinates;
use crate::variables::model::{Container, Variable};

/// Variables of the same dimensions, which are read as one array.
struct VariablesSource {
    container: Box<dyn Container>,
    /// Which variable each field is.
    fields: Vec<usize>,
    header: Header,
}

/// The array of a file's variables: of those that `member` names, separated by commas, or of all data variables. `kept`
/// bytes of the job's memory are for chunks that may be needed again.
///
/// # Errors
/// [`Error::Options`] if there are none of that name, or they differ in shape; [`Error::Unsupported`],
/// [`Error::Malformed`], [`Error::Memory`].
pub(crate) fn open(
    mut container: Box<dyn Container>,
    member: Option<&str>,
    (job, kept): (&Job<'_>, u64),
) -> Result<Box<dyn Source>> {
    let fields = chosen(&*container, member)?;
    let share = kept / fields.len() as u64;
    for &field in &fields {
        container.prepare(field, job, share)?;
    }
    let mut notes = Vec::new();
    let axes = axes(&mut *container, fields[0], job, &mut notes)?;
    let variables = container.variables();
    let names = attribute_names(variables, &fields, &axes);
    let fields_of = fields.iter().zip(names);
    let path = container.path();
    let fields_of = fields_of.map(|(&of, name)| field(path, &variables[of], name, &mut notes));
    let fields_of = fields_of.collect::<Result<_>>()?;
    let header = Header {
        chunk: variables[fields[0]].chunk.clone(),
        fields: fields_of,
        axes,
        metadata: cf::kept(container.attributes(), ("the file", false), &mut notes),
        notes,
    };
    Ok(Box::new(VariablesSource {
        container,
        fields,
        header,
    }))
}

/// The dimensions of a variable, with their coordinates.
fn axes(
    container: &mut dyn Container,
    variable: usize,
    job: &Job<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Axis>> {
    let extents = container.variables()[variable].extents.clone();
    let mut axes = Vec::new();
    for extent in extents {
        let (mut found, mut metadata) = (None, array::Entries::new());
        if let Some(of) = extent.coordinates.filter(|&of| of != variable) {
            found = coordinates(container, of, extent.length, job, notes)?;
            // What is said of coordinates that are not those of the dimension is not said of it.
            if found.is_some() {
                metadata = said(&container.variables()[of], notes);
            }
        }
        axes.push(Axis {
            metadata,
            coordinates: found,
            name: extent.name,
            length: extent.length,
            unlimited: extent.unlimited,
        });
    }
    Ok(axes)
}

/// What is said of a variable, without what only its file needs.
fn said(variable: &Variable, notes: &mut Vec<String>) -> array::Entries {
    let unpacked = ["scale_factor", "add_offset"];
    let packed = unpacked.iter().any(|of| !variable.numbers(of).is_empty())
        || variable.text("_Unsigned") == Some("true");
    let of = format!("'{}'", variable.name);
    cf::kept(&variable.attributes, (&of, packed), notes)
}

/// How a variable's values become those of an attribute.
fn field(
    path: &std::path::Path,
    variable: &Variable,
    name: String,
    notes: &mut Vec<String>,
) -> Result<Field> {
    let name_of = &variable.name;
    let data_type = variable.data_type.clone();
    let mut data_type =
        data_type.map_err(|what| Error::unsupported(path, format!("'{name_of}' {what}")))?;
    let mut missing = variable.numbers("_FillValue").to_vec();
    missing.extend_from_slice(variable.numbers("missing_value"));
    let mut fill = variable.fill;
    if variable.text("_Unsigned") == Some("true") {
        let unsigned = unsigned(data_type);
        let turned = |of: Scalar| match of {
            Scalar::Int(value) if value < 0 => Scalar::Int(value + (1 << (8 * data_type.width()))),
            of => of,
        };
        missing.iter_mut().for_each(|of| *of = turned(*of));
        fill = fill.map(turned);
        data_type = unsigned;
    }
    // One that the type does not have says nothing.
    missing.retain(|of| of.cast(data_type).is_some());
    // So xarray says it, and so it is exported.
    if variable.text("dtype") == Some("bool") && data_type.width() == 1 && missing.is_empty() {
        data_type = DataType::Bool;
    }
    let number = |name: &str| variable.numbers(name).first().and_then(|of| of.to_f64());
    let scale = match (number("scale_factor"), number("add_offset")) {
        (None, None) => None,
        (scale, offset) => Some((scale.unwrap_or(1.0), offset.unwrap_or(0.0))),
    };
    Ok(Field {
        name: Some(name),
        data_type,
        half: variable.half,
        fill,
        missing,
        scale: scale.filter(|_| data_type != DataType::Bool),
        metadata: said(variable, notes),
        coded: false,
    })
}

/// The type without a sign that is as wide.
fn unsigned(of: DataType) -> DataType {
    match of {
        DataType::I8 => DataType::U8,
        DataType::I16 => DataType::U16,
        DataType::I32 => DataType::U32,
        DataType::I64 => DataType::U64,
        of => of,
    }
}

impl Source for VariablesSource {
    fn header(&self) -> &Header {
        &self.header
    }

    fn stored(&self, field: usize) -> Result<Option<Vec<Region>>> {
        Ok(self.container.stored(self.fields[field]))
    }

    fn read(&mut self, field: usize, region: &Region, into: &mut [u8]) -> Result<()> {
        self.container.read(self.fields[field], region, into)?;
        if self.header.fields[field].data_type == DataType::Bool {
            into.iter_mut().for_each(|of| *of = u8::from(*of != 0));
        }
        Ok(())
    }
}
