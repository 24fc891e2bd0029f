//! A store and files in a folder of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{Array, Scalar, Schema};
use arrayfile::{Error, ExportOptions, Exported, ImportOptions, Imported, Job};
use futures::executor::block_on;
use memory::Budget;
use store::{Options, PoolOptions, Store};

/// A folder that goes when this does, with a store of small pages in it.
pub struct Scratch {
    folder: tempfile::TempDir,
    pub store: Arc<Store>,
}

/// A job with so much memory.
pub fn job(bytes: u64) -> Job<'static> {
    Job::new(Budget::new(bytes))
}

impl Scratch {
    pub fn new() -> Scratch {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            page_size: 4096,
            pool: PoolOptions {
                bytes: 4 << 20,
                ..PoolOptions::default()
            },
            durability: store::Durability::None,
            ..Options::default()
        };
        let store = Store::create(folder.path().join("t.atoll"), &options).unwrap();
        Scratch { folder, store }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Imports a file as the array `name`.
    pub fn import(
        &self,
        name: &str,
        path: &Path,
        options: &ImportOptions,
    ) -> Result<Imported, Error> {
        block_on(arrayfile::import(
            &self.store,
            name,
            path,
            options,
            job(64 << 20),
        ))
    }

    /// Exports the array `name`.
    pub fn export(
        &self,
        name: &str,
        path: &Path,
        options: &ExportOptions,
    ) -> Result<Exported, Error> {
        block_on(arrayfile::export(
            &self.store.snapshot(),
            name,
            path,
            options,
            job(64 << 20),
        ))
    }

    /// The schema and values of an array with one attribute.
    pub fn values(&self, name: &str) -> (Schema, Vec<Scalar>) {
        let array = Array::open(&self.store.snapshot(), name).unwrap();
        let block = block_on(array.read(&array.region(), &[true])).unwrap();
        let column = block.column(0).unwrap();
        (
            array.schema().clone(),
            (0..block.cells()).map(|at| column.get(at)).collect(),
        )
    }

    /// The values of an attribute of an array.
    pub fn column(&self, name: &str, attribute: usize) -> Vec<Scalar> {
        let array = Array::open(&self.store.snapshot(), name).unwrap();
        let mut wanted = vec![false; array.schema().attributes().len()];
        wanted[attribute] = true;
        let block = block_on(array.read(&array.region(), &wanted)).unwrap();
        let column = block.column(attribute).unwrap();
        (0..block.cells()).map(|at| column.get(at)).collect()
    }

    /// What stands in the folder, but for the store.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|of| of.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with("t.atoll")).collect();
        names.sort();
        names
    }
}

/// An NPY file of version 1 with this header.
pub fn npy(header: &str, values: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}
