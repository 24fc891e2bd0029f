//! A group of Zarr as variables: its arrays, those of groups within it, and what their attributes say of them. So xarray
//! writes data sets: a dimension has the coordinates of the array that has its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use array::Region;
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::job::Job;
use crate::source::Source;
use crate::variables::model::{Container, Extent, Role, Value, Variable};
use crate::zarr::attributes::all;
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
    /// What is said of the group.
    attributes: Vec<(String, Value)>,
    /// Those that were made ready.
    open: BTreeMap<usize, ZarrSource>,
}

impl ZarrGroup {
    /// Finds the arrays of the group in a folder, of which this is said.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::System`].
    pub fn open(folder: &Path, attributes: &Json) -> Result<ZarrGroup> {
        let mut group = ZarrGroup {
            folder: folder.to_owned(),
            variables: Vec::new(),
            folders: Vec::new(),
            attributes: all(attributes, None),
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
                Some(Node::Group(_)) if levels > 0 => self.walk(&path, &name, levels - 1)?,
                Some(Node::Group(_)) | None => {}
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
    let mut attributes = all(&of.attributes, known);
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

impl Container for ZarrGroup {
    fn path(&self) -> &Path {
        &self.folder
    }

    fn variables(&self) -> &[Variable] {
        &self.variables
    }

    fn attributes(&self) -> &[(String, Value)] {
        &self.attributes
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
