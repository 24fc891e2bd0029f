//! Which graph of a store is meant, and its vertices as JSON.

use std::sync::Arc;

use anyhow::anyhow;
use graph::Graph;
use store::Store;

use crate::failure::Failure;

/// The graph of that name; without a name the only one of the store.
///
/// # Errors
/// If there is no such graph; without a name also if there are several.
pub async fn open(store: &Arc<Store>, name: Option<&str>) -> Result<Arc<Graph>, Failure> {
    let snapshot = store.snapshot();
    if let Some(name) = name {
        return Ok(Graph::open(&snapshot, name).await?);
    }
    let graphs = graph::list(&snapshot).await?;
    let path = store.path().display();
    match graphs.as_slice() {
        [one] => Ok(Graph::open(&snapshot, &one.name).await?),
        [] => Err(anyhow!("{path} has no graphs; `atoll load graph {path} FILE` loads one").into()),
        several => {
            let names: Vec<_> = several.iter().map(|graph| graph.name.as_str()).collect();
            let names = names.join(", ");
            Err(anyhow!("{path} has several graphs: choose one of {names} with --graph").into())
        }
    }
}

/// The id of a vertex as JSON: a string beyond what every reader of JSON takes exactly.
pub fn id(vertex: i64) -> serde_json::Value {
    if vertex.unsigned_abs() <= 1 << 53 {
        vertex.into()
    } else {
        vertex.to_string().into()
    }
}
