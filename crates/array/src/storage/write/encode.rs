//! The record of a chunk's attribute: pages written, old ones freed.

use store::{Kind, Transaction};

use crate::data::block::Column;
use crate::error::Result;
use crate::model::schema::{Attribute, Compression};
use crate::storage::keys::{chunk_key, encode, unpack};
use crate::storage::plane;
use crate::storage::record::{Record, Statistics};

/// An attribute of a chunk that is to be put in the place of what was there.
pub(super) struct Put<'a> {
    pub name: &'a str,
    pub space: u32,
    /// The spaces of the array's versions, whose pages stay.
    pub versions: &'a [u32],
    pub chunk: &'a [u64],
    pub number: u16,
    /// Of a chunk that was not written before.
    pub bucket: u8,
    /// How many threads may compress it.
    pub threads: usize,
}

impl Put<'_> {
    /// Writes a column with these cells along each dimension.
    ///
    /// # Errors
    /// [`Error::Store`](crate::Error::Store).
    pub fn column(
        &self,
        transaction: &mut Transaction,
        column: &Column,
        shape: Vec<u32>,
        compression: Compression,
    ) -> Result<()> {
        let bucket = self.free(transaction).unwrap_or(self.bucket);
        let values = column.values();
        let bytes = (values.bytes(), values.data_type().width());
        let how = (compression, self.threads);
        let valid = match column.valid() {
            None => None,
            Some(valid) => {
                let valid = (valid, 1);
                Some(plane::write(
                    transaction,
                    bucket,
                    valid,
                    how,
                    Kind::Validity,
                )?)
            }
        };
        let record = Record {
            bucket,
            shape,
            statistics: Statistics::of(column),
            values: plane::write(transaction, bucket, bytes, how, Kind::Values)?,
            valid,
        };
        let value = encode(&record, self.name)?;
        transaction.put(self.space, &chunk_key(self.chunk, self.number), &value);
        Ok(())
    }

    /// Removes what was there.
    pub fn remove(&self, transaction: &mut Transaction) {
        self.free(transaction);
        transaction.delete(self.space, &chunk_key(self.chunk, self.number));
    }

    /// Frees the pages of what was there, but for those that a version has; its bucket, if there was something.
    fn free(&self, transaction: &mut Transaction) -> Option<u8> {
        let key = chunk_key(self.chunk, self.number);
        let old = transaction.get(self.space, &key)?;
        let old = unpack::<Record>(&old)?;
        free(transaction, &key, &old, self.versions);
        Some(old.bucket)
    }
}

/// Frees the pages of a record, but for those of planes that the record of the same key in one of these spaces has, too.
pub(super) fn free(transaction: &mut Transaction, key: &[u8], old: &Record, others: &[u32]) {
    let kept: Vec<Record> = others
        .iter()
        .filter_map(|&space| unpack(&transaction.get(space, key)?))
        .collect();
    let page_size = transaction.base().store().page_size();
    // A damaged record may name any number of pages: they are not its own.
    for plane in old.planes().filter(|of| of.has_its_pages(page_size)) {
        let has = |record: &Record| record.planes().any(|of| of.pages == plane.pages);
        if !kept.iter().any(has) {
            plane
                .each_page()
                .for_each(|page| transaction.free_page(page));
        }
    }
}

/// Whether a column has nothing but the fill value, so that it need not be stored.
pub(super) fn is_fill(attribute: &Attribute, column: &Column) -> bool {
    let fill = attribute.fill_value();
    match column.valid() {
        Some(valid) => fill.is_null() && valid.iter().all(|&valid| valid == 0),
        None if fill.is_null() => false,
        None => {
            let width = attribute.data_type().width();
            let bytes = fill.to_bytes(attribute.data_type()).unwrap_or_default();
            column
                .values()
                .bytes()
                .chunks(width)
                .all(|value| *value == bytes[..width])
        }
    }
}

/// The bucket of a chunk: neighbours lie on different nodes, along every dimension.
pub(super) fn bucket(chunk: &[u64], counts: &[u64]) -> u8 {
    let number = chunk.iter().zip(counts).fold(0u64, |sum, (&at, &count)| {
        sum.wrapping_mul(count | 1).wrapping_add(at)
    });
    number as u8
}
