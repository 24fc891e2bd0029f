//! Single operators: what they read, how they cut their results, and what is said of wrong ones.

use std::sync::Arc;

use array::expr::{BinaryOp, name, value};
use array::{
    Aggregate, Array, ArrayData, Attribute, Chunking, DataType, Dimension, Function, Model, Plan,
    Region, Run, Scalar, Schema, SortKey, Writer,
};

use crate::model::{block, store, wait};
use crate::plans::bits;

/// 40 x 60 doubles in chunks of 10 x 16, each its row times 100 plus its column.
fn numbers(directory: &tempfile::TempDir) -> Arc<Array> {
    let store = store(directory);
    let dimensions = vec![
        Dimension::integer("x", 0, 40).chunk(10),
        Dimension::integer("y", 0, 60).chunk(16),
    ];
    let schema = Schema::new(dimensions, vec![Attribute::new("v", DataType::F64)]).unwrap();
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("n", &schema).unwrap();
    let whole = block(&schema, &Region::of_shape(&[40, 60]), |at| {
        Some(vec![Scalar::Float((at[0] * 100 + at[1]) as f64)])
    });
    wait(writer.write("n", &whole)).unwrap();
    writer.commit().unwrap();
    Array::open(&store.snapshot(), "n").unwrap()
}

#[test]
fn a_filter_reads_only_chunks_that_may_have_cells() {
    let directory = tempfile::tempdir().unwrap();
    let array = numbers(&directory);
    // Rows 20 to 29 have values from 2000 to 2959; only the last of four chunks along y has more than 2947.
    let plan = Plan::scan(&array).filter(name("v").gt(value(2947)).and(name("v").lt(value(2990))));
    let before = array.reads();
    let found = wait(plan.run(&Run::new())).unwrap();
    assert_eq!(found.existing(), 12);
    assert_eq!(array.reads().chunks - before.chunks, 1);
    // A subarray in between does not hide it.
    let plan = Plan::scan(&array)
        .subarray(&[(10.into(), 39.into()), (0.into(), 59.into())])
        .filter(name("v").lt(value(0)));
    let before = array.reads();
    assert_eq!(wait(plan.run(&Run::new())).unwrap().existing(), 0);
    assert_eq!(array.reads(), before, "nothing was read");
}

#[test]
fn subarray_comes_in_regular_chunks_or_in_those_of_the_input() {
    let directory = tempfile::tempdir().unwrap();
    let array = numbers(&directory);
    let bounds = [(35.into(), 5.into()), (10.into(), 40.into())];
    let regular = wait(Plan::scan(&array).subarray(&bounds).run(&Run::new())).unwrap();
    let shapes = |data: &ArrayData| {
        data.blocks()
            .iter()
            .map(|of| of.region().shape())
            .collect::<Vec<_>>()
    };
    assert_eq!(regular.grid().counts(), [4, 2]);
    assert_eq!(shapes(&regular)[..2], [[10, 16], [10, 15]]);
    let inherited = wait(
        Plan::scan(&array)
            .subarray_in(&bounds, Chunking::Inherited)
            .run(&Run::new()),
    )
    .unwrap();
    assert_eq!(inherited.grid().counts(), [4, 3]);
    assert_eq!(shapes(&inherited)[..3], [[5, 6], [5, 16], [5, 9]]);
    assert_eq!(bits(&regular), bits(&inherited));
}

#[test]
fn sorting_joining_multiplying_and_redimensioning() {
    let directory = tempfile::tempdir().unwrap();
    let array = numbers(&directory);
    let small = Plan::scan(&array).subarray(&[(0.into(), 2.into()), (0.into(), 1.into())]);
    let values = |data: &ArrayData, attribute: usize| {
        let block = data.to_block().unwrap();
        (0..block.cells())
            .filter(|&at| block.exists(at))
            .map(|at| block.column(attribute).unwrap().get(at))
            .collect::<Vec<_>>()
    };
    let floats = |values: &[f64]| {
        values
            .iter()
            .map(|&of| Scalar::Float(of))
            .collect::<Vec<_>>()
    };
    let key = SortKey {
        attribute: "v".to_owned(),
        descending: true,
    };
    for model in [Model::Pipeline, Model::Materialise] {
        let run = Run::new().model(model);
        let sorted = wait(
            small
                .clone()
                .filter(name("v").ne(value(100)))
                .sort(std::slice::from_ref(&key))
                .run(&run),
        )
        .unwrap();
        assert_eq!(sorted.schema().shape(), [5]);
        assert_eq!(values(&sorted, 0), floats(&[201.0, 200.0, 101.0, 1.0, 0.0]));
        // 3 x 2 by 2 x 3.
        let product = small.clone().matmul(small.clone().transpose(&[]));
        let product = wait(product.run(&run)).unwrap();
        assert_eq!(product.schema().shape(), [3, 3]);
        assert_eq!(
            values(&product, 0)[..4],
            floats(&[1.0, 101.0, 201.0, 101.0])
        );
        let crossed = small
            .clone()
            .cross_join(small.clone().rename(&[("v", "w")]), &[("x", "x")]);
        let crossed = wait(crossed.run(&run)).unwrap();
        assert_eq!(crossed.schema().shape(), [3, 2, 2]);
        assert_eq!(values(&crossed, 1)[..4], floats(&[0.0, 1.0, 0.0, 1.0]));
        let moved = small
            .clone()
            .apply(&[("k", (name("x") + name("y")).cast(DataType::I64))]);
        let by = vec![Dimension::integer("k", 0, 5)];
        let sums = moved
            .clone()
            .redimension_by(by.clone(), &[Aggregate::new(Function::Sum, "v")]);
        assert_eq!(
            values(&wait(sums.run(&run)).unwrap(), 0),
            floats(&[0.0, 101.0, 301.0, 201.0])
        );
        let error = wait(moved.redimension(by, &["v"]).run(&run)).unwrap_err();
        assert!(
            error.to_string().contains("two cells come to (1)"),
            "{error}"
        );
    }
}

#[test]
fn wrong_plans_are_one_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let array = numbers(&directory);
    let scan = || Plan::scan(&array);
    let ten = (0.into(), 9.into());
    for (plan, message) in [
        (
            scan().subarray(&[ten]),
            "two bounds for each of the 2 dimensions ('x', 'y')",
        ),
        (
            scan().subarray(&[ten, (0.into(), 60.into())]),
            "60 is not in dimension 'y', which has 0 to 59",
        ),
        (
            scan().filter(name("w").gt(value(1))),
            "no attribute or dimension 'w'; there are 'v', 'x', 'y'",
        ),
        (scan().filter(name("v") + value(1)), "filter needs a bool"),
        (scan().slice(&[("z", 1.into())]), "no dimension 'z'"),
        (
            scan().slice(&[("x", "1.5".parse().unwrap())]),
            "1.5 is not in dimension 'x'",
        ),
        (scan().project(&["x"]), "no attribute 'x'"),
        (scan().apply(&[("v", value(1))]), "'v' names two things"),
        (scan().matmul(scan()), "do not fit"),
        (
            scan().elementwise(BinaryOp::Add, scan().subarray(&[ten, ten])),
            "lengths must be equal, or one of them 1",
        ),
        (scan().transpose(&["x", "x"]), "name each dimension once"),
        (
            scan().regrid(&[0, 1], &[Aggregate::count()]),
            "length of at least 1",
        ),
        (scan().aggregate(&[], &[]), "at least one aggregate"),
    ] {
        let error = plan.schema().unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(
            wait(plan.run(&Run::new().model(Model::Materialise)))
                .unwrap_err()
                .to_string(),
            error
        );
    }
    let deep = (0..10_000).fold(scan(), |plan, _| plan.rechunk(&[10, 10]));
    assert!(
        deep.schema()
            .unwrap_err()
            .to_string()
            .contains("stand in one another")
    );
}

#[test]
fn whole_numbers_that_do_not_fit_are_an_error_where_the_cell_exists() {
    let schema = Schema::new(
        vec![Dimension::integer("x", 0, 100)],
        vec![Attribute::new("v", DataType::I8)],
    )
    .unwrap();
    let plan = Plan::build(&schema, name("x"));
    let error = wait(
        plan.clone()
            .scalar(BinaryOp::Multiply, value(2))
            .run(&Run::new()),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("* of int8: a result is too large"),
        "{error}"
    );
    let few = plan
        .clone()
        .filter(name("v").lt(value(64)))
        .scalar(BinaryOp::Multiply, value(2));
    assert_eq!(
        wait(few.run(&Run::new())).unwrap().existing(),
        64,
        "the others do not exist"
    );
    let literal = plan
        .clone()
        .scalar(BinaryOp::Add, value(300))
        .schema()
        .unwrap_err();
    assert!(literal.to_string().contains("300 is no int8"), "{literal}");
    let compared = plan.clone().filter(name("v").lt(value(300)));
    assert_eq!(
        wait(compared.run(&Run::new())).unwrap().existing(),
        100,
        "compared exactly"
    );
    let zero = plan.apply(&[("m", value(7).modulo(name("v")))]);
    assert!(
        wait(zero.run(&Run::new()))
            .unwrap_err()
            .to_string()
            .contains("divided by zero")
    );
}
