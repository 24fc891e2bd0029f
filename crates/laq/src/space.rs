//! Spaces: what the columns of a matrix stand for. And the ids of terms, instances and folds.

/// The number of a term among the [`Terms`](crate::term::Terms) of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TermId(pub u32);

/// The number of an instance: of a record that terms read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InstanceId(pub u32);

/// The number of a fold: of groups and what is found of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FoldId(pub u32);

/// What the columns of a matrix are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    /// The records of a table.
    Rows(usize),
    /// Combinations of labels.
    Labels(Vec<Domain>),
    /// There is one.
    One,
}

/// A set of labels. Attributes compose where they have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Domain {
    /// The values of a column; a foreign key has those of its parent's key.
    Column(usize, usize),
    /// The values of an expression.
    Computed(TermId),
}
