//! What a query runs with.

use std::sync::Arc;

use memory::{Budget, Traffic};
use workers::{Nearness, Workers};

use crate::cancel::Stop;

/// What a query runs with.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The workers that compute.
    pub workers: Arc<Workers>,
    /// The memory limit, from which all operators reserve.
    pub budget: Arc<Budget>,
    /// Counts the bytes read, by node.
    pub traffic: Arc<Traffic>,
    /// The NUMA nodes by distance.
    pub nearness: Nearness,
    /// Cancels the query.
    pub stop: Stop,
}
