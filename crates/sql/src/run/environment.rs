//! DataFusion's settings: the state that each statement gets a clone of.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::config::{ConfigNonZeroUsize, ConfigOptions};
use datafusion::execution::SessionState;
use datafusion::execution::cache::cache_manager::CacheManagerConfig;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::optimizer::analyzer::{Analyzer, AnalyzerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use memory::Budget;

use crate::error::Result;
use crate::functions;
use crate::functions::present::Memory;
use crate::names::{CATALOG, SCHEMA};
use crate::optimize::casts::Casts;
use crate::optimize::checked::CheckedArithmetic;
use crate::optimize::comparisons::Comparisons;
use crate::optimize::dynamic::DynamicFilters;
use crate::optimize::finite::OnlyFinite;
use crate::optimize::floats::Floats;
use crate::optimize::grouping_sets::GroupingSets;
use crate::optimize::hex::BytesAsText;
use crate::optimize::keys::KeysOnce;
use crate::optimize::lengths::Lengths;
use crate::optimize::likes::Likes;
use crate::optimize::membership::Memberships;
use crate::optimize::multiset::{Multisets, SidesAgree};
use crate::optimize::nested::Nested;
use crate::optimize::numbers::{NumbersOfValues, RowsOneByOne};
use crate::optimize::order::Orders;
use crate::optimize::ordered_aggregates::OrderedAggregates;
use crate::optimize::rules;
use crate::optimize::shifts::Shifts;
use crate::optimize::special::Special;
use crate::optimize::stoppable::Stoppable;
use crate::optimize::undefined::Undefined;
use crate::resources::budget::BudgetPool;
use crate::resources::spill::SpillFiles;
use crate::resources::{guard, stop};
use crate::run::blanks::Blanks;

/// Rows of a batch. A page of 64 KiB holds as many 8-byte values.
const BATCH_ROWS: usize = 8192;

/// Most rows of a join's build side that go into a single hash table.
const BUILD_ROWS: usize = 1 << 20;

/// A session state with all functions and rules but without tables, which come from a statement's snapshot.
pub(crate) fn template(
    budget: &Arc<Budget>,
    spill_to: PathBuf,
    width: usize,
) -> Result<SessionState> {
    let spill = DiskManagerMode::Custom(Arc::new(SpillFiles::new(spill_to)));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(BudgetPool::new(Arc::clone(budget))))
        .with_cache_manager(
            // A cached list of files would miss new ones.
            CacheManagerConfig::default().with_list_files_cache_limit(0),
        )
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(spill))
        .build_arc()?;
    let mut state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config(width, budget.limit()))
        .with_runtime_env(runtime)
        .with_analyzer_rules(analyzer_rules())
        .with_optimizer_rules(rules::all())
        .with_physical_optimizer_rules(physical_rules())
        .with_session_id(CATALOG.to_string())
        .build();
    stop::follow_tasks();
    let options = state.config_mut().options_mut();
    options.extensions.insert(Memory::of(budget));
    functions::register(&mut state)?;
    Ok(state)
}

/// DataFusion's analyzer rules, with this crate's before and after type coercion.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(Orders));
    rules.insert(1, Arc::new(Special));
    rules.insert(2, Arc::new(SidesAgree));
    rules.insert(3, Arc::new(Undefined));
    rules.insert(4, Arc::new(BytesAsText));
    rules.insert(5, Arc::new(Floats));
    rules.insert(6, Arc::new(Comparisons));
    rules.insert(7, Arc::new(Lengths));
    rules.insert(8, Arc::new(Shifts));
    rules.insert(9, Arc::new(Likes));
    rules.insert(10, Arc::new(Blanks));
    rules.push(Arc::new(Casts));
    rules.push(Arc::new(KeysOnce));
    rules.push(Arc::new(Multisets));
    rules.push(Arc::new(CheckedArithmetic));
    rules.push(Arc::new(Memberships));
    rules.push(Arc::new(NumbersOfValues));
    rules.push(Arc::new(OnlyFinite));
    rules.push(Arc::new(OrderedAggregates));
    rules.push(Arc::new(Nested));
    let rules = rules.into_iter();
    rules.map(|rule| Arc::new(Stoppable(rule)) as _).collect()
}

/// DataFusion's rules for physical plans without its filter pushdown: filters are in their places in the logical plan
/// already, and the rule identifies columns by their names alone. It moved `y.b between x.b and false` above a join to
/// one side. And with the rules for [grouping sets](crate::optimize::grouping_sets), which is the first, and for
/// [sequences](crate::optimize::numbers), which is the last.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| rule.name() != "FilterPushdown");
    for rule in &mut rules {
        if rule.name() == DynamicFilters::new().name() {
            *rule = Arc::new(DynamicFilters::new());
        }
    }
    rules.insert(0, Arc::new(GroupingSets));
    rules.push(Arc::new(RowsOneByOne));
    rules.into_iter().map(stoppable).collect()
}

fn stoppable(
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
) -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    Arc::new(Stoppable(rule))
}

/// How dense integer keys must be for a join to look them up by position, at 4 bytes for each number between the least
/// and the greatest, instead of by hash. Sparser keys take more memory, and this cannot spill: a table of
/// [`BUILD_ROWS`] rows may take a sixteenth of the limit.
fn key_density(memory_limit: u64) -> f64 {
    let wanted = 16.0 * 4.0 * BUILD_ROWS as f64 / memory_limit.max(1) as f64;
    wanted.clamp(0.005, 0.15)
}

fn config(width: usize, memory_limit: u64) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(width.max(1))
        .with_batch_size(BATCH_ROWS)
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA);
    let options = config.options_mut();
    // 0.06 + 0.01 must be 0.07, as in the standard, and not the nearest double.
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = true;
    // `optimize::order` knows who sees it.
    options.sql_parser.enable_subquery_sort_elimination = false;
    if let Ok(limit) = ConfigNonZeroUsize::try_new(guard::PARSER_RECURSION) {
        options.sql_parser.recursion_limit = limit;
    }
    // `optimize::rules` decides on the passes itself.
    options.optimizer.max_passes = 1;
    options.execution.planning_concurrency = width.max(1);
    // `x is true` is never NULL, which the operator that it becomes does not know.
    options.execution.skip_physical_aggregate_schema_check = true;
    options.optimizer.hash_join_single_partition_threshold_rows = BUILD_ROWS;
    within(options, width, memory_limit);
    // As many rows as two stored blocks, so that readers of such a file can read parts of it at the same time.
    options.execution.parquet.max_row_group_size = table::BLOCK_ROWS * 2;
    // The zone of `timestamp with time zone`.
    options.execution.time_zone = Some("+00:00".to_string());
    config
}

/// Sets what depends on how much memory a statement may have.
pub(crate) fn within(options: &mut ConfigOptions, width: usize, memory_limit: u64) {
    // A build side of up to this size becomes one table that all partitions probe: hashing and moving every row of the
    // probe side to its partition costs more than building with one thread.
    let build_bytes = (memory_limit / 16).clamp(1 << 20, 64 << 20) as usize;
    options.optimizer.hash_join_single_partition_threshold = build_bytes;
    options.execution.perfect_hash_join_min_key_density = key_density(memory_limit);
    // Each partition of a sort reserves this for merging: a small part of a small budget.
    let reserve = memory_limit as usize / (16 * width.max(1));
    options.execution.sort_spill_reservation_bytes = reserve.min(10 << 20);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_memory_wants_dense_keys() {
        assert_eq!(key_density(256 << 20), 0.15);
        assert_eq!(key_density(64 << 30), 0.005);
        let limit = 4u64 << 30;
        let table = 4.0 * BUILD_ROWS as f64 / key_density(limit);
        assert!(table <= limit as f64 / 16.0, "{table} bytes");
    }
}
