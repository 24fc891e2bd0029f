//! `alter view v rename column a to b`.

/// The column of a view that gets another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewColumn {
    /// The view, as the statement [writes](crate::names::written) it.
    pub view: String,
    pub if_exists: bool,
    pub from: String,
    pub to: String,
}
