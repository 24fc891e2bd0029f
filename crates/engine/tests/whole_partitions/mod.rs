//! Windows that take a look at whole partitions.

use super::*;

/// Functions that take a look at the whole of a partition: one of all rows, or many of which most are cut by chunks.
pub fn whole_partitions(many: i64, one: bool, end: FrameEdge) -> Arc<Prepared> {
    let mut query = Query::default();
    let rows = rows(&mut query, many, 1);
    let mut functions = vec![];
    let mut function = |function, arg, ty: Type| {
        let var = query.add("window", ty);
        functions.push(WindowFold { var, function, arg });
    };
    let float = || Type::of(&DataType::Float64, true).unwrap();
    let frame = FrameBounds::new(FrameUnits::Rows, FrameEdge::First, end);
    if end == FrameEdge::Current {
        function(WindowFunction::PercentRank, None, float());
        function(WindowFunction::CumeDist, None, float());
        for buckets in [1, 7, 50_000_000] {
            function(WindowFunction::Ntile(buckets), None, int());
        }
    }
    for of in [Function::Count, Function::Sum, Function::Min, Function::Max] {
        let of = WindowFunction::Aggregate(of, frame);
        function(of, Some(rows.v), int());
    }
    for ty in [DataType::Float64, DataType::Decimal128(38, 6)] {
        let ty = Type::of(&ty, true).unwrap();
        let average = WindowFunction::Aggregate(Function::Avg, frame);
        function(average, Some(rows.v), ty);
    }
    for row in [FrameRow::First, FrameRow::Last] {
        let value = WindowFunction::Value {
            row,
            frame,
            ignore_nulls: false,
        };
        function(value, Some(rows.t), text());
    }
    let mut vars = vec![rows.k, rows.v];
    vars.extend(functions.iter().map(|fold| fold.var));
    let root = Rel::Window {
        input: Box::new(rows.rel),
        partition: if one { vec![] } else { vec![rows.v] },
        order: vec![Key {
            var: rows.k,
            descending: true,
            nulls_first: true,
        }],
        functions,
    };
    prepared(query, root, vars)
}
