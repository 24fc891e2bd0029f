//! What calls of all clients share.

use std::sync::Arc;

use crate::flight::login::Tokens;
use crate::flight::prepared::Statements;
use crate::flight::running::Running;
use crate::flight::transactions::Transactions;
use crate::shared::Shared;

/// What calls of all clients share.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub shared: Arc<Shared>,
    pub tokens: Tokens,
    pub transactions: Arc<Transactions>,
    pub prepared: Statements,
    pub running: Running,
}

impl Shelf {
    pub(crate) fn new(shared: &Arc<Shared>) -> Shelf {
        Shelf {
            shared: Arc::clone(shared),
            tokens: Tokens::default(),
            transactions: Arc::default(),
            prepared: Statements::default(),
            running: Running::default(),
        }
    }
}
