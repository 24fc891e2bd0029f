//! The three executors.

/// Runs the pipelines of a program. All executors give the same answer; rows without an order may come in a
/// different order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// Each worker takes a morsel of the source through the whole pipeline.
    #[default]
    Fused,
    /// Each operator is a set of tasks; blocks of rows pass from one operator to the next through bounded channels.
    Stream,
    /// Some tasks set up the blocks of a ring, others process them.
    Staged,
}

impl Executor {
    /// The executor's name as users write it: `fused`, `stream`, `staged`.
    pub fn name(self) -> &'static str {
        match self {
            Executor::Fused => "fused",
            Executor::Stream => "stream",
            Executor::Staged => "staged",
        }
    }
}
