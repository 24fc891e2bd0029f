//! The metadata page: what a graph is, and where its arrays lie (row B9).

use buffer::PageId;

/// The space of the catalog's directory, which graphs share with the tables' names.
pub(crate) const DIRECTORY: u32 = 0;
/// Prefix of the directory entries of graphs: `g` and the name; the value is the number of the
/// metadata page, little-endian.
const GRAPH: &[u8] = b"g";

const MAGIC: &[u8; 8] = b"ATLGRAPH";
/// Version 1 said whether there were loops, not how many.
const VERSION: u32 = 2;
/// Bytes before the records of the arrays.
const HEAD: usize = 64;
/// Bytes of the record of an array, without its list of index pages.
const RECORD: usize = 24;

const DIRECTED: u32 = 1;
const REPEATS: u32 = 4;

/// Most vertices of a graph; `u32::MAX` itself stands for "none" in the kernels.
pub(crate) const MOST_VERTICES: u64 = u32::MAX as u64 - 1;

/// The key of a graph in the directory; of all graphs for an empty name.
pub(crate) fn key(name: &str) -> Vec<u8> {
    [GRAPH, name.as_bytes()].concat()
}

/// The name in a key of the directory.
pub(crate) fn name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(GRAPH)?).ok()
}

/// The order in which the vertices of a graph are numbered, and so its arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Order {
    /// By the ids in the file.
    Ids = 0,
    /// By falling degree: those that many lists name lie together.
    Degree = 1,
    /// Reverse Cuthill-McKee: neighbours lie near each other.
    Rcm = 2,
    /// Gorder with a window of 5: vertices with common neighbours lie together (Wei et al., SIGMOD
    /// 2016). Slow to make.
    Gorder = 3,
    /// By groups of like degree, the highest first; within a group as before (degree-based
    /// grouping, Faldu et al., IISWC 2019).
    Dbg = 4,
}

impl Order {
    /// All of them.
    pub const ALL: [Order; 5] = [
        Order::Ids,
        Order::Degree,
        Order::Rcm,
        Order::Gorder,
        Order::Dbg,
    ];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Order::Ids => "ids",
            Order::Degree => "degree",
            Order::Rcm => "rcm",
            Order::Gorder => "gorder",
            Order::Dbg => "dbg",
        }
    }

    fn of(number: u32) -> Option<Order> {
        Order::ALL.get(number as usize).copied()
    }
}

/// What an array of a graph holds. There is one of each sort at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Sort {
    /// The paper's FirstNeighbor vector: where the list of each vertex begins, and the end.
    Offsets = 0,
    /// The paper's Neighbors vector: lists of the vertices that edges lead to, one after the other.
    Neighbours = 1,
    /// As `Offsets`, for the edges that lead here; only of directed graphs.
    InOffsets = 2,
    /// As `Neighbours`, for the edges that lead here.
    InNeighbours = 3,
    /// The weights of the edges in `Neighbours`, bits of a float each.
    Weights = 4,
    /// The id in the file of each vertex.
    Ids = 5,
    /// The vertices by rising id in the file; missing where they are numbered so.
    Ranks = 6,
}

impl Sort {
    const ALL: [Sort; 7] = [
        Sort::Offsets,
        Sort::Neighbours,
        Sort::InOffsets,
        Sort::InNeighbours,
        Sort::Weights,
        Sort::Ids,
        Sort::Ranks,
    ];

    /// Bytes of an element.
    pub fn width(self) -> usize {
        match self {
            Sort::Neighbours | Sort::InNeighbours | Sort::Ranks => 4,
            _ => 8,
        }
    }

    /// Its elements in a graph of so many vertices and edges.
    pub fn elements(self, vertices: u64, edges: u64) -> u64 {
        match self {
            Sort::Offsets | Sort::InOffsets => vertices + 1,
            Sort::Neighbours | Sort::InNeighbours | Sort::Weights => edges,
            Sort::Ids | Sort::Ranks => vertices,
        }
    }

    /// A name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Offsets => "the offsets",
            Sort::Neighbours => "the neighbours",
            Sort::InOffsets => "the offsets of in-edges",
            Sort::InNeighbours => "the neighbours of in-edges",
            Sort::Weights => "the weights",
            Sort::Ids => "the ids",
            Sort::Ranks => "the ranks",
        }
    }
}

/// An array: so many elements, page after page; the numbers of its pages lie in index pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Array {
    pub sort: Sort,
    pub elements: u64,
    pub index: Vec<PageId>,
}

impl Array {
    /// How many pages of this size hold the elements.
    pub fn pages(&self, page_size: usize) -> u64 {
        self.elements
            .div_ceil((page_size / self.sort.width()) as u64)
    }
}

/// The contents of a metadata page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub vertices: u64,
    /// Entries of the neighbour array; an undirected edge is two, a loop one.
    pub edges: u64,
    pub directed: bool,
    /// How many of them are edges from a vertex to itself.
    pub loops: u64,
    /// Whether repeated edges were kept.
    pub repeats: bool,
    /// The first and the last vertex that have neighbours.
    pub ends: Option<(u64, u64)>,
    pub order: Order,
    pub arrays: Vec<Array>,
}

impl Meta {
    pub fn array(&self, sort: Sort) -> Option<&Array> {
        self.arrays.iter().find(|array| array.sort == sort)
    }

    /// The edges as one counts them: undirected ones once.
    pub fn counted(&self) -> u64 {
        if self.directed {
            self.edges
        } else {
            (self.edges - self.loops) / 2 + self.loops
        }
    }

    /// The bytes of the page; `None` where the lists of index pages do not fit into one.
    pub fn encode(&self, page_size: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        let flags = flag(self.directed, DIRECTED) | flag(self.repeats, REPEATS);
        let (first, last) = self.ends.unwrap_or((u64::MAX, u64::MAX));
        out.extend_from_slice(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(flags.to_le_bytes());
        for number in [self.vertices, self.edges, self.loops, first, last] {
            out.extend(number.to_le_bytes());
        }
        out.extend((self.order as u32).to_le_bytes());
        out.extend((self.arrays.len() as u32).to_le_bytes());
        for array in &self.arrays {
            let width = array.sort.width();
            out.extend((array.sort as u32).to_le_bytes());
            out.extend((width as u32).to_le_bytes());
            out.extend(array.elements.to_le_bytes());
            out.extend(((page_size / width) as u32).to_le_bytes());
            out.extend((array.index.len() as u32).to_le_bytes());
            for page in &array.index {
                out.extend(page.to_le_bytes());
            }
        }
        (out.len() <= page_size).then_some(out)
    }

    /// The graph that a page describes; otherwise what is wrong with it. Takes no more memory than
    /// the page has bytes.
    pub fn decode(bytes: &[u8], page_size: usize) -> Result<Meta, &'static str> {
        let mut bytes = Bytes(bytes);
        if bytes.0.len() < HEAD || !bytes.0.starts_with(MAGIC) {
            return Err("it does not begin as one");
        }
        bytes.0 = &bytes.0[MAGIC.len()..];
        if bytes.u32()? != VERSION {
            return Err("its version is not known");
        }
        let flags = bytes.u32()?;
        if flags & !(DIRECTED | REPEATS) != 0 {
            return Err("its flags are not known");
        }
        let (vertices, edges, loops) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        let (first, last) = (bytes.u64()?, bytes.u64()?);
        if vertices > MOST_VERTICES || edges > u64::MAX / 16 {
            return Err("it has too many vertices or edges");
        }
        let directed = flags & DIRECTED != 0;
        if loops > edges || (!directed && (edges - loops) % 2 != 0) {
            return Err("its numbers of edges and loops contradict");
        }
        let ends = if first == u64::MAX && last == u64::MAX {
            None
        } else if first <= last && last < vertices {
            Some((first, last))
        } else {
            return Err("its first and last vertex with neighbours contradict");
        };
        let order = Order::of(bytes.u32()?).ok_or("its order is not known")?;
        let count = bytes.u32()?;
        let mut arrays: Vec<Array> = Vec::new();
        for _ in 0..count {
            let array = decode_array(&mut bytes, vertices, edges, page_size)?;
            if arrays.iter().any(|other| other.sort == array.sort) {
                return Err("it has an array twice");
            }
            arrays.push(array);
        }
        if !bytes.0.is_empty() {
            return Err("it is longer than what it says");
        }
        let meta = Meta {
            vertices,
            edges,
            directed,
            loops,
            repeats: flags & REPEATS != 0,
            ends,
            order,
            arrays,
        };
        let mut needed = vec![Sort::Offsets, Sort::Neighbours, Sort::Ids];
        if meta.directed {
            needed.extend([Sort::InOffsets, Sort::InNeighbours]);
        }
        if needed.iter().all(|&sort| meta.array(sort).is_some()) {
            Ok(meta)
        } else {
            Err("an array is missing")
        }
    }
}

fn decode_array(
    bytes: &mut Bytes<'_>,
    vertices: u64,
    edges: u64,
    page_size: usize,
) -> Result<Array, &'static str> {
    if bytes.0.len() < RECORD {
        return Err("it ends within the record of an array");
    }
    let sort = bytes.u32()?;
    let sort = Sort::ALL.get(sort as usize).copied();
    let sort = sort.ok_or("it has an array that is not known")?;
    let (width, elements) = (bytes.u32()?, bytes.u64()?);
    let (per_page, listed) = (bytes.u32()?, bytes.u32()?);
    if width as usize != sort.width()
        || elements != sort.elements(vertices, edges)
        || per_page as usize != page_size / sort.width()
    {
        return Err("the size of an array is not what vertices and edges ask for");
    }
    let mut array = Array {
        sort,
        elements,
        index: Vec::new(),
    };
    let wanted = array.pages(page_size).div_ceil((page_size / 4) as u64);
    if wanted != u64::from(listed) || bytes.0.len() / 4 < listed as usize {
        return Err("the list of an array's pages has the wrong length");
    }
    for _ in 0..listed {
        array.index.push(bytes.u32()?);
    }
    Ok(array)
}

/// Bytes that are still to be decoded.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u32(&mut self) -> Result<u32, &'static str> {
        let (head, rest) = self.0.split_first_chunk::<4>().ok_or("it is cut short")?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*head))
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        let (head, rest) = self.0.split_first_chunk::<8>().ok_or("it is cut short")?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*head))
    }
}
