//! Reading tables: providers and scan operators over stored tables and over files, and predicates on stored codes.

pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod like;
pub(crate) mod operator;
pub(crate) mod predicate;
pub(crate) mod provider;
pub(crate) mod query;
