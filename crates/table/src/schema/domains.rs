//! Domains: types that are another type whose values must satisfy conditions; and composite types, which give a struct a name.
//!
//! A column of a domain stores values of the type behind it; this crate keeps what is said of them, and whoever writes rows
//! sees to it.

use arrow::datatypes::DataType;

use crate::schema::definition::Check;
use crate::schema::enums::is_enum;
use crate::schema::types::{json_kind, stored_type};

/// A type with conditions on its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its name in the catalog.
    pub name: String,
    /// Whether it is a composite type: its values are structs, it has no conditions of its own, and columns may be arrays of it.
    pub composite: bool,
    /// The type of its values, which is no domain.
    pub data_type: DataType,
    /// That type in the language of whoever declared it, with what the Arrow type does not say: lengths of texts, digits.
    pub text: String,
    /// The name in the catalog of the domain that it was made from: its conditions come first.
    pub parent: Option<String>,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// What a column without a default of its own has: an expression in the language of whoever declared it.
    pub default: Option<String>,
    /// Conditions on a value, which they call `value`.
    pub checks: Vec<Check>,
}

impl Domain {
    /// Whether it can be one: its values can be stored, and no two checks have one name.
    pub(crate) fn is_sound(&self) -> bool {
        let mut names = std::collections::HashSet::new();
        stored_type(&self.data_type).as_ref() == Some(&self.data_type)
            && self.parent.as_ref() != Some(&self.name)
            && (!self.composite || self.is_plain_struct())
            && self.checks.iter().all(|check| names.insert(&check.name))
    }

    /// Whether it is a struct of which nothing else is said.
    fn is_plain_struct(&self) -> bool {
        let is_struct = matches!(self.data_type, DataType::Struct(_))
            && json_kind(&self.data_type).is_none()
            && !is_enum(&self.data_type);
        is_struct
            && self.parent.is_none()
            && !self.not_null
            && self.default.is_none()
            && self.checks.is_empty()
    }

    /// A name for a check that none has: that of the domain, and a number behind it if another has that.
    pub fn free_name(&self) -> String {
        let wanted = format!("{}_check", crate::schema::base_of(&self.name));
        let taken = |name: &str| self.checks.iter().any(|check| check.name == name);
        let mut names = (1u32..).map(|number| format!("{wanted}{number}"));
        if !taken(&wanted) {
            return wanted;
        }
        names.find(|name| !taken(name)).unwrap_or(wanted)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Fields};

    use super::*;

    #[test]
    fn checks_get_names() {
        let check = |name: &str| Check {
            name: name.to_owned(),
            text: "value > 0".to_owned(),
            unchecked: false,
        };
        let mut own = Domain {
            name: "s\u{1}d".to_owned(),
            composite: false,
            data_type: DataType::Int32,
            text: "integer".to_owned(),
            parent: None,
            not_null: false,
            default: None,
            checks: vec![],
        };
        for wanted in ["d_check", "d_check1", "d_check2"] {
            assert_eq!(own.free_name(), wanted);
            own.checks.push(check(wanted));
            assert!(own.is_sound());
        }
        own.checks.push(check("d_check"));
        assert!(!own.is_sound());
    }

    #[test]
    fn composite_types_are_structs_alone() {
        let field = |name: &str| Field::new(name, DataType::Int32, true);
        let own = Domain {
            name: "s\u{1}c".to_owned(),
            composite: true,
            data_type: DataType::Struct(Fields::from(vec![field("a"), field("b")])),
            text: "STRUCT(\"a\" INT, \"b\" INT)".to_owned(),
            parent: None,
            not_null: false,
            default: None,
            checks: vec![],
        };
        assert!(own.is_sound());
        let number = Domain {
            data_type: DataType::Int32,
            ..own.clone()
        };
        let not_null = Domain {
            not_null: true,
            ..own.clone()
        };
        let twice = Domain {
            data_type: DataType::Struct(Fields::from(vec![field("a"), field("a")])),
            ..own.clone()
        };
        for other in [number, not_null, twice] {
            assert!(!other.is_sound());
        }
    }
}
