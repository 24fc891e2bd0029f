//! What statements are planned with: the planner that each gets a copy of.

use std::sync::Arc;

use datafusion_common::config::ConfigNonZeroUsize;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_optimizer::analyzer::{Analyzer, AnalyzerRule};
use memory::Budget;
use syntax::depth;
use syntax::names::{CATALOG, SCHEMA};

use crate::error::Result;
use crate::functions;
use crate::functions::present::Memory;
use crate::optimize::casts::Casts;
use crate::optimize::checked::CheckedArithmetic;
use crate::optimize::comparisons::Comparisons;
use crate::optimize::finite::OnlyFinite;
use crate::optimize::floats::Floats;
use crate::optimize::hex::BytesAsText;
use crate::optimize::keys::KeysOnce;
use crate::optimize::lengths::Lengths;
use crate::optimize::likes::Likes;
use crate::optimize::membership::Memberships;
use crate::optimize::multiset::{Multisets, SidesAgree};
use crate::optimize::nested::Nested;
use crate::optimize::numbers::NumbersOfValues;
use crate::optimize::order::Orders;
use crate::optimize::ordered_aggregates::OrderedAggregates;
use crate::optimize::rules;
use crate::optimize::shifts::Shifts;
use crate::optimize::special::Special;
use crate::optimize::stoppable::Stoppable;
use crate::optimize::undefined::Undefined;
use crate::planner::Planner;
use crate::resources::budget::BudgetPool;
use crate::run::blanks::Blanks;

/// Rows of a batch. A page of 64 KiB holds as many 8-byte values.
const BATCH_ROWS: usize = 8192;

/// A planner with all functions and rules but without tables, which come from a statement's snapshot.
pub(crate) fn template(budget: &Arc<Budget>, width: usize) -> Result<Planner> {
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(BudgetPool::new(Arc::clone(budget))))
        .build_arc()?;
    let mut config = config(width);
    config.options_mut().extensions.insert(Memory::of(budget));
    let analyzer = Analyzer::with_rules(analyzer_rules());
    Ok(Planner::new(
        functions::Registry::all(),
        config,
        runtime,
        analyzer,
        rules::all(),
    ))
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

fn config(width: usize) -> SessionConfig {
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
    if let Ok(limit) = ConfigNonZeroUsize::try_new(depth::PARSER_RECURSION) {
        options.sql_parser.recursion_limit = limit;
    }
    // `optimize::rules` decides on the passes itself.
    options.optimizer.max_passes = 1;
    options.execution.planning_concurrency = width.max(1);
    // The zone of `timestamp with time zone`.
    options.execution.time_zone = Some("+00:00".to_string());
    config
}
