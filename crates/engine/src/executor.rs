//! The three executors.

/// What runs the pipelines of a program. All give the same answer; rows without an order may come in another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// Each worker takes a piece of the source through the whole pipeline (L4).
    #[default]
    Fused,
    /// Each operator is tasks of its own, and blocks of rows go from one to the next through bounded channels (L5).
    Stream,
    /// Some tasks set blocks of a ring up, others process them (L6).
    Staged,
}

impl Executor {
    /// Its name, as users write it: `fused`, `stream`, `staged`.
    pub fn name(self) -> &'static str {
        match self {
            Executor::Fused => "fused",
            Executor::Stream => "stream",
            Executor::Staged => "staged",
        }
    }
}
