//! Why a command failed, and how that is reported.

/// Why a command failed.
pub enum Failure {
    /// An error that is to be reported in one line.
    Error(anyhow::Error),
    /// The error was reported already.
    Told,
    /// A command that was run for the user failed with this exit status.
    Status(u8),
    /// The user pressed Ctrl-C.
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

/// An error as one line, with those of its causes that add something.
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
