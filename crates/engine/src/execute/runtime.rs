//! What a query runs with.

use std::sync::Arc;

use fiber::{Nearness, Workers};
use memory::{Budget, Traffic};

use crate::cancel::Stop;

/// What a query runs with.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// They compute.
    pub workers: Arc<Workers>,
    /// Memory that results between stages are taken from.
    pub budget: Arc<Budget>,
    /// Bytes read, by node.
    pub traffic: Arc<Traffic>,
    /// Which node is how near to which.
    pub nearness: Nearness,
    /// Raised to give the query up.
    pub stop: Stop,
}
