//! Sums that are rounded: both models, workers, and whoever asks for a part only, have the same bits.

use std::sync::Arc;

use array::expr::{name, value};
use array::{
    Aggregate, Array, Attribute, DataType, Dimension, Function, Model, Plan, Region, Run, Scalar,
    Schema, Writer,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use workers::{Layout, Workers};

use crate::model::{block, region_in, store, wait};
use crate::plans::bits;

/// An array whose sums are rounded: floats of both kinds, a float that may be null, and whole numbers whose sums do not fit
/// in 64 bits but for their average.
fn stored(directory: &tempfile::TempDir, shape: &[(u64, u64)], seed: u64) -> Arc<Array> {
    let dimensions = shape.iter().enumerate().map(|(at, &(length, chunk))| {
        Dimension::integer(&format!("d{at}"), 0, length).chunk(chunk)
    });
    let attributes = vec![
        Attribute::new("f", DataType::F64),
        Attribute::new("g", DataType::F32),
        Attribute::new("n", DataType::F64).nullable(),
        Attribute::new("i", DataType::I64),
    ];
    let schema = Schema::new(dimensions.collect(), attributes).unwrap();
    let random = std::cell::RefCell::new(fastrand::Rng::with_seed(seed));
    let whole = Region::of_shape(&schema.shape());
    let cells = block(&schema, &whole, |_| {
        let random = &mut *random.borrow_mut();
        let float = (random.f64() - 0.5) * 10f64.powi(random.i32(-8..9));
        let null = random.u8(0..4) == 0;
        Some(vec![
            Scalar::Float(float),
            Scalar::Float(f64::from(float as f32)),
            if null {
                Scalar::Null
            } else {
                Scalar::Float(float / 3.0)
            },
            Scalar::Int(i128::from(random.i64(..))),
        ])
    });
    let store = store(directory);
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("a", &schema).unwrap();
    wait(writer.write("a", &cells)).unwrap();
    writer.commit().unwrap();
    Array::open(&store.snapshot(), "a").unwrap()
}

fn all_functions() -> Vec<Aggregate> {
    let mut all = vec![Aggregate::count()];
    for of in ["f", "g", "n"] {
        all.extend(Function::ALL.map(|function| Aggregate::new(function, of)));
    }
    for function in [Function::Avg, Function::Min, Function::Max, Function::Var] {
        all.push(Aggregate::new(function, "i"));
    }
    all
}

fn check(
    shape: &[(u64, u64)],
    parts: &[(u64, u64)],
    (kind, numbers, seed): (u8, &[u64], u64),
) -> Result<(), TestCaseError> {
    static TEAM: std::sync::LazyLock<Arc<Workers>> = std::sync::LazyLock::new(|| {
        let live = topology::Machine::live().unwrap();
        Workers::new(Layout::of(&live, &live, 2, false)).unwrap()
    });
    let directory = tempfile::tempdir().unwrap();
    let array = stored(&directory, shape, seed);
    let rank = shape.len();
    let mut plan = Plan::scan(&array);
    if kind & 1 != 0 {
        plan = plan.filter(name("f").gt(value(0)));
    }
    let functions = all_functions();
    plan = match kind >> 1 {
        0 => {
            let around: Vec<_> = numbers.iter().map(|&of| (of, of / 2)).collect();
            plan.window(&around[..rank], &functions)
        }
        1 => {
            let blocks: Vec<_> = numbers.iter().map(|&of| of + 1).collect();
            plan.regrid(&blocks[..rank], &functions)
        }
        _ => {
            let names: Vec<String> = (0..rank).map(|at| format!("d{at}")).collect();
            let kept: Vec<&str> = (0..rank)
                .filter(|&at| at == seed as usize % rank || numbers[at] % 2 == 0)
                .map(|at| names[at].as_str())
                .collect();
            plan.aggregate(&functions, &kept)
        }
    };
    let schema = plan.schema().unwrap();
    let region = region_in(&schema.shape(), parts);
    if !region.is_empty() {
        let dimensions = schema.dimensions().iter().zip(region.ranges());
        let bounds = dimensions.map(|(of, &(start, end))| {
            let at = |position| of.coordinate(position).unwrap().into();
            (at(start), at(end - 1))
        });
        plan = plan.subarray(&bounds.collect::<Vec<_>>());
    }
    let pipelined = wait(plan.run(&Run::new())).unwrap();
    let whole = wait(plan.run(&Run::new().model(Model::Materialise))).unwrap();
    prop_assert_eq!(bits(&pipelined), bits(&whole));
    let run = Run::new().on(&TEAM, 3, 1);
    let task = plan.clone();
    let shared = TEAM.block_on(async move { task.run(&run).await }).unwrap();
    prop_assert_eq!(bits(&pipelined), bits(&shared));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn rounded_sums_are_the_same_whoever_asks(
        shape in prop::collection::vec((1..14u64, 1..9u64), 1..4),
        parts in prop::collection::vec((0..15u64, 0..15u64), 4),
        kind in 0..6u8,
        numbers in prop::collection::vec(0..5u64, 4),
        seed in 0..1000u64,
    ) {
        check(&shape, &parts, (kind, &numbers, seed))?;
    }
}

#[test]
fn what_is_no_number_leaves_no_trace_behind_the_window() {
    let directory = tempfile::tempdir().unwrap();
    let dimension = Dimension::integer("x", 0, 40).chunk(16);
    let schema = Schema::new(vec![dimension], vec![Attribute::new("v", DataType::F64)]).unwrap();
    let cells = block(&schema, &Region::of_shape(&[40]), |at| {
        Some(vec![Scalar::Float(match at[0] {
            10 => f64::NAN,
            20 => f64::INFINITY,
            21 => f64::NEG_INFINITY,
            _ => 0.5,
        })])
    });
    let store = store(&directory);
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("a", &schema).unwrap();
    wait(writer.write("a", &cells)).unwrap();
    writer.commit().unwrap();
    let array = Array::open(&store.snapshot(), "a").unwrap();
    let functions = [Function::Sum, Function::Min, Function::Max, Function::Var];
    let functions = functions.map(|of| Aggregate::new(of, "v"));
    let plan = Plan::scan(&array).window(&[(1, 2)], &functions);
    let found = wait(plan.run(&Run::new())).unwrap().to_block().unwrap();
    let float = |of: usize, at: usize| found.column(of).unwrap().get(at).to_f64().unwrap();
    for at in 0..40usize {
        let around = at.saturating_sub(1)..(at + 3).min(40);
        let has = |of: usize| around.contains(&of);
        let count = around.len() as f64;
        if has(10) || (has(20) && has(21)) {
            assert!(float(0, at).is_nan(), "the sum around {at}");
        } else if has(20) {
            assert_eq!(float(0, at), f64::INFINITY);
        } else if has(21) {
            assert_eq!(float(0, at), f64::NEG_INFINITY);
        } else {
            let row = [count / 2.0, 0.5, 0.5, 0.0];
            assert_eq!([0, 1, 2, 3].map(|of| float(of, at)), row, "around {at}");
        }
        if has(10) {
            assert!(float(1, at).is_nan() && float(2, at).is_nan());
        } else {
            let least = if has(21) { f64::NEG_INFINITY } else { 0.5 };
            let most = if has(20) { f64::INFINITY } else { 0.5 };
            assert_eq!((float(1, at), float(2, at)), (least, most), "around {at}");
        }
        if has(10) || has(20) || has(21) {
            assert!(float(3, at).is_nan(), "no variance around {at}");
        }
    }
}
