//! Options of an import.

pub use ingest::{Compression, DateForm, Format as FileFormat, Options as FileOptions};

/// What to do with a table that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Fail if it holds rows: the table must be new, or empty as `create table` leaves it.
    #[default]
    Refuse,
    /// Add the rows to it. A table that does not exist is created.
    Append,
    /// Replace its rows.
    Replace,
}

/// A foreign key by names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Columns of the table that is loaded.
    pub columns: Vec<String>,
    /// The table referred to.
    pub parent: String,
    /// Its columns, as many as `columns`.
    pub parent_columns: Vec<String>,
}

/// How to import. By default everything is inferred from the files, and a table with rows is refused.
///
/// ```
/// let mut options = atoll::ImportOptions::default();
/// options.primary_key = vec!["id".to_owned()];
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// `create table ...`, or its list of columns and keys; inferred from the file where absent.
    pub schema: Option<String>,
    /// Names of the primary key's columns; they become NOT NULL.
    pub primary_key: Vec<String>,
    /// Keys are only declared: nobody looks whether they are unique. For bulk loads of rows that are known to be.
    pub declare_keys: bool,
    /// Foreign keys, which are only declared.
    pub foreign_keys: Vec<Reference>,
    /// How the files are laid out: format, delimiter, header, types, representation of NULL, ...
    pub files: FileOptions,
    /// What to do with a table that exists.
    pub existing: Existing,
}
