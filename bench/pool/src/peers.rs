//! The stores that are compared.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::PAGE;

/// A store that several threads write to.
pub trait Peer: Send + Sync {
    /// A function that commits one page, durably; each thread has its own.
    fn writer(&self) -> Box<dyn FnMut(&[u8]) + '_>;
}

pub struct Atoll {
    store: Arc<store::Store>,
}

impl Atoll {
    pub fn create(path: &Path) -> Atoll {
        let options = store::Options {
            page_size: PAGE as u32,
            ..store::Options::default()
        };
        Atoll {
            store: store::Store::create(path, &options).expect("a new store"),
        }
    }
}

impl Peer for Atoll {
    fn writer(&self) -> Box<dyn FnMut(&[u8]) + '_> {
        Box::new(|page| {
            let mut transaction = self.store.begin().expect("a transaction");
            let id = transaction
                .write_page(page, 0, store::Kind::Blob)
                .expect("a page");
            transaction.put(0, &id.to_be_bytes(), b"");
            transaction.commit().expect("a commit");
        })
    }
}

pub struct Sqlite {
    path: Box<Path>,
    next: AtomicU64,
}

impl Sqlite {
    pub fn create(path: &Path) -> Sqlite {
        let sqlite = Sqlite {
            path: path.into(),
            next: AtomicU64::new(0),
        };
        let create = "CREATE TABLE pages (id INTEGER PRIMARY KEY, page BLOB NOT NULL)";
        sqlite.connect().execute(create, []).expect("a table");
        sqlite
    }

    fn connect(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(&self.path).expect("a connection");
        connection
            .busy_timeout(Duration::from_secs(60))
            .expect("a timeout");
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .expect("a log");
        connection
            .pragma_update(None, "synchronous", "FULL")
            .expect("durability");
        connection
    }
}

impl Peer for Sqlite {
    fn writer(&self) -> Box<dyn FnMut(&[u8]) + '_> {
        let connection = self.connect();
        Box::new(move |page| {
            let id = self.next.fetch_add(1, Ordering::Relaxed) as i64;
            let insert = "INSERT INTO pages (id, page) VALUES (?1, ?2)";
            let mut insert = connection.prepare_cached(insert).expect("a statement");
            insert.execute((id, page)).expect("a commit");
        })
    }
}

const PAGES: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("pages");

pub struct Redb {
    database: redb::Database,
    next: AtomicU64,
}

impl Redb {
    pub fn create(path: &Path) -> Redb {
        Redb {
            database: redb::Database::create(path).expect("a database"),
            next: AtomicU64::new(0),
        }
    }
}

impl Peer for Redb {
    fn writer(&self) -> Box<dyn FnMut(&[u8]) + '_> {
        Box::new(|page| {
            let mut transaction = self.database.begin_write().expect("a transaction");
            transaction
                .set_durability(redb::Durability::Immediate)
                .expect("durability");
            {
                let id = self.next.fetch_add(1, Ordering::Relaxed);
                let mut pages = transaction.open_table(PAGES).expect("a table");
                pages.insert(id, page).expect("a page");
            }
            transaction.commit().expect("a commit");
        })
    }
}

type LmdbPages = heed::Database<heed::types::U64<heed::byteorder::BE>, heed::types::Bytes>;

pub struct Lmdb {
    environment: heed::Env,
    pages: LmdbPages,
    next: AtomicU64,
}

impl Lmdb {
    /// More than all rounds together write: the map does not grow.
    const MAP: usize = 4 << 30;

    pub fn create(path: &Path) -> Lmdb {
        std::fs::create_dir(path).expect("a folder");
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(Lmdb::MAP);
        // SAFETY: nobody else opens or changes the files of this new folder.
        let environment = unsafe { options.open(path) }.expect("an environment");
        let mut transaction = environment.write_txn().expect("a transaction");
        let pages = environment
            .create_database(&mut transaction, None)
            .expect("a database");
        transaction.commit().expect("a commit");
        Lmdb {
            environment,
            pages,
            next: AtomicU64::new(0),
        }
    }
}

impl Peer for Lmdb {
    fn writer(&self) -> Box<dyn FnMut(&[u8]) + '_> {
        Box::new(|page| {
            let mut transaction = self.environment.write_txn().expect("a transaction");
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            self.pages.put(&mut transaction, &id, page).expect("a page");
            transaction.commit().expect("a commit");
        })
    }
}
