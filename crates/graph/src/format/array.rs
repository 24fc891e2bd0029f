//! Writing arrays into pages of a transaction.

use buffer::PageId;
use store::{Kind, Transaction};

use super::meta::{Array, Meta, Order, Sort};
use crate::error::Result;

/// Pages that are written in one go and have one home node.
const RUN: usize = 16;

/// An array that is written element after element.
pub(crate) struct ArrayWriter<'t> {
    transaction: &'t Transaction,
    sort: Sort,
    page_size: usize,
    elements: u64,
    bytes: Vec<u8>,
    pages: Vec<PageId>,
}

impl<'t> ArrayWriter<'t> {
    pub fn new(transaction: &'t Transaction, sort: Sort) -> ArrayWriter<'t> {
        ArrayWriter {
            transaction,
            sort,
            page_size: transaction.base().store().page_size(),
            elements: 0,
            bytes: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// Appends an element, of which the lower bytes count where the array's are narrower.
    pub fn push(&mut self, value: u64) -> Result<()> {
        let bytes = value.to_le_bytes();
        self.bytes.extend_from_slice(&bytes[..self.sort.width()]);
        self.elements += 1;
        if self.bytes.len() >= RUN * self.page_size {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let pages: Vec<&[u8]> = self.bytes.chunks(self.page_size).collect();
        // Runs of pages go round the nodes.
        let bucket = (self.pages.len() / RUN) as u8;
        let written = self.transaction.write_pages(&pages, bucket, Kind::Values)?;
        self.pages.extend(written);
        self.bytes.clear();
        Ok(())
    }

    /// Writes what is left, and the index pages.
    pub fn finish(mut self) -> Result<Array> {
        self.write()?;
        let numbers: Vec<u8> = self
            .pages
            .iter()
            .flat_map(|page| page.to_le_bytes())
            .collect();
        let pages: Vec<&[u8]> = numbers.chunks(self.page_size).collect();
        Ok(Array {
            sort: self.sort,
            elements: self.elements,
            index: self.transaction.write_pages(&pages, 0, Kind::Blob)?,
        })
    }
}

/// Compressed sparse rows, written from edges in the order of (vertex, neighbour).
pub(crate) struct ListsWriter<'t> {
    offsets: ArrayWriter<'t>,
    neighbours: ArrayWriter<'t>,
    weights: Option<ArrayWriter<'t>>,
    ends: Option<(u64, u64)>,
}

impl<'t> ListsWriter<'t> {
    /// The lists of the vertices that edges lead to.
    pub fn out(transaction: &'t Transaction, weighted: bool) -> ListsWriter<'t> {
        ListsWriter {
            offsets: ArrayWriter::new(transaction, Sort::Offsets),
            neighbours: ArrayWriter::new(transaction, Sort::Neighbours),
            weights: weighted.then(|| ArrayWriter::new(transaction, Sort::Weights)),
            ends: None,
        }
    }

    /// The lists of the vertices that edges come from.
    pub fn into(transaction: &'t Transaction) -> ListsWriter<'t> {
        ListsWriter {
            offsets: ArrayWriter::new(transaction, Sort::InOffsets),
            neighbours: ArrayWriter::new(transaction, Sort::InNeighbours),
            weights: None,
            ends: None,
        }
    }

    /// Appends an edge. Vertices must not fall from call to call.
    pub fn edge(&mut self, vertex: u64, neighbour: u64, weight: Option<u64>) -> Result<()> {
        while self.offsets.elements <= vertex {
            self.offsets.push(self.neighbours.elements)?;
        }
        self.neighbours.push(neighbour)?;
        if let (Some(weights), Some(weight)) = (&mut self.weights, weight) {
            weights.push(weight)?;
        }
        let first = self.ends.map_or(vertex, |(first, _)| first);
        self.ends = Some((first, vertex));
        Ok(())
    }

    /// Writes what is left; the first and last vertex with neighbours, and the arrays.
    pub fn finish(mut self, vertices: u64) -> Result<Written> {
        while self.offsets.elements <= vertices {
            self.offsets.push(self.neighbours.elements)?;
        }
        let edges = self.neighbours.elements;
        let mut arrays = vec![self.offsets.finish()?, self.neighbours.finish()?];
        if let Some(weights) = self.weights {
            arrays.push(weights.finish()?);
        }
        Ok(Written {
            ends: self.ends,
            edges,
            arrays,
        })
    }
}

/// Lists that have been written.
pub(crate) struct Written {
    pub ends: Option<(u64, u64)>,
    pub edges: u64,
    pub arrays: Vec<Array>,
}

impl Written {
    /// The metadata of a graph with these lists, and those of in-edges where it is directed.
    pub fn meta(
        self,
        vertices: u64,
        order: Order,
        into: Option<Written>,
        more: Vec<Array>,
    ) -> Meta {
        let directed = into.is_some();
        let mut arrays = self.arrays;
        arrays.extend(into.into_iter().flat_map(|into| into.arrays));
        arrays.extend(more);
        Meta {
            vertices,
            edges: self.edges,
            directed,
            loops: 0,
            repeats: false,
            ends: self.ends,
            order,
            arrays,
        }
    }
}
