//! A reader of hwloc's XML format. hwloc's own reader trusts the contents of a file and crashes on
//! damaged ones, so it is not used.
//!
//! The format is a tree of `object` elements with the attributes `type`, `os_index`, `cpuset`, and
//! some per type; after it come `distances2` elements. Version 1 files, older than 2017, have
//! the same objects but other distances, which are not read.

use roxmltree::{Document, Node as Element, ParsingOptions};

use crate::machine::{Cache, CacheKind, Core, MAX_CPUS, MAX_NODES};
use crate::parts::{Cpus, Memory, Parts};

/// The most elements in a file.
const MAX_ELEMENTS: u32 = 1 << 20;

/// The deepest nesting of objects; real machines have about ten levels.
const MAX_DEPTH: usize = 128;

/// The highest cpu number.
const MAX_CPU: usize = 65_535;

/// Why a file is not understood, as half a sentence.
type Wrong = String;

/// Reads the text of a file.
pub(crate) fn read(text: &str) -> Result<Parts, Wrong> {
    let options = ParsingOptions {
        allow_dtd: true,
        nodes_limit: MAX_ELEMENTS,
        ..ParsingOptions::default()
    };
    let document =
        Document::parse_with_options(text, options).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if !root.has_tag_name("topology") {
        return Err(format!(
            "its outermost element is <{}>",
            root.tag_name().name()
        ));
    }
    let mut reader = Reader::default();
    for object in objects(root) {
        reader.object(object, Place::default(), 0)?;
    }
    if reader.parts.cores.is_empty() {
        return Err("it has no object of type PU".into());
    }
    let order: Vec<u32> = reader
        .parts
        .memories
        .iter()
        .map(|memory| memory.os_index)
        .collect();
    reader.parts.distances = distances(root, &order)?;
    if root
        .descendants()
        .any(|element| element.has_tag_name("distances"))
    {
        reader
            .parts
            .notes
            .push("distances of the old format 1 are not read".into());
    }
    Ok(reader.parts)
}

fn objects<'a, 'i>(element: Element<'a, 'i>) -> impl Iterator<Item = Element<'a, 'i>> {
    element
        .children()
        .filter(|child| child.has_tag_name("object"))
}

/// What an object is inside of.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    package: Option<u32>,
    /// Position in `Parts::cores`.
    core: Option<usize>,
}

#[derive(Debug, Default)]
struct Reader {
    parts: Parts,
    cpus: usize,
}

impl Reader {
    fn object(
        &mut self,
        object: Element<'_, '_>,
        mut place: Place,
        depth: usize,
    ) -> Result<(), Wrong> {
        if depth > MAX_DEPTH {
            return Err(format!("objects are nested more than {MAX_DEPTH} deep"));
        }
        let kind = object
            .attribute("type")
            .ok_or_else(|| at(object, "object without a type"))?;
        match kind {
            "Package" | "Socket" => {
                place.package = number(object, "os_index")?;
                self.about(object);
            }
            "NUMANode" => self.memory(object)?,
            "Core" => {
                self.parts.cores.push(Core {
                    cpus: Vec::new(),
                    package: place.package,
                });
                place.core = Some(self.parts.cores.len() - 1);
            }
            "PU" => self.unit(object, place)?,
            _ => self.cache(object, kind)?,
        }
        for child in objects(object) {
            self.object(child, place, depth + 1)?;
        }
        if kind == "Core" {
            // Cores whose hardware threads are all left out of the file.
            self.parts.cores.pop_if(|core| core.cpus.is_empty());
        }
        Ok(())
    }

    fn about(&mut self, package: Element<'_, '_>) {
        let model = package
            .children()
            .find(|info| info.attribute("name") == Some("CPUModel"));
        if let (true, Some(model)) = (self.parts.about.is_empty(), model) {
            self.parts.about = model
                .attribute("value")
                .unwrap_or_default()
                .trim()
                .to_owned();
        }
    }

    fn memory(&mut self, object: Element<'_, '_>) -> Result<(), Wrong> {
        let index = self.parts.memories.len();
        if index >= MAX_NODES {
            return Err(format!("it has more than {MAX_NODES} nodes"));
        }
        self.parts.memories.push(Memory {
            os_index: number(object, "os_index")?.unwrap_or(index as u32),
            bytes: number(object, "local_memory")?.unwrap_or(0),
            cpus: set(object)?,
        });
        Ok(())
    }

    fn unit(&mut self, object: Element<'_, '_>, place: Place) -> Result<(), Wrong> {
        let cpu = number(object, "os_index")?.ok_or_else(|| at(object, "PU without os_index"))?;
        self.cpus += 1;
        if self.cpus > MAX_CPUS || cpu as usize > MAX_CPU {
            return Err(format!(
                "it has more than {MAX_CPUS} cpus, or one numbered {cpu}"
            ));
        }
        match place.core.and_then(|core| self.parts.cores.get_mut(core)) {
            Some(core) => core.cpus.push(cpu),
            None => self.parts.cores.push(Core {
                cpus: vec![cpu],
                package: place.package,
            }),
        }
        Ok(())
    }

    /// Reads a cache: `L3Cache`, `L1iCache`, ... or `Cache` with a depth. Objects of any other type only
    /// group others and are ignored.
    fn cache(&mut self, object: Element<'_, '_>, kind: &str) -> Result<(), Wrong> {
        if !kind.ends_with("Cache") || kind == "MemCache" {
            return Ok(());
        }
        let level = number(object, "depth")?.ok_or_else(|| at(object, "cache without depth"))?;
        self.parts.caches.push(Cache {
            level,
            kind: match object.attribute("cache_type") {
                Some("1") => CacheKind::Data,
                Some("2") => CacheKind::Instruction,
                _ => CacheKind::Unified,
            },
            bytes: number(object, "cache_size")?.unwrap_or(0),
            cpus: set(object)?.into_iter().collect(),
        });
        Ok(())
    }
}

/// `what`, and the line it is on.
fn at(element: Element<'_, '_>, what: &str) -> Wrong {
    let position = element.document().text_pos_at(element.range().start);
    format!("line {}: {what}", position.row)
}

/// A whole number; `None` where there is no such attribute.
fn number<N: std::str::FromStr>(element: Element<'_, '_>, name: &str) -> Result<Option<N>, Wrong> {
    let Some(text) = element.attribute(name) else {
        return Ok(None);
    };
    let wrong = |_| {
        at(
            element,
            &format!("{name}=\"{text}\" is not a number in range"),
        )
    };
    text.trim().parse().map(Some).map_err(wrong)
}

/// The object's cpus: 32-bit words in hexadecimal, the highest first, empty ones for zero.
fn set(object: Element<'_, '_>) -> Result<Cpus, Wrong> {
    let text = object.attribute("cpuset").unwrap_or_default();
    let wrong = || {
        at(
            object,
            &format!("cpuset=\"{text}\" is not a finite set of cpus"),
        )
    };
    let words: Vec<&str> = text.split(',').collect();
    if words.len() > MAX_CPU / 32 + 1 {
        return Err(wrong());
    }
    let mut cpus = Cpus::new();
    for (place, word) in words.iter().rev().enumerate() {
        let digits = word.trim();
        if digits.is_empty() {
            continue;
        }
        let digits = digits.strip_prefix("0x").ok_or_else(wrong)?;
        let bits = u32::from_str_radix(digits, 16).map_err(|_| wrong())?;
        let base = place as u32 * 32;
        cpus.extend(
            (0..32)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| base + bit),
        );
    }
    Ok(cpus)
}

/// The latencies between all nodes, in the order given (by the operating system's numbers);
/// `None` where there are none for exactly these nodes.
fn distances(root: Element<'_, '_>, order: &[u32]) -> Result<Option<Vec<u64>>, Wrong> {
    /// Of hwloc's `kind`: the values are latencies.
    const MEANS_LATENCY: u64 = 4;
    let matrices = root
        .children()
        .filter(|element| element.has_tag_name("distances2"));
    for matrix in matrices.filter(|matrix| matrix.attribute("type") == Some("NUMANode")) {
        if number(matrix, "kind")?.unwrap_or(MEANS_LATENCY) & MEANS_LATENCY == 0 {
            continue;
        }
        let indexes: Vec<u64> = list(matrix, "indexes")?;
        let values: Vec<u64> = list(matrix, "u64values")?;
        if values.len() != indexes.len().saturating_mul(indexes.len()) {
            return Err(at(matrix, "the distances do not form a matrix"));
        }
        let place = |os: &u32| indexes.iter().position(|index| *index == u64::from(*os));
        let Some(places) = order.iter().map(place).collect::<Option<Vec<usize>>>() else {
            continue;
        };
        let size = indexes.len();
        let cells = places
            .iter()
            .flat_map(|&a| places.iter().map(move |&b| a * size + b));
        return Ok(Some(cells.map(|cell| values[cell]).collect()));
    }
    Ok(None)
}

/// The numbers in all child elements of that name; large matrices are split over several.
fn list(matrix: Element<'_, '_>, name: &str) -> Result<Vec<u64>, Wrong> {
    let parts = matrix.children().filter(|child| child.has_tag_name(name));
    let words = parts.flat_map(|part| part.text().unwrap_or_default().split_whitespace());
    let numbers: Result<Vec<u64>, _> = words
        .take(MAX_NODES * MAX_NODES + 1)
        .map(str::parse)
        .collect();
    numbers.map_err(|_| at(matrix, &format!("{name} are not all whole numbers")))
}
