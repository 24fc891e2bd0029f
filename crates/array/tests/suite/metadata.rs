//! What is said of an array goes through operators with the dimensions and attributes that they leave as they are.

use array::expr::{BinaryOp, name, value};
use array::{
    Aggregate, Attribute, Bound, Chunking, DataType, Decimal, Dimension, Function, Metadata,
    MetadataValue, Model, Plan, Run, Schema, SortKey, Time,
};
use futures::executor::block_on;

/// Heat `h` and salt `s` over `time` and `x`, of all of which something is said, and the times are times.
fn sea() -> Plan {
    let dimensions = vec![
        Dimension::integer("time", 10, 4),
        Dimension::integer("x", 0, 3),
    ];
    let schema = Schema::new(dimensions, vec![Attribute::new("h", DataType::F64)]).unwrap();
    let mut metadata = Metadata::default();
    metadata.describe(None, said("sea"));
    for part in ["time", "x", "h"] {
        metadata.describe(Some(part), said(part));
    }
    metadata.set_time("time", Time::new(0, 1_000_000).unwrap());
    Plan::build(&schema.with_metadata(metadata), name("x") + name("time"))
}

fn at(coordinate: i64) -> Decimal {
    coordinate.into()
}

fn said(what: &str) -> Vec<(String, MetadataValue)> {
    vec![("long_name".to_owned(), what.into())]
}

/// What is said of the parts of a plan's result: `part=what`, and `*` for the array itself.
fn told(plan: &Plan) -> Vec<String> {
    let of = |schema: &Schema| {
        let parts = schema.dimensions().iter().map(Dimension::name);
        let parts = parts.chain(schema.attributes().iter().map(Attribute::name));
        let parts = parts.map(|part| (part.to_owned(), schema.metadata().of(Some(part))));
        let all = [("*".to_owned(), schema.metadata().of(None))]
            .into_iter()
            .chain(parts);
        let mut found = Vec::new();
        for (part, entries) in all {
            let time = schema.metadata().time(&part).map_or("", |_| " time");
            found.extend(
                entries
                    .iter()
                    .map(|(_, what)| format!("{part}={what}{time}")),
            );
        }
        found
    };
    let known = of(&plan.schema().unwrap());
    for model in [Model::Pipeline, Model::Materialise] {
        let data = block_on(plan.run(&Run::new().model(model))).unwrap();
        assert_eq!(of(data.schema()), known, "{plan}");
    }
    known
}

const ALL: [&str; 4] = ["*=sea", "time=time time", "x=x", "h=h"];

#[test]
fn what_stays_as_it_is_keeps_what_is_said_of_it() {
    let edge = (Bound::Edge, Bound::Edge);
    for plan in [
        sea(),
        sea().filter(name("h").ge(value(12))),
        sea().between(&[(Bound::At(at(11)), Bound::Edge), edge]),
        sea().apply(&[("twice", name("h") * value(2))]),
        sea()
            .apply(&[("twice", name("h") * value(2))])
            .project(&["h"]),
        sea().rechunk(&[1, 1]),
        sea().redimension(
            vec![
                Dimension::integer("time", 9, 9),
                Dimension::integer("x", 0, 3),
            ],
            &["h"],
        ),
    ] {
        assert_eq!(told(&plan), ALL, "{plan}");
    }
    let turned = ["*=sea", "x=x", "time=time time", "h=h"];
    assert_eq!(told(&sea().transpose(&[])), turned);
    assert_eq!(
        told(&sea().rename(&[("h", "heat")])),
        ["*=sea", "time=time time", "x=x", "heat=h"]
    );
    assert_eq!(
        told(&sea().slice(&[("time", at(11))])),
        ["*=sea", "x=x", "h=h"]
    );
    let list = sea().sort(&[SortKey {
        attribute: "h".to_owned(),
        descending: true,
    }]);
    assert_eq!(told(&list), ["*=sea", "h=h"]);
}

#[test]
fn coordinates_that_are_others_have_nothing_said_of_them() {
    let edge = (Bound::Edge, Bound::Edge);
    let part = [(Bound::At(at(11)), Bound::At(at(12))), edge];
    // Times begin at 0 then.
    assert_eq!(told(&sea().subarray(&part)), ["*=sea", "x=x", "h=h"]);
    let kept = sea().subarray_in(&part, Chunking::Inherited);
    assert_eq!(told(&kept), ["*=sea", "x=x", "h=h"]);
    let sum = [Aggregate::new(Function::Sum, "h")];
    assert_eq!(told(&sea().regrid(&[2, 1], &sum)), [] as [&str; 0]);
    // A day behind another goes on as it began.
    assert_eq!(
        told(&sea().concat(sea(), "time")),
        ["time=time time", "x=x", "h=h"]
    );
    let other = sea().rename(&[("h", "v")]).scalar(BinaryOp::Add, value(1));
    assert_eq!(
        told(&sea().concat(other, "time")),
        ["time=time time", "x=x"]
    );
}

#[test]
fn what_is_computed_has_nothing_said_of_it() {
    let over = ["time=time time", "x=x"];
    for plan in [
        sea().scalar(BinaryOp::Add, value(1)),
        sea().opposite(),
        sea().elementwise(BinaryOp::Multiply, sea()),
        sea().window(&[(1, 1), (0, 0)], &[Aggregate::new(Function::Sum, "h")]),
        sea().variable_window("x", (1, 1), &[Aggregate::new(Function::Sum, "h")]),
    ] {
        assert_eq!(told(&plan), over, "{plan}");
    }
    let sum = [Aggregate::new(Function::Sum, "h")];
    assert_eq!(told(&sea().aggregate(&sum, &["time"])), ["time=time time"]);
    assert_eq!(told(&sea().aggregate(&sum, &[])), [] as [&str; 0]);
    assert_eq!(
        told(&sea().quantile("h", &["0.5".parse().unwrap()], &["x"])),
        ["x=x"]
    );
    // Both sides' attributes are there, the second by another name.
    assert_eq!(
        told(&sea().join(sea())),
        ["time=time time", "x=x", "h=h", "h_2=h"]
    );
    let product = sea().matmul(sea().transpose(&[]));
    assert_eq!(told(&product), ["time=time time", "time_2=time time"]);
}
