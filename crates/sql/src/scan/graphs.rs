//! Graphs as tables: `select ... from bfs('web', 42)`, and the edges of a graph.
//!
//! What a statement looks up when it is planned is only whether the graph and the vertex are there. The kernel of the
//! crate `graph` runs when the plan does, on the workers and in the memory of the instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{DataFusionError, Result as DataFusionResult};
use datafusion_expr::TableSource;
use futures::StreamExt;
use graph::{Crew, EdgeRows, Graph};
use memory::Budget;
use store::Snapshot;
use syntax::graphs::Call;
use workers::Workers;

use crate::error::{Error, Result};
use crate::scan::rows::{Batches, RowSource, RowTable};

/// Rows of a batch.
const ROWS: usize = 8192;

/// The table that `call` makes of the graphs of `snapshot`.
///
/// # Errors
/// If there is no such graph or vertex; those of reading its metadata.
pub(crate) async fn table(
    snapshot: &Snapshot,
    call: &Call,
    workers: &Arc<Workers>,
    budget: &Arc<Budget>,
) -> Result<Arc<dyn TableSource>> {
    let work = match call {
        Call::Graphs => Work::Graphs(snapshot.clone()),
        Call::Vertices { graph } => Work::Vertices(open(snapshot, graph).await?),
        Call::Edges { graph } => Work::Edges(open(snapshot, graph).await?),
        Call::Bfs { graph, source } => {
            let graph = open(snapshot, graph).await?;
            let source = graph.find(*source).await?;
            Work::Bfs(graph, source)
        }
        Call::Pagerank { graph, options } => Work::Pagerank(open(snapshot, graph).await?, *options),
        Call::Components { graph } => Work::Components(open(snapshot, graph).await?),
        Call::Triangles { graph } => Work::Triangles(open(snapshot, graph).await?),
    };
    let schema = work.schema();
    let kernel = Kernel {
        work,
        schema: Arc::clone(&schema),
        workers: Arc::clone(workers),
        budget: Arc::clone(budget),
    };
    Ok(Arc::new(RowTable::new(schema, Arc::new(kernel))))
}

async fn open(snapshot: &Snapshot, name: &str) -> Result<Arc<Graph>> {
    Ok(Graph::open(snapshot, name).await?)
}

/// What is done when the plan runs.
#[derive(Clone, Debug)]
enum Work {
    Graphs(Snapshot),
    Vertices(Arc<Graph>),
    Edges(Arc<Graph>),
    /// With the number of the source.
    Bfs(Arc<Graph>, u32),
    Pagerank(Arc<Graph>, graph::RankOptions),
    Components(Arc<Graph>),
    Triangles(Arc<Graph>),
}

impl Work {
    fn schema(&self) -> SchemaRef {
        let whole = |name: &str| Field::new(name, DataType::Int64, false);
        let fields = match self {
            Work::Graphs(_) => vec![
                Field::new("name", DataType::Utf8, false),
                whole("vertices"),
                whole("edges"),
                Field::new("directed", DataType::Boolean, false),
                Field::new("weighted", DataType::Boolean, false),
                Field::new("ordered_by", DataType::Utf8, false),
                whole("pages"),
            ],
            Work::Vertices(_) => vec![whole("vertex"), whole("edges_out"), whole("edges_in")],
            Work::Edges(graph) => {
                let weight = Field::new("weight", DataType::Float64, false);
                let weight = graph.summary().weighted.then_some(weight);
                let ends = [whole("source"), whole("target")];
                ends.into_iter().chain(weight).collect()
            }
            Work::Bfs(..) => vec![whole("vertex"), whole("level")],
            Work::Pagerank(..) => vec![
                whole("vertex"),
                Field::new("rank", DataType::Float64, false),
            ],
            Work::Components(_) => vec![whole("vertex"), whole("component")],
            Work::Triangles(_) => vec![whole("triangles")],
        };
        Arc::new(Schema::new(fields))
    }
}

/// What computes the rows of such a table.
#[derive(Debug)]
struct Kernel {
    work: Work,
    schema: SchemaRef,
    workers: Arc<Workers>,
    budget: Arc<Budget>,
}

impl RowSource for Kernel {
    fn begin(&self) -> Vec<Batches> {
        let crew = Crew::new(Arc::clone(&self.workers), Arc::clone(&self.budget));
        vec![rows(self.work.clone(), Arc::clone(&self.schema), crew).boxed()]
    }
}

/// Stops the kernel when the stream goes, as it does when the statement is cancelled.
struct Stopping(Arc<AtomicBool>);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn rows(
    work: Work,
    schema: SchemaRef,
    crew: Crew,
) -> impl futures::Stream<Item = DataFusionResult<RecordBatch>> + Send {
    async_stream::try_stream! {
        let _stopping = Stopping(Arc::clone(crew.stop()));
        match work {
            Work::Graphs(snapshot) => yield batch(&schema, graphs(&snapshot).await?)?,
            Work::Vertices(graph) => {
                for range in ranges(&graph) {
                    let (out, into) = graph.degrees(range.clone()).await.map_err(failed)?.into_iter().unzip();
                    let ids = ids(&graph, &range.collect::<Vec<_>>()).await?;
                    yield batch(&schema, [ids, whole(out)?, whole(into)?])?;
                }
            }
            Work::Edges(graph) => {
                let mut edges = EdgeRows::new(&graph);
                while let Some(some) = edges.next(ROWS).await.map_err(failed)? {
                    let ends = [some.from, some.to];
                    let mut columns = Vec::from(ends.map(|ids| Arc::new(Int64Array::from(ids)) as ArrayRef));
                    columns.extend(some.weights.map(|weights| Arc::new(Float64Array::from(weights)) as ArrayRef));
                    yield batch(&schema, columns)?;
                }
            }
            Work::Bfs(graph, source) => {
                let found = graph::bfs(&graph, source, &crew).await.map_err(failed)?;
                for range in ranges(&graph) {
                    let (numbers, levels): (Vec<u32>, Vec<u64>) = range
                        .filter_map(|vertex| found.level(vertex).map(|level| (vertex, u64::from(level))))
                        .unzip();
                    yield batch(&schema, [ids(&graph, &numbers).await?, whole(levels)?])?;
                }
            }
            Work::Pagerank(graph, options) => {
                let found = graph::pagerank(&graph, options, &crew).await.map_err(failed)?;
                for range in ranges(&graph) {
                    let ranks = found.ranks[range.start as usize..range.end as usize].to_vec();
                    let ids = ids(&graph, &range.collect::<Vec<_>>()).await?;
                    yield batch(&schema, [ids, Arc::new(Float64Array::from(ranks))])?;
                }
            }
            Work::Components(graph) => {
                let found = graph::components(&graph, &crew).await.map_err(failed)?;
                for range in ranges(&graph) {
                    let labels = &found.labels[range.start as usize..range.end as usize];
                    let labels = ids(&graph, labels).await?;
                    let ids = ids(&graph, &range.collect::<Vec<_>>()).await?;
                    yield batch(&schema, [ids, labels])?;
                }
            }
            Work::Triangles(graph) => {
                let triangles = Vec::from([graph::triangles(&graph, &crew).await.map_err(failed)?.triangles]);
                yield batch(&schema, [whole(triangles)?])?;
            }
        }
    }
}

/// The vertices of a graph, as many at a time as a batch has rows.
fn ranges(graph: &Graph) -> impl Iterator<Item = std::ops::Range<u32>> + Send + use<> {
    let vertices = graph.vertices();
    (0..vertices.div_ceil(ROWS as u32)).map(move |batch| {
        let start = batch * ROWS as u32;
        start..vertices.min(start.saturating_add(ROWS as u32))
    })
}

async fn graphs(snapshot: &Snapshot) -> DataFusionResult<Vec<ArrayRef>> {
    let graphs = graph::list(snapshot).await.map_err(failed)?;
    let texts = |of: &dyn Fn(&graph::Summary) -> String| -> ArrayRef {
        Arc::new(
            graphs
                .iter()
                .map(|graph| Some(of(graph)))
                .collect::<StringArray>(),
        )
    };
    let flags = |of: &dyn Fn(&graph::Summary) -> bool| -> ArrayRef {
        Arc::new(
            graphs
                .iter()
                .map(|graph| Some(of(graph)))
                .collect::<BooleanArray>(),
        )
    };
    let numbers = |of: &dyn Fn(&graph::Summary) -> u64| whole(graphs.iter().map(of).collect());
    Ok(vec![
        texts(&|graph| graph.name.clone()),
        numbers(&|graph| graph.vertices)?,
        numbers(&|graph| graph.edges)?,
        flags(&|graph| graph.directed),
        flags(&|graph| graph.weighted),
        texts(&|graph| graph.order.name().to_owned()),
        numbers(&|graph| graph.pages)?,
    ])
}

/// The ids of vertices as a column.
async fn ids(graph: &Graph, numbers: &[u32]) -> DataFusionResult<ArrayRef> {
    let ids = graph.ids_of(numbers).await.map_err(failed)?;
    Ok(Arc::new(Int64Array::from(ids)))
}

/// A column of counts.
///
/// # Errors
/// If one is beyond `bigint`.
fn whole(numbers: Vec<u64>) -> DataFusionResult<ArrayRef> {
    let fit = |number: u64| {
        i64::try_from(number).map_err(|_| {
            let message = format!("{number} does not fit into bigint");
            DataFusionError::from(Error::Arithmetic {
                code: "22003",
                message,
            })
        })
    };
    let numbers: DataFusionResult<Vec<i64>> = numbers.into_iter().map(fit).collect();
    Ok(Arc::new(Int64Array::from(numbers?)))
}

fn batch(
    schema: &SchemaRef,
    columns: impl IntoIterator<Item = ArrayRef>,
) -> DataFusionResult<RecordBatch> {
    let columns = columns.into_iter().collect();
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn failed(error: graph::Error) -> DataFusionError {
    Error::from(error).into()
}
