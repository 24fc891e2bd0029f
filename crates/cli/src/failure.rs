//! Why a command failed, and how that is told.

/// Why a command failed.
pub enum Failure {
    /// To be told in one line.
    Error(anyhow::Error),
    /// Told already.
    Told,
    /// That of a command which was run for the user: its exit status.
    Status(u8),
    /// By Ctrl-C.
    Interrupted,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        match error.downcast_ref::<atoll::Error>() {
            Some(atoll::Error::Interrupted) => Failure::Interrupted,
            _ => Failure::Error(error),
        }
    }
}

/// An error, with its causes as far as they say more, as one line.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // The library's errors tell of their causes themselves.
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
