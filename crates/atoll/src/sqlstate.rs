//! SQLSTATE, the codes by which clients of every kind tell errors apart.

use crate::error::Error;

const SYNTAX: &str = "42601";
const NOT_SUPPORTED: &str = "0A000";
const CANCELLED: &str = "57014";
const NO_STATEMENT: &str = "26000";
const BAD_VALUE: &str = "22P02";
const BAD_COPY: &str = "22P04";
const BAD_SETTING: &str = "22023";
/// A value for a column that makes its own.
const GENERATED: &str = "428C9";
const INTERNAL: &str = "XX000";

impl Error {
    /// The code that PostgreSQL has for an error of this kind: five digits and letters, as of the SQL standard.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let database = atoll::Database::create(directory.path().join("a.atoll"), &atoll::Options::default())?;
    /// let error = database.session().sql("select 1 / 0").unwrap_err();
    /// assert_eq!(error.sqlstate(), "22012");
    /// # Ok(())
    /// # }
    /// ```
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Error::Sql(error) => of_sql(error),
            Error::Store(error) => of_store(error),
            Error::Table(error) => of_table(error),
            Error::Interrupted => CANCELLED,
            Error::Input { .. } => BAD_COPY,
            _ => INTERNAL,
        }
    }
}

fn of_sql(error: &sql::Error) -> &'static str {
    use sql::Error;
    match error {
        Error::Syntax { .. } => SYNTAX,
        Error::UnknownTable { .. } => "42P01",
        Error::UnknownColumn { .. } => "42703",
        Error::Unsupported { message } => by_message(message, UNSUPPORTED, NOT_SUPPORTED),
        Error::Invalid {
            code: Some(code), ..
        } => code,
        Error::Denied { .. } => "42501",
        Error::Invalid { message, .. } => match of_schema(message) {
            Some(code) => code,
            None => by_message(message, INVALID, "42000"),
        },
        Error::TableExists { .. } => "42P07",
        Error::Constraint { message } => by_message(message, CONSTRAINT, "23000"),
        Error::Transaction { message } => by_message(message, TRANSACTION, "25000"),
        Error::Conflict { message } => by_message(message, CONFLICT, "55P03"),
        Error::Arithmetic { message } => by_message(message, ARITHMETIC, "22000"),
        Error::Memory { .. } => "53200",
        Error::File { .. } => "58030",
        Error::TooComplex { .. } => "54001",
        Error::Cancelled => CANCELLED,
        Error::Execution { message } => by_message(message, ARITHMETIC, "22000"),
        Error::Store(error) => of_store(error),
        Error::Table(error) => of_table(error),
        _ => INTERNAL,
    }
}

/// The code of a message about a schema.
fn of_schema(message: &str) -> Option<&'static str> {
    let about = message.strip_prefix("schema \"")?;
    if about.ends_with("\" already exists") {
        Some("42P06")
    } else {
        about.ends_with("\" does not exist").then_some("3F000")
    }
}

/// Words of a message, and the code that they stand for.
type Words = &'static [(&'static str, &'static str)];

const UNSUPPORTED: Words = &[("reads and writes no files", "42501")];

const INVALID: Words = &[
    ("cannot insert a non-DEFAULT value", GENERATED),
    ("can only be updated to DEFAULT", GENERATED),
    ("no schema has been selected to create in", "3F000"),
    ("unacceptable schema name", "42939"),
    ("permission denied", "42501"),
    ("cannot create temporary relation", "42P16"),
    ("sequence must be in same schema", "55000"),
    ("already exists in schema", "42P07"),
    ("has not been populated", "55000"),
    ("cannot change materialized view", "42809"),
    ("is not a materialized view", "42809"),
    ("\" is not a table", "42809"),
    ("\" is not a view", "42809"),
    ("materialized view \"", "42P01"),
    ("MERGE command cannot affect row a second time", "21000"),
    ("more than one row returned by a subquery", "21000"),
    ("ON CONFLICT DO UPDATE command cannot affect row", "21000"),
    ("specified more than once: it is used", "42712"),
    ("used in COPY", "42P10"),
    ("is not immutable", "42P17"),
    ("cannot use generated column", "42P17"),
    ("is not an identity column", "55000"),
    ("is already an identity column", "55000"),
    ("must be declared NOT NULL before", "55000"),
    ("already has a default value", "55000"),
    ("is not a stored generated column", "55000"),
    ("is an identity column", SYNTAX),
    ("is a generated column", SYNTAX),
    ("identity column type must be", BAD_SETTING),
    ("sequence cannot be owned by", "42809"),
    ("nextval: reached", "2200H"),
    ("is not yet defined in this session", "55000"),
    ("is not a sequence", "42809"),
    ("sequence type must be", BAD_SETTING),
    ("is out of range for sequence", BAD_SETTING),
    ("INCREMENT must not be zero", BAD_SETTING),
    ("must be less than MAXVALUE", BAD_SETTING),
    ("cannot be less than MINVALUE", BAD_SETTING),
    ("cannot be greater than MAXVALUE", BAD_SETTING),
    ("must be greater than zero", BAD_SETTING),
    ("invalid input syntax", BAD_VALUE),
    ("cannot be read as", BAD_VALUE),
    ("operator does not exist", "42883"),
    ("step size cannot equal zero", BAD_SETTING),
    ("role \"", "42704"),
    (") does not exist: it", "42883"),
    ("regular expression", "2201B"),
    ("could not identify", "42883"),
    ("cannot be matched", "42804"),
    ("cannot cast type", "42846"),
    ("no function", "42883"),
    ("invalid function", "42883"),
    ("ambiguous", "42702"),
    ("prepared statement", NO_STATEMENT),
    ("\" already exists", "42P07"),
    ("relation \"", "42P01"),
    ("sequence \"", "42P01"),
    ("group by", "42803"),
    ("type", "42804"),
];

const CONSTRAINT: Words = &[
    ("because other objects depend on it", "2BP01"),
    ("requires it", "2BP01"),
    ("because it is required by the database system", "2BP01"),
    ("NULL", "23502"),
    ("duplicate", "23505"),
    ("unique", "23505"),
    ("primary key", "23505"),
    ("refer", "23503"),
    ("foreign", "23503"),
    ("check", "23514"),
];

const TRANSACTION: Words = &[
    ("aborted", "25P02"),
    ("had failed", "25P02"),
    ("read-only", "25006"),
    ("savepoint", "3B001"),
    ("already a transaction", "25001"),
    ("no transaction", "25P01"),
];

const CONFLICT: Words = &[("could not serialize", "40001")];

const ARITHMETIC: Words = &[
    ("unsupported Unicode escape sequence", "22P05"),
    ("invalid input syntax", BAD_VALUE),
    ("is out of bounds for sequence", "22003"),
    ("cannot cast string", BAD_VALUE),
    ("zero", "22012"),
    ("overflow", "22003"),
    ("out of range", "22003"),
    ("does not fit", "22003"),
    ("date", "22008"),
    ("cannot", BAD_VALUE),
    ("invalid", BAD_VALUE),
];

fn by_message(message: &str, words: Words, otherwise: &'static str) -> &'static str {
    let found = words.iter().find(|(word, _)| message.contains(word));
    found.map_or(otherwise, |(_, code)| *code)
}

fn of_store(error: &store::Error) -> &'static str {
    match error {
        store::Error::Full { .. } => "53100",
        store::Error::ReadOnly { .. } => "25006",
        store::Error::Busy { .. } | store::Error::Changed { .. } => "55006",
        store::Error::Damaged { .. } => "XX001",
        _ => "58030",
    }
}

fn of_table(error: &table::Error) -> &'static str {
    match error {
        table::Error::NoTable { .. } => "42P01",
        table::Error::Exists { .. } => "42P07",
        table::Error::NoColumn { .. } => "42703",
        table::Error::Null { .. } => "23502",
        table::Error::TooLong { .. } => "22001",
        table::Error::Mismatch { .. } => "42804",
        table::Error::Unsupported { .. } => NOT_SUPPORTED,
        table::Error::Damaged { .. } => "XX001",
        table::Error::Store(error) => of_store(error),
        _ => INTERNAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sequences_refuse_has_postgresqls_codes() {
        let invalid = |message: &str| sql::Error::Invalid {
            code: None,
            message: message.into(),
            position: None,
        };
        for (error, wanted) in [
            (
                invalid("nextval: reached maximum value of sequence \"s\" (3)"),
                "2200H",
            ),
            (
                invalid("currval of sequence \"s\" is not yet defined in this session"),
                "55000",
            ),
            (invalid("schema \"s\" already exists"), "42P06"),
            (invalid("schema \"s\" does not exist"), "3F000"),
            (
                invalid("relation \"t\" already exists in schema \"s\""),
                "42P07",
            ),
            (invalid("relation \"s\" already exists"), "42P07"),
            (invalid("relation \"s\" does not exist"), "42P01"),
            (invalid("sequence \"s\" does not exist"), "42P01"),
            (invalid("\"t\" is not a sequence"), "42809"),
            (invalid("INCREMENT must not be zero"), "22023"),
            (
                invalid("MAXVALUE (40000) is out of range for sequence data type smallint"),
                "22023",
            ),
            (
                sql::Error::Constraint {
                    message: "cannot drop sequence s because other objects depend on it".into(),
                },
                "2BP01",
            ),
            (
                sql::Error::Arithmetic {
                    message: "setval: value 0 is out of bounds for sequence \"s\" (1..9)".into(),
                },
                "22003",
            ),
        ] {
            assert_eq!(Error::Sql(error).sqlstate(), wanted);
        }
    }

    #[test]
    fn what_columns_refuse_has_postgresqls_codes() {
        let invalid = |message: &str| sql::Error::Invalid {
            code: None,
            message: message.into(),
            position: None,
        };
        for (error, wanted) in [
            (
                invalid(
                    "cannot insert a non-DEFAULT value into column \"id\": Column \"id\" is an identity column",
                ),
                "428C9",
            ),
            (
                invalid(
                    "column \"b\" can only be updated to DEFAULT: Column \"b\" is a generated column.",
                ),
                "428C9",
            ),
            (
                invalid(
                    "column \"b\" is a generated column: Generated columns cannot be used in COPY.",
                ),
                "42P10",
            ),
            (invalid("generation expression is not immutable"), "42P17"),
            (
                invalid("column \"id\" of relation \"t\" is not an identity column"),
                "55000",
            ),
            (
                invalid("column \"id\" of relation \"t\" is an identity column"),
                "42601",
            ),
            (
                sql::Error::Constraint {
                    message: "cannot drop sequence s because column id of table t requires it"
                        .into(),
                },
                "2BP01",
            ),
            (
                invalid("MERGE command cannot affect row a second time: Ensure ..."),
                "21000",
            ),
            (
                invalid("materialized view \"m\" has not been populated: Use ..."),
                "55000",
            ),
            (invalid("materialized view \"m\" does not exist"), "42P01"),
            (
                invalid("cannot change materialized view \"m\": `refresh ...` does"),
                "42809",
            ),
        ] {
            assert_eq!(Error::Sql(error).sqlstate(), wanted);
        }
    }
}
