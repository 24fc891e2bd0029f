//! The types of PostgreSQL whose values are numbers of things, and the functions that stand for casts to them and from them.

use messages::Error;

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A table, view, index or sequence: `regclass`.
    Relation,
    /// A type: `regtype`.
    Type,
    /// A schema: `regnamespace`.
    Schema,
    /// A role: `regrole`.
    Role,
    /// A function: `regproc`, `regprocedure`.
    Routine,
    /// An operator: `regoperator`.
    Operator,
}

/// The names of a kind: of its type, which the function from a name to the number has, too; of the function that gives NULL
/// for what is not there; and of the function from a number to the name, which statements cannot call.
pub(super) struct Names {
    pub kind: Kind,
    pub cast: &'static str,
    pub optional: &'static str,
    pub text: &'static str,
}

/// Whether the function of this name gives the name of something, as which a value of such a type is shown.
pub fn gives_name(function: &str) -> bool {
    NAMES.iter().any(|own| own.text == function)
}

pub(super) const NAMES: [Names; 6] = [
    Names {
        kind: Kind::Relation,
        cast: "regclass",
        optional: "to_regclass",
        text: "regclass text",
    },
    Names {
        kind: Kind::Type,
        cast: "regtype",
        optional: "to_regtype",
        text: "regtype text",
    },
    Names {
        kind: Kind::Schema,
        cast: "regnamespace",
        optional: "to_regnamespace",
        text: "regnamespace text",
    },
    Names {
        kind: Kind::Role,
        cast: "regrole",
        optional: "to_regrole",
        text: "regrole text",
    },
    Names {
        kind: Kind::Routine,
        cast: "regproc",
        optional: "to_regproc",
        text: "regproc text",
    },
    Names {
        kind: Kind::Operator,
        cast: "regoperator",
        optional: "to_regoperator",
        text: "regoperator text",
    },
];

impl Kind {
    /// The kind that a type is of.
    pub fn of_type(name: &str) -> Option<Kind> {
        let name = match name {
            "regprocedure" => "regproc",
            name => name,
        };
        NAMES
            .iter()
            .find(|own| own.cast == name)
            .map(|own| own.kind)
    }

    /// The kind of which a function gives numbers.
    pub fn of_function(name: &str) -> Option<Kind> {
        let mut all = NAMES.iter();
        let found = all.find(|own| own.cast == name || own.optional == name);
        found.map(|own| own.kind)
    }

    /// All its names.
    pub(super) fn names(self) -> &'static Names {
        let found = NAMES.iter().find(|own| own.kind == self);
        found.unwrap_or(&NAMES[0])
    }

    /// The name of its type, and of the function from a name to the number.
    pub fn cast(self) -> &'static str {
        self.names().cast
    }

    /// The name of the function from a number to the name.
    pub fn text(self) -> &'static str {
        self.names().text
    }

    /// The error for a name that nothing has.
    pub(super) fn unknown(self, name: &str) -> Error {
        let name = name.trim();
        let (code, what) = match self {
            Kind::Relation => {
                return Error::UnknownTable {
                    name: name.to_owned(),
                    candidates: Vec::new(),
                    position: None,
                };
            }
            Kind::Type => ("42704", "type"),
            Kind::Schema => ("3F000", "schema"),
            Kind::Role => ("42704", "role"),
            Kind::Routine => ("42883", "function"),
            Kind::Operator => ("42883", "operator"),
        };
        Error::coded(code, format!("{what} \"{name}\" does not exist"))
    }
}
