//! SQLSTATE, the codes by which clients of every kind tell errors apart.

use crate::error::Error;

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
            Error::Sql(error) => error.sqlstate(),
            Error::Store(error) => error.sqlstate(),
            Error::Table(error) => error.sqlstate(),
            Error::Interrupted => "57014",
            Error::Input { .. } => "22P04",
            _ => INTERNAL,
        }
    }
}
