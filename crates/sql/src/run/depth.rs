//! How deep views nest in a statement.

use syntax::views::View;

use crate::error::{Error, MAX_NESTING, Result};

/// How many views a query stands within, and how deep their trees are together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Depth {
    views: usize,
    tree: usize,
    /// The columns of views are asked for, and not their rows.
    describes: bool,
}

/// Most levels in the trees of views that are named by each other.
const DEEPEST: usize = 500;

impl Depth {
    /// That of an expression that a table keeps.
    pub(super) fn of_kept() -> Depth {
        Depth {
            views: 1,
            ..Depth::default()
        }
    }

    /// Whether the query is the statement's own, and not that of a view.
    pub(super) fn is_outermost(self) -> bool {
        self.views == 0
    }

    /// The same where the columns of views are asked for, and not their rows.
    pub(super) fn describing(self) -> Depth {
        Depth {
            describes: true,
            ..self
        }
    }

    /// Whether the columns of views are asked for.
    pub(super) fn is_describing(self) -> bool {
        self.describes
    }

    /// That of the query of `view`.
    ///
    /// # Errors
    /// [`Error::TooComplex`]; so end views that name each other, if there ever are such.
    pub(super) fn within(self, view: &View) -> Result<Depth> {
        let deeper = Depth {
            views: self.views + 1,
            tree: self.tree + view.depth,
            describes: self.describes,
        };
        if deeper.views > MAX_NESTING || deeper.tree > DEEPEST {
            return Err(Error::too_deep());
        }
        Ok(deeper)
    }
}
