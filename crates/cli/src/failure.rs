//! Why a command failed, and how that is reported.

/// Why a command failed.
pub enum Failure {
    /// An error that is still to be reported, in one line.
    Error(anyhow::Error),
    /// An error that has been reported already.
    Told,
    /// The exit status of a command that was run for the user.
    Status(u8),
    /// The user pressed Ctrl-C.
    Interrupted,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        if interrupted(&error) {
            Failure::Interrupted
        } else {
            Failure::Error(error)
        }
    }
}

/// Whether what failed only stopped because it was asked to.
fn interrupted(error: &anyhow::Error) -> bool {
    #[cfg(feature = "sql")]
    if let Some(atoll::Error::Interrupted) = error.downcast_ref() {
        return true;
    }
    if let Some(arrayfile::Error::Interrupted) = error.downcast_ref() {
        return true;
    }
    matches!(error.downcast_ref(), Some(graph::Error::Interrupted))
}

/// An error in one line, followed by those of its causes that it does not mention itself.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // The library's errors mention their causes themselves.
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
