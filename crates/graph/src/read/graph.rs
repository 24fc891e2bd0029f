//! A graph of a snapshot: its metadata, and where its arrays lie.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use buffer::{PageId, Pool};
use store::{Snapshot, Transaction};

use crate::error::{Error, Result};
use crate::format::meta::{Array, DIRECTORY, Meta, Order, Sort, key, name};

/// A graph as one snapshot has it. Later commits do not change it.
///
/// Vertices have dense numbers from 0 inside, in the graph's [`order`](Graph::order), and the ids of
/// the file outside. Only the numbers of the pages are in memory, four bytes for each page.
#[derive(Debug)]
pub struct Graph {
    name: String,
    snapshot: Snapshot,
    root: PageId,
    meta: Meta,
    out: Lists,
    /// `None` where out and in are the same.
    into: Option<Lists>,
    pub(crate) ids: Paged,
    pub(crate) ranks: Option<Paged>,
    pub(crate) weights: Option<Paged>,
}

/// Lists of neighbours: where each begins, and the lists one after the other.
#[derive(Debug)]
pub(crate) struct Lists {
    pub offsets: Paged,
    pub neighbours: Paged,
}

/// An array in pages.
#[derive(Debug)]
pub(crate) struct Paged {
    pub sort: Sort,
    pub elements: u64,
    /// Logarithm of the elements of a page.
    pub shift: u32,
    pub pages: Box<[PageId]>,
    /// Whether the values of a page were found to be possible. Pages never change, so once is enough.
    sound: Box<[AtomicBool]>,
    /// What each value must not exceed.
    most: u64,
}

/// What is known of a graph without reading its lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// How many vertices it has.
    pub vertices: u64,
    /// How many edges it has; of an undirected graph each counts once.
    pub edges: u64,
    /// Whether edges have a direction.
    pub directed: bool,
    /// Whether edges have weights.
    pub weighted: bool,
    /// In which order its vertices are numbered.
    pub order: Order,
    /// Pages of all of its arrays.
    pub pages: u64,
}

impl Graph {
    /// The graph `name` of a snapshot.
    ///
    /// # Errors
    /// [`Error::NoGraph`]; [`Error::Damaged`], [`Error::Buffer`] for its metadata.
    pub async fn open(snapshot: &Snapshot, name: &str) -> Result<Arc<Graph>> {
        let Some(entry) = snapshot.get(DIRECTORY, &key(name)) else {
            return Err(Error::NoGraph {
                name: name.to_owned(),
            });
        };
        let root = root(name, &entry)?;
        let meta = read_meta(snapshot.pool(), root, name).await?;
        let lists = async |offsets, neighbours| -> Result<Lists> {
            Ok(Lists {
                offsets: Paged::open(snapshot, name, &meta, offsets).await?,
                neighbours: Paged::open(snapshot, name, &meta, neighbours).await?,
            })
        };
        let out = lists(Sort::Offsets, Sort::Neighbours).await?;
        let into = if meta.directed {
            Some(lists(Sort::InOffsets, Sort::InNeighbours).await?)
        } else {
            None
        };
        let ids = Paged::open(snapshot, name, &meta, Sort::Ids).await?;
        let (mut ranks, mut weights) = (None, None);
        for (slot, sort) in [(&mut ranks, Sort::Ranks), (&mut weights, Sort::Weights)] {
            if meta.array(sort).is_some() {
                *slot = Some(Paged::open(snapshot, name, &meta, sort).await?);
            }
        }
        let mut all = vec![&ids, &out.offsets, &out.neighbours];
        all.extend(
            into.iter()
                .flat_map(|lists| [&lists.offsets, &lists.neighbours]),
        );
        all.extend(ranks.iter().chain(&weights));
        apart(name, &all)?;
        Ok(Arc::new(Graph {
            name: name.to_owned(),
            snapshot: snapshot.clone(),
            root,
            out,
            into,
            ids,
            ranks,
            weights,
            meta,
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is known of it without reading its lists.
    pub fn summary(&self) -> Summary {
        summary(&self.name, &self.meta, self.pool().page_size())
    }

    /// In which order its vertices are numbered.
    pub fn order(&self) -> Order {
        self.meta.order
    }

    /// The pool through which its pages are read.
    pub fn pool(&self) -> &Arc<Pool> {
        self.snapshot.pool()
    }

    /// The snapshot that it is of.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(crate) fn root(&self) -> PageId {
        self.root
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The number of vertices, which are numbered from 0.
    pub fn vertices(&self) -> u32 {
        // Checked when the metadata was decoded.
        self.meta.vertices as u32
    }

    /// Entries of its lists: an undirected edge counts twice.
    pub fn entries(&self) -> u64 {
        self.meta.edges
    }

    /// The lists of the vertices that edges lead to.
    pub(crate) fn out(&self) -> &Lists {
        &self.out
    }

    /// The lists of the vertices that edges come from.
    pub(crate) fn incoming(&self) -> &Lists {
        self.into.as_ref().unwrap_or(&self.out)
    }

    /// Pages of its lists.
    pub(crate) fn list_pages(&self) -> usize {
        let lists = [Some(&self.out), self.into.as_ref()];
        let pages = |lists: &Lists| lists.offsets.pages.len() + lists.neighbours.pages.len();
        lists.into_iter().flatten().map(pages).sum()
    }

    /// Whether a number is that of a vertex.
    pub(crate) fn check(&self, vertex: u32) -> Result<()> {
        if vertex < self.vertices() {
            return Ok(());
        }
        Err(Error::NoVertex {
            graph: self.name.clone(),
            vertex: i64::from(vertex),
        })
    }

    pub(crate) fn damaged(&self, what: &str) -> Error {
        damaged(&self.name, what)
    }
}

impl Paged {
    async fn open(snapshot: &Snapshot, name: &str, meta: &Meta, sort: Sort) -> Result<Paged> {
        let page_size = snapshot.pool().page_size();
        let array = meta.array(sort);
        let array = array.ok_or_else(|| damaged(name, "its metadata page"))?;
        let pages = pages_of(snapshot, name, array).await?;
        let sound = pages.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Paged {
            sort,
            elements: array.elements,
            shift: (page_size / sort.width()).trailing_zeros(),
            sound,
            pages: pages.into_boxed_slice(),
            most: match sort {
                Sort::Offsets | Sort::InOffsets => meta.edges,
                Sort::Neighbours | Sort::InNeighbours | Sort::Ranks => {
                    meta.vertices.saturating_sub(1)
                }
                Sort::Ids | Sort::Weights => u64::MAX,
            },
        })
    }

    /// Elements of page `page` of the array.
    pub fn on_page(&self, page: usize) -> usize {
        let before = (page as u64) << self.shift;
        (self.elements - before).min(1 << self.shift) as usize
    }

    /// Whether the bytes of a page of the array are what they must be; they are looked at once.
    pub fn is_sound(&self, page: usize, bytes: &[u8]) -> bool {
        // Relaxed: the pages are the same for all who read them.
        if self.sound[page].load(Ordering::Relaxed) {
            return true;
        }
        let sound = bytes.len() == self.on_page(page) * self.sort.width()
            && match self.sort.width() {
                4 => bytemuck::try_cast_slice::<u8, u32>(bytes).is_ok_and(|values| {
                    let greatest = values.iter().copied().max();
                    u64::from(greatest.unwrap_or(0)) <= self.most
                }),
                _ => bytemuck::try_cast_slice::<u8, u64>(bytes).is_ok_and(|values| {
                    let sorted =
                        !matches!(self.sort, Sort::Offsets | Sort::InOffsets) || values.is_sorted();
                    sorted && values.iter().all(|&value| value <= self.most)
                }),
            };
        if sound {
            self.sound[page].store(true, Ordering::Relaxed);
        }
        sound
    }
}

/// Fails if a page is in two places. Readers hold pages by their numbers, and know of each page in one place whether
/// its values are possible.
fn apart(name: &str, arrays: &[&Paged]) -> Result<()> {
    let mut pages: Vec<PageId> = Vec::new();
    for array in arrays {
        pages.extend(&array.pages);
    }
    pages.sort_unstable();
    match pages.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(damaged(
            name,
            &format!("page {}, which its arrays name twice,", pair[0]),
        )),
        None => Ok(()),
    }
}

/// The pages of an array, in order.
async fn pages_of(snapshot: &Snapshot, name: &str, array: &Array) -> Result<Vec<PageId>> {
    let pool = snapshot.pool();
    let count = array.pages(pool.page_size());
    // Each page takes 64 bytes of the file at least, so no damage makes us take more memory than that.
    if count > snapshot.store().statistics().file_bytes / 64 {
        return Err(damaged(name, array.sort.name()));
    }
    let mut pages: Vec<PageId> = Vec::new();
    for &page in &array.index {
        let pin = pool.pin(page).await?;
        let expected = (count as usize - pages.len()).min(pool.page_size() / 4);
        let (numbers, rest) = pin.as_chunks::<4>();
        if numbers.len() != expected || !rest.is_empty() {
            return Err(damaged(
                name,
                &format!("index page {page} of {}", array.sort.name()),
            ));
        }
        pages.extend(numbers.iter().map(|&number| u32::from_le_bytes(number)));
    }
    Ok(pages)
}

fn root(name: &str, entry: &[u8]) -> Result<PageId> {
    let number = <[u8; 4]>::try_from(entry);
    number
        .map(u32::from_le_bytes)
        .map_err(|_| damaged(name, "its directory entry"))
}

async fn read_meta(pool: &Pool, root: PageId, name: &str) -> Result<Meta> {
    let pin = pool.pin(root).await?;
    Meta::decode(&pin, pool.page_size())
        .map_err(|what| damaged(name, &format!("its metadata page {root} ({what})")))
}

fn summary(name: &str, meta: &Meta, page_size: usize) -> Summary {
    Summary {
        name: name.to_owned(),
        vertices: meta.vertices,
        edges: meta.counted(),
        directed: meta.directed,
        weighted: meta.array(Sort::Weights).is_some(),
        order: meta.order,
        pages: meta.arrays.iter().map(|array| array.pages(page_size)).sum(),
    }
}

/// The graphs of a snapshot, by name.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Buffer`] for the metadata of one.
pub async fn list(snapshot: &Snapshot) -> Result<Vec<Summary>> {
    let mut graphs = Vec::new();
    for (entry, value) in snapshot.prefix(DIRECTORY, &key("")) {
        let name = name(&entry).ok_or_else(|| damaged("?", "a directory entry"))?;
        let meta = read_meta(snapshot.pool(), root(name, &value)?, name).await?;
        graphs.push(summary(name, &meta, snapshot.pool().page_size()));
    }
    Ok(graphs)
}

/// Frees all pages of a graph and removes its entry, if there is one of this name.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Buffer`] for its metadata.
pub(crate) async fn remove(transaction: &mut Transaction, name: &str) -> Result<bool> {
    let Some(entry) = transaction.get(DIRECTORY, &key(name)) else {
        return Ok(false);
    };
    let root = root(name, &entry)?;
    let snapshot = transaction.base().clone();
    let meta = read_meta(snapshot.pool(), root, name).await?;
    for array in &meta.arrays {
        for page in pages_of(&snapshot, name, array).await? {
            transaction.free_page(page);
        }
        array
            .index
            .iter()
            .for_each(|&page| transaction.free_page(page));
    }
    transaction.free_page(root);
    transaction.delete(DIRECTORY, &key(name));
    Ok(true)
}

/// Writes the metadata page of a graph and its entry.
pub(crate) fn publish(transaction: &mut Transaction, name: &str, meta: &Meta) -> Result<()> {
    let page_size = transaction.base().store().page_size();
    let bytes = meta.encode(page_size);
    let bytes = bytes.ok_or_else(|| Error::TooManyVertices {
        what: format!("graph '{name}', for pages of {page_size} bytes,"),
        limit: meta.vertices,
    })?;
    let root = transaction.write_page(&bytes, 0, store::Kind::Blob)?;
    transaction.put(DIRECTORY, &key(name), &root.to_le_bytes());
    Ok(())
}

pub(crate) fn damaged(graph: &str, what: &str) -> Error {
    Error::Damaged {
        graph: graph.to_owned(),
        what: what.to_owned(),
    }
}
