//! Running a plan, chunk by chunk, by one of two models.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{BoxStream, StreamExt};
use workers::Workers;

use crate::data::block::Block;
use crate::data::grid::{Axis, Grid};
use crate::data::region::Region;
use crate::error::Result;
use crate::model::schema::Schema;
use crate::operators::memory::ArrayData;
use crate::operators::source::{Crew, Input, Source};
use crate::plan::builder::Plan;
use crate::plan::node::{Node, Operator};
use crate::storage::parallel;

/// How operators hand on what they make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Model {
    /// Each operator makes the whole of its array before the next begins, as SAVIME does.
    Materialise,
    /// Each chunk of the result is asked for, and what it takes of the inputs, as SciDB does: no array in between is ever
    /// whole.
    #[default]
    Pipeline,
}

/// How a plan is run: the model, and who works on it. Without workers the caller does.
#[derive(Debug, Clone, Default)]
pub struct Run {
    model: Model,
    workers: Option<Arc<Workers>>,
    groups: usize,
    per_chunk: usize,
    instances: Arc<[Arc<Workers>]>,
}

impl Run {
    /// On the calling thread, by the pipeline model.
    pub fn new() -> Run {
        Run {
            groups: 1,
            per_chunk: 1,
            ..Run::default()
        }
    }

    /// The same by another model.
    pub fn model(mut self, model: Model) -> Run {
        self.model = model;
        self
    }

    /// The same on workers: `groups` chunks are worked on at a time, by `per_chunk` tasks each. Tasks share a chunk where
    /// it is nothing but a part of a stored array; other operators work on a chunk by one task.
    pub fn on(mut self, workers: &Arc<Workers>, groups: usize, per_chunk: usize) -> Run {
        self.workers = Some(workers.clone());
        (self.groups, self.per_chunk) = (groups.max(1), per_chunk.max(1));
        self
    }

    /// The same on workers, divided by how many chunks there are: with at least as many as workers, each takes whole ones;
    /// with fewer, they are shared.
    pub fn on_all(self, workers: &Arc<Workers>, chunks: u64) -> Run {
        let width = workers.width().max(1);
        let groups = usize::try_from(chunks).unwrap_or(width).clamp(1, width);
        self.on(workers, groups, width / groups)
    }

    /// The same on instances, each of which owns every n-th chunk of what is computed and works on it with its own
    /// threads, as SciDB's do: a chunk at a time, shared by `per_chunk` tasks as [`on`](Run::on) says. They are the
    /// workers of a node each ([`Workers::instances`]), or any others. Without instances nothing changes.
    pub fn on_instances(mut self, instances: &[Arc<Workers>], per_chunk: usize) -> Run {
        self.instances = instances.into();
        self.per_chunk = per_chunk.max(1);
        self
    }

    /// How many threads may work for it at a time: those of its workers or instances, or the caller.
    pub fn threads(&self) -> usize {
        let instances = self.instances.iter().map(|of| of.width()).sum();
        let workers = self.workers.as_ref().map_or(1, |of| of.width());
        workers.max(instances)
    }

    fn crew(&self) -> Crew {
        Crew {
            workers: self.workers.clone(),
            groups: self.groups,
            instances: self.instances.clone(),
        }
    }
}

/// The chunks of a result, one after the other.
pub struct Chunks {
    schema: Schema,
    grid: Grid,
    blocks: BoxStream<'static, Result<Block>>,
}

impl Chunks {
    /// The dimensions and attributes of the result.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// All chunks that there will be.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The next chunk that has cells, in row-major order; `None` after the last.
    ///
    /// # Errors
    /// Those of operators and storage; after one there is nothing more.
    pub async fn next(&mut self) -> Option<Result<Block>> {
        self.blocks.next().await
    }
}

impl std::fmt::Debug for Chunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunks")
            .field("grid", &self.grid)
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// Computes all of it.
    ///
    /// # Errors
    /// What is wrong with the plan, and what happens on the way: [`Error::Arithmetic`](crate::Error::Arithmetic),
    /// [`Error::TooLarge`](crate::Error::TooLarge), those of the storage.
    pub async fn run(&self, run: &Run) -> Result<ArrayData> {
        let data = whole(self.source(run).await?, run).await?;
        // A sorted list is as long as what was found.
        match &self.node.operator {
            Operator::Sort(_) => shortened(&data).await,
            _ => Ok(data),
        }
    }

    /// Computes it chunk by chunk, so that never all of it is in memory. By the model that materialises, that holds only
    /// for the last operator.
    ///
    /// # Errors
    /// As [`run`](Plan::run), for what is known before the first chunk.
    pub async fn chunks(&self, run: &Run) -> Result<Chunks> {
        let source = self.source(run).await?;
        let (schema, grid) = (source.schema().clone(), source.grid());
        let (cuts, task) = (grid.clone(), Chunk::of(&source, run));
        let regions = grid.all().map(move |chunk| cuts.region(&chunk));
        let blocks = run
            .crew()
            .ordered(regions.enumerate(), move |(at, region)| {
                task.clone().compute(at, region)
            });
        Ok(Chunks {
            schema,
            grid,
            blocks,
        })
    }

    /// What answers for the chunks of the result.
    async fn source(&self, run: &Run) -> Result<Input> {
        // What is wrong with the plan is found before anything is computed.
        let source = self.node.source(&run.crew())?;
        match run.model {
            Model::Pipeline => Ok(source),
            Model::Materialise => materialised_inputs(&self.node, run).await,
        }
    }
}

/// The operator of a node over inputs of which each is whole.
fn materialised_inputs<'a>(node: &'a Node, run: &'a Run) -> BoxFuture<'a, Result<Input>> {
    async move {
        let mut inputs: Vec<Input> = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            let source = materialised_inputs(input, run).await?;
            // What is stored or in memory already is no array in between.
            let leaf = matches!(input.operator, Operator::Scan(_) | Operator::Given(_));
            inputs.push(if leaf {
                source
            } else {
                Arc::new(whole(source, run).await?)
            });
        }
        node.operator.over(&inputs, &run.crew())
    }
    .boxed()
}

/// What it takes to compute a chunk. Cheap to clone.
#[derive(Clone)]
struct Chunk {
    source: Input,
    wanted: Arc<[bool]>,
    /// Whose tasks share a chunk, in turn, and how many, if more than one do.
    workers: Arc<[Arc<Workers>]>,
    tasks: usize,
}

impl Chunk {
    fn of(source: &Input, run: &Run) -> Chunk {
        Chunk {
            source: source.clone(),
            wanted: vec![true; source.schema().attributes().len()].into(),
            workers: match &run.workers {
                _ if run.per_chunk <= 1 => [].into(),
                _ if !run.instances.is_empty() => run.instances.clone(),
                workers => workers.iter().cloned().collect(),
            },
            tasks: run.per_chunk,
        }
    }

    /// The chunk at a position in the order of the grid.
    async fn compute(self, at: usize, region: Region) -> Result<Block> {
        let workers = self.workers.get(at % self.workers.len().max(1));
        match (workers, self.source.stored(&region)) {
            (Some(workers), Some(part)) => {
                let (array, attributes) = (&part.array, &part.attributes);
                let read = parallel::read(array, &part.region, attributes, workers, self.tasks);
                Ok(read.await?.at(region))
            }
            _ => self.source.block(&region, &self.wanted).await,
        }
    }
}

/// All chunks of a source. Workers take those first that lie on their node.
async fn whole(source: Input, run: &Run) -> Result<ArrayData> {
    let grid = source.grid();
    let regions = grid.all().map(|chunk| grid.region(&chunk));
    let items = regions
        .enumerate()
        .map(|(at, region)| (source.home(&region), (at, region)))
        .collect();
    let task = Chunk::of(&source, run);
    let blocks = run
        .crew()
        .all(items, move |(at, region)| task.clone().compute(at, region))
        .await?;
    Ok(ArrayData::new(source.schema().clone(), grid, blocks))
}

/// The cells of a list up to the last that exists.
async fn shortened(list: &ArrayData) -> Result<ArrayData> {
    let length = list.existing();
    let schema = list.schema();
    let dimension = schema.dimensions()[0].part((0, length), true);
    let schema =
        Schema::derived(vec![dimension], schema.attributes().to_vec())?.with_all_of(schema);
    let axis = Axis::Regular {
        length,
        chunk: schema.dimensions()[0].chunk_length(),
    };
    let grid = Grid::of_axes(vec![axis]);
    let wanted = vec![true; schema.attributes().len()];
    let mut blocks = Vec::new();
    for chunk in grid.all() {
        let region: Region = grid.region(&chunk);
        blocks.push(list.block(&region, &wanted).await?);
    }
    Ok(ArrayData::new(schema, grid, blocks))
}
