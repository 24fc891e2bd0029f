//! All data sets of a file, group by group, as variables.

use std::collections::BTreeMap;

use crate::hdf5::attribute::{Content, attributes};
use crate::hdf5::bytes::{Fault, Parsed, damaged};
use crate::hdf5::dataset::{DataSet, Layout};
use crate::hdf5::datatype::Class;
use crate::hdf5::file::Hdf;
use crate::hdf5::group::{Link, members};
use crate::hdf5::heap::Collections;
use crate::hdf5::object::Object;
use crate::hdf5::values::scalars;
use crate::variables::model::{Extent, Role, Value, Variable};

/// The most objects of a file.
const MOST_OBJECTS: usize = 1 << 17;

/// What NetCDF calls dimensions that have no variable.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// What NetCDF puts before the name of a variable that is called like a dimension and has not its coordinates.
const NO_COORDINATE: &str = "_nc4_non_coord_";

/// A data set, before dimensions are known by name.
struct Found {
    at: u64,
    name: String,
    /// `None` if its header says what is not read.
    set: Result<DataSet, String>,
    attributes: Vec<(String, Content)>,
}

/// The data sets of a file and the variables that they are, group by group in the order of their members.
///
/// # Errors
/// If the file is damaged.
pub(super) fn variables(hdf: &Hdf) -> Parsed<Listed> {
    let Members {
        found,
        aliases,
        elsewhere,
        attributes,
    } = find(hdf)?;
    let places: BTreeMap<u64, usize> = found
        .iter()
        .enumerate()
        .map(|(at, of)| (of.at, at))
        .collect();
    let variables = found.iter().map(|of| variable(of, &found, &places));
    let mut variables = variables.collect::<Parsed<Vec<Variable>>>()?;
    let mut sets: Vec<_> = found.into_iter().map(|of| of.set.ok()).collect();
    for (name, file) in elsewhere {
        variables.push(link_elsewhere(name, &file));
        sets.push(None);
    }
    Ok(Listed {
        sets,
        variables,
        aliases,
        attributes: plain(&attributes),
    })
}

/// What a file has.
pub(super) struct Listed {
    pub sets: Vec<Option<DataSet>>,
    pub variables: Vec<Variable>,
    /// Further names of variables and groups, and the names that they stand for.
    pub aliases: Aliases,
    /// What is said of the file.
    pub attributes: Vec<(String, Value)>,
}

/// What the groups of a file have.
struct Members {
    found: Vec<Found>,
    /// The further names that objects have.
    aliases: Aliases,
    /// The names of what is in other files, with those files.
    elsewhere: Aliases,
    /// Those of the root.
    attributes: Vec<(String, Content)>,
}

/// Names, and the names that they stand for.
type Aliases = Vec<(String, String)>;

/// A link into another file: it is listed, and cannot be read.
fn link_elsewhere(name: String, file: &str) -> Variable {
    let why =
        format!("is a link into another file, {file}, which is not followed: import that file");
    Variable {
        name,
        role: Role::Elsewhere,
        data_type: Err(why),
        half: false,
        extents: Vec::new(),
        chunk: None,
        fill: None,
        attributes: Vec::new(),
    }
}

/// The data sets of all groups.
fn find(hdf: &Hdf) -> Parsed<Members> {
    let mut heaps = Collections::default();
    let mut seen = BTreeMap::new();
    let mut aliases = Vec::new();
    let mut elsewhere = Vec::new();
    let mut next = vec![(String::new(), hdf.root)];
    let mut found = Vec::new();
    let mut of_root = Vec::new();
    while let Some((name, at)) = next.pop() {
        // An object with two names counts once: also a group that lies in itself.
        if let Some(first) = seen.get(&at) {
            aliases.push((name, String::clone(first)));
            continue;
        }
        seen.insert(at, name.clone());
        if seen.len() + aliases.len() + elsewhere.len() > MOST_OBJECTS {
            return damaged(format!("has more than {MOST_OBJECTS} objects"));
        }
        let object = Object::read(hdf, at).map_err(named(&name))?;
        if let Some(members) = members(hdf, &object).map_err(named(&name))? {
            if at == hdf.root {
                // The values do not depend on them.
                of_root = attributes(hdf, &object, &mut heaps).unwrap_or_default();
            }
            // The last is taken first.
            for (member, link) in members.into_iter().rev() {
                let of = within(&name, &member);
                match link {
                    Link::Hard(at) => next.push((of, at)),
                    Link::Soft(path) => aliases.push((of, within(&name, &path))),
                    Link::Elsewhere(file) => elsewhere.push((of, file)),
                }
            }
            continue;
        }
        let set = match DataSet::of(hdf, &object) {
            Ok(Some(set)) => Ok(set),
            Ok(None) => continue,
            Err(Fault::Unread(what)) => Err(what),
            Err(fault) => return Err(named(&name)(fault)),
        };
        let attributes = attributes(hdf, &object, &mut heaps).map_err(named(&name))?;
        found.push(Found {
            at,
            name,
            set,
            attributes,
        });
    }
    Ok(Members {
        found,
        aliases,
        elsewhere,
        attributes: of_root,
    })
}

/// The attributes that are numbers or texts.
fn plain(attributes: &[(String, Content)]) -> Vec<(String, Value)> {
    let one = |(name, content): &(String, Content)| match content {
        Content::Plain(value) => Some((name.clone(), value.clone())),
        Content::Objects(_) => None,
    };
    attributes.iter().filter_map(one).collect()
}

/// A path from the group `group` on, as one from the root on.
fn within(group: &str, path: &str) -> String {
    let from = if path.starts_with('/') { "" } else { group };
    let parts = from.split('/').chain(path.split('/'));
    let parts: Vec<&str> = parts.filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}

/// Says of a fault in which object it is.
fn named(name: &str) -> impl Fn(Fault) -> Fault {
    move |fault| match fault {
        Fault::Damaged(what) if !name.is_empty() => Fault::Damaged(format!("'{name}': {what}")),
        Fault::Unread(what) if !name.is_empty() => Fault::Unread(format!("'{name}': {what}")),
        fault => fault,
    }
}

impl Found {
    fn text(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(of, _)| of == name);
        match found {
            Some((_, Content::Plain(Value::Texts(texts)))) => texts.first().map(String::as_str),
            _ => None,
        }
    }

    /// Whether dimensions can be tied to it.
    fn is_scale(&self) -> bool {
        self.text("CLASS") == Some("DIMENSION_SCALE")
    }

    fn role(&self) -> Role {
        let rank = self
            .set
            .as_ref()
            .ok()
            .and_then(|set| set.space.shape.as_ref());
        match (self.is_scale(), self.text("NAME")) {
            (true, Some(name)) if name.starts_with(NO_VARIABLE) => Role::Dimension,
            (true, _) if rank.is_some_and(|shape| shape.len() == 1) => Role::Coordinates,
            _ => Role::Data,
        }
    }

    /// The last part of its name, as NetCDF says it.
    fn short_name(&self) -> &str {
        let short = self.name.rsplit('/').next().unwrap_or("");
        short.strip_prefix(NO_COORDINATE).unwrap_or(short)
    }
}

fn variable(of: &Found, all: &[Found], places: &BTreeMap<u64, usize>) -> Parsed<Variable> {
    let data_type = match &of.set {
        Err(what) => Err(what.clone()),
        Ok(set) => readable(set),
    };
    let mut fill = None;
    let mut chunk = None;
    if let Ok(set) = &of.set {
        if let (Some((of, big_endian)), Some(bytes)) = (set.datatype.number(), &set.fill) {
            fill = scalars(of, big_endian, bytes).first().copied();
        }
        if let Layout::Chunked(chunked) = &set.layout {
            chunk = Some(chunked.chunk.clone());
        }
    }
    let short = of.short_name();
    let front = &of.name[..of.name.rfind('/').map_or(0, |at| at + 1)];
    Ok(Variable {
        name: format!("{front}{short}"),
        role: of.role(),
        data_type,
        half: matches!(&of.set, Ok(set) if matches!(set.datatype.class, Class::Half { .. })),
        extents: extents(of, all, places),
        chunk,
        fill,
        attributes: plain(&of.attributes),
    })
}

/// The type of a data set's values.
///
/// # Errors
/// Why they are not read, in words.
fn readable(set: &DataSet) -> Result<array::DataType, String> {
    let of = match &set.datatype.class {
        Class::Number { of, .. } => *of,
        Class::Half { .. } => array::DataType::U16,
        Class::Text | Class::LongText => return Err("has texts, which are not read".to_owned()),
        Class::Reference => return Err("has references, which are not read".to_owned()),
        Class::List(_) => {
            return Err("has lists of any length in its cells, which are not read".to_owned());
        }
        Class::Other(what) => return Err(format!("has {what}, which are not read")),
    };
    if set.space.shape.is_none() {
        return Err("has no values at all".to_owned());
    }
    set.filters.iter().try_for_each(|filter| filter.check())?;
    Ok(of)
}

/// The dimensions of a data set: a scale is its own.
fn extents(of: &Found, all: &[Found], places: &BTreeMap<u64, usize>) -> Vec<Extent> {
    let Ok(set) = &of.set else { return Vec::new() };
    let shape = set.space.shape.clone().unwrap_or_default();
    let list = |name: &str| of.attributes.iter().find(|(of, _)| of == name);
    let labels = match list("DIMENSION_LABELS") {
        Some((_, Content::Plain(Value::Texts(labels)))) => &labels[..],
        _ => &[],
    };
    let scales = match list("DIMENSION_LIST") {
        Some((_, Content::Objects(lists))) => &lists[..],
        _ => &[],
    };
    let lengths = shape.iter().zip(&set.space.most).enumerate();
    let extent = |(at, (&length, &most)): (usize, (&u64, &u64))| {
        let scale = scales
            .get(at)
            .and_then(|of| places.get(of.first()?))
            .copied();
        let itself = of.role() != Role::Data && at == 0;
        let scale = if itself {
            places.get(&of.at).copied()
        } else {
            scale
        };
        let label = labels.get(at).filter(|label| !label.is_empty());
        let name = match (label, scale) {
            (Some(label), _) => Some(label.clone()),
            (None, Some(scale)) => Some(all[scale].short_name().to_owned()),
            (None, None) => None,
        };
        Extent {
            length,
            unlimited: most == u64::MAX,
            name,
            coordinates: scale.filter(|&of| all[of].role() == Role::Coordinates),
        }
    };
    lengths.map(extent).collect()
}
