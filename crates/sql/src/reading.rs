//! Files as a source of our own engine.
//!
//! DataFusion's readers decode, with the columns and the row groups that the query needs; the engine's workers drive
//! them, a part at a time, and every filter is evaluated by the engine. A part lies within one file, so that a
//! failure can tell which. Where a file of CSV can be cut is found while it is read (`cuts.rs`).

use std::any::Any;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::{ListingTable, PartitionedFile};
use datafusion::datasource::physical_plan::{
    CsvSource, FileGroup, FileScanConfig, FileScanConfigBuilder,
};
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::DataFusionError;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{Expr, TableScan};
use datafusion::physical_plan::ExecutionPlan;
use engine::{Batches, Part, Parts};
use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, future, stream};
use tokio::sync::{Mutex, Semaphore};

use crate::Error;
use crate::cuts::{self, Dialect};
use crate::lower::failed;

/// Bytes of a file that a part is made of, where it can be cut.
const PART_BYTES: u64 = 8 << 20;
/// Files that are smaller are not cut.
const WHOLE_BYTES: usize = 1 << 20;
/// Most parts of a scan that are cut out of files.
const MOST_PARTS: u64 = 4_096;
/// Least number of parts that fetch their first bytes at once.
const FETCHING: usize = 2;
/// Bytes of a row's value in a file, where nothing tells how many rows it has.
const VALUE_BYTES: u64 = 8;

/// The files of one scan, as the engine reads them.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// As the statement has it.
    name: String,
    /// The columns that are read.
    pub schema: SchemaRef,
    /// How many rows there are, about.
    pub rows: f64,
    /// For each column the least and the greatest value, where the files tell.
    pub bounds: Vec<Option<(i128, i128)>>,
    /// For each column whether there may be NULLs.
    pub nullable: Vec<bool>,
    /// Parts that fetch at once.
    fetching: usize,
    /// `None` if there is no file.
    scan: Option<Arc<Scan>>,
}

#[derive(Debug)]
struct Scan {
    /// Each group is one file, or a range of one.
    config: FileScanConfig,
    context: Arc<TaskContext>,
    name: String,
    /// Whether one file is all there is: then it is called as the statement does.
    single: bool,
    /// How the values of large files are separated that are cut while they are read, and bytes of their parts.
    cuts: Option<(Dialect, u64)>,
}

impl Files {
    /// The files that `scan` reads from `table`.
    pub(crate) async fn of(
        state: &SessionState,
        scan: &TableScan,
        table: &ListingTable,
    ) -> engine::Result<Files> {
        let name = scan.table_name.table().to_string();
        let plan = table
            .scan(state, scan.projection.as_ref(), &[], scan.fetch)
            .await
            .map_err(|e| named(Path::new(&name), e))?;
        let schema = plan.schema();
        let nullable = schema.fields().iter().map(|f| f.is_nullable()).collect();
        let mut files = Files {
            name,
            rows: 0.0,
            bounds: vec![None; schema.fields().len()],
            nullable,
            schema,
            fetching: (state.config().target_partitions() / 4).max(FETCHING),
            scan: None,
        };
        let Some(config) = config_of(&plan) else {
            // No file, then: DataFusion plans an empty relation.
            return Ok(files);
        };
        files.describe(config)?;
        let config = pruned(state, config.clone(), &scan.filters, &files.schema)?;
        let cuts = cuts(&config, state.config().target_partitions());
        let config = cut(config, state.config().target_partitions())?;
        let mut paths = config.file_groups.iter().flat_map(FileGroup::iter);
        let first = paths.next().map(path_of);
        let single = paths.all(|file| Some(path_of(file)) == first);
        drop(paths);
        files.scan = Some(Arc::new(Scan {
            config,
            context: state.task_ctx(),
            name: files.name.clone(),
            single,
            cuts,
        }));
        Ok(files)
    }

    /// What the files tell of their rows.
    fn describe(&mut self, config: &FileScanConfig) -> engine::Result<()> {
        let told = config.partition_statistics(None).map_err(failed)?;
        for (column, told) in told.column_statistics.iter().enumerate() {
            let (Some(bounds), Some(nullable)) =
                (self.bounds.get_mut(column), self.nullable.get_mut(column))
            else {
                continue;
            };
            // Estimates do not do.
            let exact = |value: &datafusion::common::stats::Precision<ScalarValue>| {
                let value = value.is_exact().unwrap_or(false).then(|| value.get_value());
                value.flatten().and_then(whole)
            };
            *bounds = exact(&told.min_value).zip(exact(&told.max_value));
            let nulls = &told.null_count;
            *nullable &= !(nulls.is_exact() == Some(true) && nulls.get_value() == Some(&0));
        }
        let files = config.file_groups.iter().flat_map(FileGroup::iter);
        let bytes: u64 = files.map(|file| file.object_meta.size).sum();
        let columns = config.file_schema().fields().len().max(1) as u64;
        self.rows = match told.num_rows.get_value() {
            Some(rows) => *rows as f64,
            None => (bytes / VALUE_BYTES / columns) as f64,
        };
        Ok(())
    }
}

/// What `plan` reads, if it is a scan of files.
fn config_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    let exec = plan.downcast_ref::<DataSourceExec>()?;
    exec.data_source().as_ref().downcast_ref::<FileScanConfig>()
}

/// The value as a whole number, as the engine holds it.
fn whole(value: &ScalarValue) -> Option<i128> {
    if value.is_null() || matches!(value, ScalarValue::Boolean(_)) {
        return None;
    }
    let mut out = Vec::new();
    table::wides_of(&value.to_array().ok()?, &mut out).ok()?;
    out.first().copied()
}

/// Reads only what can hold rows that pass `filters`: they need not be tested there, and none has to be understood.
fn pruned(
    state: &SessionState,
    config: FileScanConfig,
    filters: &[Expr],
    schema: &SchemaRef,
) -> engine::Result<FileScanConfig> {
    let named = DFSchema::try_from(schema.as_ref().clone()).map_err(failed)?;
    let mut compiled = Vec::with_capacity(filters.len());
    for filter in filters {
        let unqualified = filter.clone().transform(|e| {
            Ok(match e {
                Expr::Column(c) => Transformed::yes(Expr::Column(Column::new_unqualified(c.name))),
                other => Transformed::no(other),
            })
        });
        let unqualified = unqualified.map_err(failed)?.data;
        compiled.extend(state.create_physical_expr(unqualified, &named).ok());
    }
    if compiled.is_empty() {
        return Ok(config);
    }
    let pushed = config.try_pushdown_filters(compiled, state.config_options());
    let pushed = pushed.map_err(failed)?.updated_node;
    let pushed = pushed
        .as_ref()
        .and_then(|node| node.downcast_ref::<FileScanConfig>());
    Ok(pushed.cloned().unwrap_or(config))
}

/// Cuts the files into parts that `width` workers can share evenly, each in one file.
fn cut(config: FileScanConfig, width: usize) -> engine::Result<FileScanConfig> {
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    let bytes: u64 = files.map(|file| file.object_meta.size).sum();
    let parts = (bytes / PART_BYTES).clamp(width.max(1) as u64, MOST_PARTS) as usize;
    let finer = config
        .repartitioned(parts, WHOLE_BYTES, None)
        .map_err(failed)?;
    let finer = finer
        .as_ref()
        .and_then(|node| node.downcast_ref::<FileScanConfig>());
    let config = finer.cloned().unwrap_or(config);
    let alone = |file: &PartitionedFile| FileGroup::new(vec![file.clone()]);
    let mut groups: Vec<FileGroup> = config
        .file_groups
        .iter()
        .flat_map(FileGroup::iter)
        .map(alone)
        .collect();
    let place = |group: &FileGroup| {
        let file = group.iter().next();
        file.map(|f| (path_of(f), f.range.as_ref().map_or(0, |range| range.start)))
    };
    groups.sort_by_cached_key(place);
    Ok(FileScanConfigBuilder::from(config)
        .with_file_groups(groups)
        .build())
}

/// How files of CSV are cut for `width` workers; none for others.
fn cuts(config: &FileScanConfig, width: usize) -> Option<(Dialect, u64)> {
    let source = config.file_source().downcast_ref::<CsvSource>()?;
    let plain = config.file_compression_type == FileCompressionType::UNCOMPRESSED;
    if !plain || source.terminator().is_some() || source.comment().is_some() {
        return None;
    }
    let dialect = Dialect {
        delimiter: source.delimiter(),
        quote: source.quote(),
        escape: source.escape(),
    };
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    let bytes: u64 = files.map(|file| file.object_meta.size).sum();
    let least = (bytes / width.max(1) as u64).clamp(WHOLE_BYTES as u64, PART_BYTES);
    Some((dialect, least.max(bytes / MOST_PARTS)))
}

/// Where the file is. Object stores leave the leading slash away.
fn path_of(file: &PartitionedFile) -> PathBuf {
    Path::new("/").join(file.object_meta.location.as_ref())
}

impl Batches for Files {
    fn name(&self) -> &str {
        &self.name
    }

    fn parts(&self) -> usize {
        let Some(scan) = &self.scan else {
            return 0;
        };
        let files = scan.config.file_groups.iter().flat_map(FileGroup::iter);
        let parts = files.map(|file| match scan.cuts_of(file) {
            Some((_, least)) => file.object_meta.size.div_ceil(least) as usize,
            None => 1,
        });
        parts.sum()
    }

    fn open(&self, (first, step): (usize, usize)) -> engine::Result<Arc<dyn Parts>> {
        if let Some(scan) = self.scan.as_ref().filter(|scan| scan.cuts.is_some()) {
            return Ok(Arc::new(Cutting {
                scan: scan.clone(),
                share: (first, step),
                at: Mutex::default(),
                gate: Arc::new(Semaphore::new(self.fetching)),
            }));
        }
        Ok(Arc::new(Handing {
            scan: self.scan.clone(),
            next: AtomicUsize::new(first),
            step,
            gate: Arc::new(Semaphore::new(self.fetching)),
        }))
    }
}

/// Parts on their way to workers.
struct Handing {
    scan: Option<Arc<Scan>>,
    next: AtomicUsize,
    step: usize,
    /// Parts whose first rows may be waited for at once.
    gate: Arc<Semaphore>,
}

impl Parts for Handing {
    fn next(&self) -> BoxFuture<'_, engine::Result<Option<Part>>> {
        let number = self.next.fetch_add(self.step, Ordering::Relaxed);
        let part = self.scan.as_ref().and_then(|scan| {
            let file = scan.file(number)?.clone();
            Some(scan.part(number as u64, file, &self.gate))
        });
        future::ready(part.transpose()).boxed()
    }
}

/// Parts of files that are cut while they are read.
struct Cutting {
    scan: Arc<Scan>,
    /// The first part that is handed out, and each so many after it.
    share: (usize, usize),
    at: Mutex<Cut>,
    gate: Arc<Semaphore>,
}

/// How far files are cut.
#[derive(Default)]
struct Cut {
    file: usize,
    /// The parts of this file.
    parts: Option<mpsc::Receiver<std::io::Result<Range<u64>>>>,
    /// Parts by now, of all files.
    number: usize,
}

impl Parts for Cutting {
    fn next(&self) -> BoxFuture<'_, engine::Result<Option<Part>>> {
        async move {
            let mut at = self.at.lock().await;
            let (first, step) = self.share;
            loop {
                let number = at.number;
                let Some(file) = at.next(&self.scan).await? else {
                    return Ok(None);
                };
                if number % step == first {
                    return self.scan.part(number as u64, file, &self.gate).map(Some);
                }
            }
        }
        .boxed()
    }
}

impl Cut {
    /// The next part of the files.
    async fn next(&mut self, scan: &Scan) -> engine::Result<Option<PartitionedFile>> {
        while let Some(file) = scan.file(self.file) {
            let Some((dialect, least)) = scan.cuts_of(file) else {
                (self.file, self.number) = (self.file + 1, self.number + 1);
                return Ok(Some(file.clone()));
            };
            let path = path_of(file);
            let begin = || cuts::parts(&path, dialect, least);
            match self.parts.get_or_insert_with(begin).next().await {
                Some(Ok(part)) => {
                    self.number += 1;
                    let range = part.start as i64..part.end as i64;
                    return Ok(Some(file.clone().with_range(range.start, range.end)));
                }
                Some(Err(e)) => {
                    let known = Known::new(file, scan.called());
                    known.check()?;
                    return Err(known.error(e.to_string()));
                }
                None => (self.file, self.parts) = (self.file + 1, None),
            }
        }
        Ok(None)
    }
}

impl Scan {
    /// File number `number`, or the range of one.
    fn file(&self, number: usize) -> Option<&PartitionedFile> {
        self.config.file_groups.get(number)?.iter().next()
    }

    /// What messages call its file, if it is the only one.
    fn called(&self) -> Option<&str> {
        self.single.then_some(self.name.as_str())
    }

    /// How `file` is cut, if it is.
    fn cuts_of(&self, file: &PartitionedFile) -> Option<(Dialect, u64)> {
        let large = file.object_meta.size > WHOLE_BYTES as u64;
        self.cuts.filter(|_| large && file.range.is_none())
    }

    /// The rows of `file`, or of the range of it.
    fn part(
        &self,
        number: u64,
        file: PartitionedFile,
        gate: &Arc<Semaphore>,
    ) -> engine::Result<Part> {
        let known = Arc::new(Known::new(&file, self.called()));
        let alone = FileScanConfigBuilder::from(self.config.clone())
            .with_file_groups(vec![FileGroup::new(vec![file])])
            .build();
        let file = known;
        file.check()?;
        let rows = alone.open(0, Arc::clone(&self.context));
        let rows = rows.map_err(|e| named(&file.called, e))?;
        // Decoders of damaged data have been seen to panic.
        let rows = AssertUnwindSafe(rows).catch_unwind();
        let called = Arc::clone(&file);
        let rows = gated(Arc::clone(gate), rows).map(move |batch| match batch {
            Ok(batch) => batch.map_err(|e| called.explained(e)),
            Err(panic) => Err(called.broken(panic.as_ref())),
        });
        let end = stream::once(future::lazy(move |_| file.check())).filter_map(|checked| {
            future::ready(checked.err().map(Err::<RecordBatch, engine::Error>))
        });
        Ok(Part {
            number,
            rows: rows.chain(end).boxed(),
        })
    }
}

/// `rows`, the first of which are waited for only when the gate lets them through: where the device is what all wait
/// for, it shall give one part after the other, and not all of them late.
fn gated<S: Stream + Send + Unpin + 'static>(
    gate: Arc<Semaphore>,
    mut rows: S,
) -> impl Stream<Item = S::Item> + Send
where
    S::Item: Send,
{
    let first = async move {
        let passed = gate.acquire_owned().await;
        let first = rows.next().await;
        drop(passed);
        stream::iter(first).chain(rows)
    };
    stream::once(first).flatten()
}

/// A file as it was when the query was planned.
struct Known {
    path: PathBuf,
    /// What messages call it.
    called: PathBuf,
    size: u64,
    modified: SystemTime,
}

impl Known {
    fn new(file: &PartitionedFile, called: Option<&str>) -> Known {
        let path = path_of(file);
        Known {
            called: called.map_or_else(|| path.clone(), PathBuf::from),
            path,
            size: file.object_meta.size,
            modified: file.object_meta.last_modified.into(),
        }
    }

    /// Fails if it is another by now: what was read of it may then be of the one or of the other.
    fn check(&self) -> engine::Result<()> {
        let same = std::fs::metadata(&self.path)
            .and_then(|now| Ok(now.len() == self.size && now.modified()? == self.modified));
        let message = match same {
            Ok(true) => return Ok(()),
            Ok(false) => "changed while it was read; run the statement again".to_string(),
            Err(e) => format!("changed while it was read: {e}"),
        };
        Err(self.error(message))
    }

    /// The failure of a reader; that of a file that is another by now tells so.
    fn explained(&self, e: DataFusionError) -> engine::Error {
        self.check().err().unwrap_or_else(|| named(&self.called, e))
    }

    fn broken(&self, panic: &(dyn Any + Send)) -> engine::Error {
        self.error(format!(
            "cannot be decoded: {}",
            crate::answer::panicked(panic)
        ))
    }

    fn error(&self, message: String) -> engine::Error {
        engine::Error::Call(Box::new(Error::File {
            path: self.called.clone(),
            message,
        }))
    }
}

/// The failure of reading `path`, with its name.
fn named(path: &Path, e: DataFusionError) -> engine::Error {
    let message = match Error::from(e) {
        Error::Cancelled => return engine::Error::Cancelled,
        e @ (Error::Memory { .. } | Error::File { .. }) => return engine::Error::Call(Box::new(e)),
        other => other.to_string(),
    };
    engine::Error::Call(Box::new(Error::File {
        path: path.into(),
        message,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::datasource::{provider_as_source, source_as_provider};
    use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
    use parquet::arrow::ArrowWriter;

    fn write(path: &Path, rows: i64) {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let file = std::fs::File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    async fn planned(path: &Path) -> Files {
        let budget = memory::Budget::new(1 << 30);
        let state = crate::environment::template(&budget, std::env::temp_dir(), 2).unwrap();
        let name = path.to_str().unwrap();
        let table = crate::files::open(&state, name).await.unwrap();
        let plan = LogicalPlanBuilder::scan(name, provider_as_source(table), None);
        let LogicalPlan::TableScan(scan) = plan.unwrap().build().unwrap() else {
            panic!("no scan");
        };
        let provider = source_as_provider(&scan.source).unwrap();
        let table = provider.downcast_ref::<ListingTable>().unwrap();
        Files::of(&state, &scan, table).await.unwrap()
    }

    async fn drained(part: Option<Part>) -> engine::Result<usize> {
        let mut rows = 0;
        let mut part = part.unwrap();
        while let Some(batch) = part.rows.next().await {
            rows += batch?.num_rows();
        }
        Ok(rows)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_that_is_another_by_now_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("n.parquet");
        write(&path, 20_000);
        let files = planned(&path).await;
        assert_eq!(files.bounds, [Some((0, 19_999))]);
        assert_eq!((files.rows, files.parts()), (20_000.0, 1));
        let part = files.open((0, 1)).unwrap().next().await.unwrap();
        assert_eq!(drained(part).await.unwrap(), 20_000);

        let told = |e: engine::Error| {
            let message = Error::from(e).to_string();
            let start = format!("{}: changed while it was read", path.display());
            assert!(message.starts_with(&start), "{message}");
        };
        let mut begun = files.open((0, 1)).unwrap().next().await.unwrap().unwrap();
        let first = begun.rows.next().await.unwrap().unwrap();
        assert!(first.num_rows() > 0);
        write(&path, 19_000);
        told(drained(Some(begun)).await.unwrap_err());
        told(files.open((0, 1)).unwrap().next().await.err().unwrap());
        std::fs::remove_file(&path).unwrap();
        told(files.open((0, 1)).unwrap().next().await.err().unwrap());
    }
}
