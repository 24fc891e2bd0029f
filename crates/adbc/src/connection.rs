//! Connections: sessions of the database.

use std::collections::HashSet;
use std::sync::Arc;

use adbc_core::error::Result;
use adbc_core::options::{InfoCode, ObjectDepth, OptionConnection, OptionValue};
use adbc_core::{CancelHandle, Optionable, schemas};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchReader, StringArray};
use arrow::datatypes::Schema;
use atoll::Session;

use crate::cancel::Canceller;
use crate::catalog::{self, CATALOG, Filter, SCHEMA, check_place, quoted};
use crate::error::missing;
use crate::guard::caught;
use crate::option::{as_double, as_int, no_option, not_set, text, truth};
use crate::rows::Held;
use crate::statement::Statement;
use crate::store::Store;
use crate::transaction::{Isolation, Transactions};
use crate::{info, statistics};

type Answer = Box<dyn RecordBatchReader + Send + 'static>;

/// A connection to a database: one session, with a transaction of its own.
#[derive(Debug)]
pub struct Connection {
    session: Session,
    transactions: Arc<Transactions>,
    canceller: Canceller,
    read_only: bool,
    /// Dropped last: the store stays open.
    store: Arc<Store>,
}

impl Connection {
    pub(crate) fn new(store: Arc<Store>, read_only: bool) -> Result<Connection> {
        let session = store.session()?;
        Ok(Connection {
            transactions: Arc::new(Transactions::new(&session)),
            canceller: Canceller::new(&session),
            session,
            read_only,
            store,
        })
    }

    /// Does something for this connection that may be cancelled.
    fn asked<T>(
        &self,
        work: impl FnOnce(&Session) -> std::result::Result<T, atoll::Error>,
    ) -> Result<T> {
        self.store.database()?;
        let execution = self.canceller.begin();
        let done = execution.run(|| work(&self.session));
        execution.end();
        done
    }

    fn set(&self, key: &OptionConnection, value: &OptionValue) -> Result<()> {
        let name = key.as_ref();
        match key {
            OptionConnection::AutoCommit => {
                self.store.database()?;
                self.transactions.set_autocommit(truth(name, value)?)
            }
            OptionConnection::ReadOnly => {
                if truth(name, value)? == self.read_only {
                    return Ok(());
                }
                Err(missing(format!(
                    "{name}: that is said of the database, by the option atoll.read_only before it is opened"
                )))
            }
            OptionConnection::CurrentCatalog => check_place(Some(&text(name, value)?), None),
            OptionConnection::CurrentSchema => check_place(None, Some(&text(name, value)?)),
            OptionConnection::IsolationLevel => {
                let level = Isolation::of(&text(name, value)?)?;
                self.transactions.set_isolation(level)
            }
            _ => Err(no_option("connections", name)),
        }
    }

    fn option(&self, key: &OptionConnection) -> Result<String> {
        Ok(match key {
            OptionConnection::AutoCommit => self.transactions.autocommit().to_string(),
            OptionConnection::ReadOnly => self.read_only.to_string(),
            OptionConnection::CurrentCatalog => CATALOG.to_owned(),
            OptionConnection::CurrentSchema => SCHEMA.to_owned(),
            OptionConnection::IsolationLevel => self.transactions.isolation().value().to_owned(),
            key => return Err(not_set("connections", key.as_ref())),
        })
    }
}

impl Optionable for Connection {
    type Option = OptionConnection;

    fn set_option(&mut self, key: OptionConnection, value: OptionValue) -> Result<()> {
        caught(|| self.set(&key, &value))
    }

    fn get_option_string(&self, key: OptionConnection) -> Result<String> {
        caught(|| self.option(&key))
    }

    fn get_option_bytes(&self, key: OptionConnection) -> Result<Vec<u8>> {
        Ok(self.get_option_string(key)?.into_bytes())
    }

    fn get_option_int(&self, key: OptionConnection) -> Result<i64> {
        let name = key.as_ref().to_owned();
        as_int(&name, &self.get_option_string(key)?)
    }

    fn get_option_double(&self, key: OptionConnection) -> Result<f64> {
        let name = key.as_ref().to_owned();
        as_double(&name, &self.get_option_string(key)?)
    }
}

impl adbc_core::Connection for Connection {
    type StatementType = Statement;

    fn new_statement(&mut self) -> Result<Statement> {
        caught(|| {
            self.store.database()?;
            Ok(Statement::new(
                self.session.with_own_interrupter(),
                Arc::clone(&self.transactions),
                Arc::clone(&self.store),
            ))
        })
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(self.canceller.clone())
    }

    fn get_info(&self, codes: Option<HashSet<InfoCode>>) -> Result<Answer> {
        caught(|| Ok(Box::new(Held::one(info::batch(codes.as_ref())?)) as Answer))
    }

    fn get_objects(
        &self,
        depth: ObjectDepth,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        table_type: Option<Vec<&str>>,
        column_name: Option<&str>,
    ) -> Result<Answer> {
        let filter = Filter {
            catalog,
            schema: db_schema,
            table: table_name,
            types: table_type.as_deref(),
            column: column_name,
        };
        caught(|| {
            let found = self.asked(|session| catalog::objects(session, depth, &filter))?;
            Ok(Box::new(Held::one(found?)) as Answer)
        })
    }

    fn get_table_schema(
        &self,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: &str,
    ) -> Result<Schema> {
        caught(|| {
            check_place(catalog, db_schema)?;
            let text = format!("select * from {} limit 0", quoted(table_name));
            let rows = self.asked(|session| session.query(&text))?;
            Ok(atoll::owned_schema(rows.schema()).as_ref().clone())
        })
    }

    fn get_table_types(&self) -> Result<Answer> {
        caught(|| {
            let types: ArrayRef = Arc::new(StringArray::from(catalog::TABLE_TYPES.to_vec()));
            let schema = Arc::clone(&schemas::GET_TABLE_TYPES_SCHEMA);
            let batch = RecordBatch::try_new(schema, vec![types])?;
            Ok(Box::new(Held::one(batch)) as Answer)
        })
    }

    fn get_statistic_names(&self) -> Result<Answer> {
        // All statistics are those that ADBC names itself.
        caught(|| {
            let none = RecordBatch::new_empty(Arc::clone(&schemas::GET_STATISTIC_NAMES_SCHEMA));
            Ok(Box::new(Held::one(none)) as Answer)
        })
    }

    fn get_statistics(
        &self,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        _approximate: bool,
    ) -> Result<Answer> {
        let filter = Filter {
            catalog,
            schema: db_schema,
            table: table_name,
            types: None,
            column: None,
        };
        caught(|| {
            let counted = self.asked(statistics::counted)?;
            Ok(Box::new(Held::one(statistics::batch(&counted, &filter)?)) as Answer)
        })
    }

    fn commit(&mut self) -> Result<()> {
        caught(|| {
            self.store.database()?;
            self.transactions.finish("commit")
        })
    }

    fn rollback(&mut self) -> Result<()> {
        caught(|| {
            self.store.database()?;
            self.transactions.finish("rollback")
        })
    }

    fn read_partition(&self, _partition: impl AsRef<[u8]>) -> Result<Answer> {
        Err(missing(
            "there are no partitions of results: execute the query",
        ))
    }
}
