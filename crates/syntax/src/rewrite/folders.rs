//! Folders named as files are: `from 'hive'`.

use std::ops::ControlFlow;
use std::path::{MAIN_SEPARATOR, Path};

use messages::Error;
use sqlparser::ast::{ObjectName, ObjectNamePart, VisitorMut};

use crate::names::{is_literal, looks_like_file};

/// Ends the name of a folder that stands in single quotes, where a query names a table, with a separator: it reads as the
/// name of a table otherwise.
pub(super) struct Folders;

impl VisitorMut for Folders {
    type Break = Box<Error>;

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Self::Break> {
        if let [ObjectNamePart::Identifier(name)] = &mut relation.0[..]
            && is_literal(name)
            && !looks_like_file(&name.value)
            && Path::new(&name.value).is_dir()
        {
            name.value.push(MAIN_SEPARATOR);
        }
        ControlFlow::Continue(())
    }
}
