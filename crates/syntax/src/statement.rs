//! Statements as they are read: one type for all kinds.

use crate::absent::DropAbsent;
use crate::arrays::ArrayStatement;
use crate::begin::ModesStatement;
use crate::changes::TableChange;
use crate::constraints::SetConstraints;
use crate::copy::{CopyFrom, CopyTo, Through};
use crate::domains::DomainStatement;
use crate::identity::AlterIdentity;
use crate::like::CreateLike;
use crate::maintenance::Maintenance;
use crate::materialized::MaterializedStatement;
use crate::merge::Merge;
use crate::prepared::Prepared;
use crate::roles::RoleStatement;
use crate::schemas::SchemaStatement;
use crate::sequences::SequenceStatement;
use crate::steps::Touched;
use crate::summarize::ColumnsOf;
use crate::types::TypeStatement;
use sqlparser::ast::{CreateView, Expr, Query, Statement as Sql};

/// One statement, by what runs it.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Anything of the SQL grammar.
    Sql(Box<Sql>),
    /// `insert`, `update` or `delete` with a `returning`, which is a query over the rows that are written.
    Returning {
        /// The statement that writes.
        statement: Box<Sql>,
        /// The query over the rows that it has written.
        query: Box<Query>,
    },
    /// `prepare name as ...`.
    Prepare {
        /// The name of the statement.
        name: String,
        /// What is prepared.
        prepared: Prepared,
    },
    /// `execute name (arguments)`.
    Execute {
        /// The name of the statement.
        name: String,
        /// The values of its parameters.
        arguments: Vec<Expr>,
    },
    /// `deallocate name`, or `all`.
    Deallocate(Option<String>),
    /// `create view`, and its whole text.
    View {
        /// What is created.
        view: Box<CreateView>,
        /// Its query, as it is written.
        text: String,
    },
    /// `explain [analyze] [verbose] statement`, or `explain (analyze, verbose, format json) statement`.
    Explain {
        /// Whether it runs, too.
        analyze: bool,
        /// With the logical plan.
        verbose: bool,
        /// As JSON.
        json: bool,
        /// What is explained.
        statement: Box<Statement>,
    },
    /// `describe` of a query or a file, and `summarize`.
    Columns(ColumnsOf),
    /// `create array`, `drop array`, and versions of arrays.
    Array(ArrayStatement),
    /// `create schema` and its like, `set search_path` and `show search_path`.
    Schema(SchemaStatement),
    /// `create schema`, and the statements that make what is in it.
    NewSchema {
        /// The schema.
        create: SchemaStatement,
        /// What is created in it.
        elements: Vec<Statement>,
    },
    /// `create role` and its like, `grant`, `revoke`, `alter ... owner to`, `set role`.
    Role(RoleStatement),
    /// `create sequence`, `alter sequence`.
    Sequence(SequenceStatement),
    /// `create domain`, `alter domain`, `drop domain`.
    Domain(DomainStatement),
    /// `create type`, `alter type`, `drop type`.
    Type(TypeStatement),
    /// `create materialized view`, `refresh materialized view`.
    Materialized(MaterializedStatement),
    /// `create table ... (like ...)`.
    Like(CreateLike),
    /// `merge`.
    Merge(Box<Merge>),
    /// `alter table ... alter column ...` about what makes the column's values.
    Identity(AlterIdentity),
    /// `drop` of something that there can be none of.
    Absent(DropAbsent),
    /// `reindex`, `analyze`, `vacuum`, `cluster`.
    Maintenance(Maintenance),
    /// A change of a table that the parser does not know.
    Change(TableChange),
    /// The changes of an `alter table`, which are made together or not at all.
    Changes(Vec<Statement>),
    /// `set constraints`.
    Constraints(SetConstraints),
    /// `begin`, `start transaction`, `set transaction`.
    Modes(ModesStatement),
    /// A `with` whose parts change tables: the parts, and what reads them.
    Steps {
        /// The parts of `with` that write, in their order.
        before: Vec<Step>,
        /// The statement that reads what they return.
        last: Box<Statement>,
        /// What the last reads and changes.
        touched: Touched,
    },
    /// `copy table|(query) to 'file'`.
    CopyTo(CopyTo),
    /// `copy table [(columns)] from 'file'`.
    CopyFrom(CopyFrom),
    /// `copy ... to stdout` and `copy ... from stdin`.
    Through(Through),
}

/// A part of a `with` that changes tables.
#[derive(Clone, Debug)]
pub struct Step {
    /// The name in `with`.
    pub name: String,
    /// The names that its columns get, if it says any.
    pub columns: Vec<String>,
    /// What it does.
    pub statement: Statement,
    /// Which tables it reads and writes.
    pub touched: Touched,
}

/// A statement, and how deep its tree may be at most.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// What it says.
    pub statement: Statement,
    /// How deep its tree is.
    pub depth: usize,
}
