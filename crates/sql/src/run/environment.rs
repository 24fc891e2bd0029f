//! DataFusion's settings: what every statement's state is cloned from.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::config::ConfigNonZeroUsize;
use datafusion::execution::cache::cache_manager::CacheManagerConfig;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::optimizer::analyzer::{Analyzer, AnalyzerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use memory::Budget;

use crate::error::Result;
use crate::functions;
use crate::optimize::checked::CheckedArithmetic;
use crate::optimize::keys::KeysOnce;
use crate::optimize::meaning::{Casts, Comparisons};
use crate::optimize::membership::Memberships;
use crate::optimize::multiset::{Multisets, SidesAgree};
use crate::optimize::{exact, rules};
use crate::resources::budget::BudgetPool;
use crate::resources::guard;
use crate::resources::spill::SpillFiles;
use crate::types::{CATALOG, SCHEMA};

/// Rows of one batch: a page of 64 KiB holds as many 8-byte values.
const BATCH_ROWS: usize = 8192;

/// Most rows of a join's build side that one table is made of.
const BUILD_ROWS: usize = 1 << 20;

/// A session state with all functions and rules but no tables: those come with a statement's snapshot.
pub(crate) fn template(
    budget: &Arc<Budget>,
    spill_to: PathBuf,
    width: usize,
) -> Result<SessionState> {
    let spill = DiskManagerMode::Custom(Arc::new(SpillFiles::new(spill_to)));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(BudgetPool::new(Arc::clone(budget))))
        .with_cache_manager(
            // A list of files that is remembered does not tell of those that came since.
            CacheManagerConfig::default().with_list_files_cache_limit(0),
        )
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(spill))
        .build_arc()?;
    let mut state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config(width, budget.limit()))
        .with_runtime_env(runtime)
        .with_analyzer_rules(analyzer_rules())
        .with_optimizer_rules(rules::rules())
        .with_physical_optimizer_rules(physical_rules())
        .with_session_id(CATALOG.to_string())
        .build();
    functions::register(&mut state)?;
    state.register_udaf(exact::sum())?;
    Ok(state)
}

/// DataFusion's rules, ours before and after that which makes types agree.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(SidesAgree));
    rules.insert(1, Arc::new(Comparisons));
    rules.push(Arc::new(Casts));
    rules.push(Arc::new(KeysOnce));
    rules.push(Arc::new(Multisets));
    rules.push(Arc::new(CheckedArithmetic));
    rules.push(Arc::new(Memberships));
    rules
}

/// DataFusion's rules for physical plans, without the one that moves filters below operators once more (the logical plan has them in
/// their places): it tells columns by their names, and moved `y.b between x.b and false`, of a join with both, to one side.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| rule.name() != "FilterPushdown");
    rules
}

/// How densely integer keys must lie between the least and the greatest for a join to find them
/// by position (4 bytes for each number in between) instead of by hash. Sparser keys take more
/// memory, for which there is no way back: a table of [`BUILD_ROWS`] rows may take a sixteenth.
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
    // 0.06 + 0.01 must be 0.07, as the standard has it, not the nearest double.
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = true;
    if let Ok(limit) = ConfigNonZeroUsize::try_new(guard::PARSER_RECURSION) {
        options.sql_parser.recursion_limit = limit;
    }
    // Each of the passes of `optimise` is called for by itself.
    options.optimizer.max_passes = 1;
    options.execution.planning_concurrency = width.max(1);
    // A build side of up to this size is made into one table that all partitions probe: hashing
    // and moving every probing row to its partition costs more than one thread's building.
    let build_bytes = (memory_limit / 16).clamp(1 << 20, 64 << 20) as usize;
    options.optimizer.hash_join_single_partition_threshold = build_bytes;
    options.optimizer.hash_join_single_partition_threshold_rows = BUILD_ROWS;
    options.execution.perfect_hash_join_min_key_density = key_density(memory_limit);
    // As many rows as two stored blocks have: whoever reads such a file has parts to read at the same time.
    options.execution.parquet.max_row_group_size = table::BLOCK_ROWS * 2;
    // Each partition of a sort reserves this for merging: no more than a part of a small budget.
    let reserve = memory_limit as usize / (16 * width.max(1));
    options.execution.sort_spill_reservation_bytes = reserve.min(10 << 20);
    // `timestamp with time zone` has one.
    options.execution.time_zone = Some("+00:00".to_string());
    config
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
