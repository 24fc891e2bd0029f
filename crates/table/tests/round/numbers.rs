//! Numbers as vectors read them, against arrays.

use super::*;

/// Floats of two lengths, with NULLs and NaN, and whole numbers that are near each other and far apart.
fn columns() -> [(&'static str, ArrayRef); 4] {
    let all = 0..20_000i64;
    let float = |i: i64| {
        (i % 7 > 0).then_some(if i % 11 == 0 {
            f64::NAN
        } else {
            i as f64 / 3.0
        })
    };
    let single = |i: i64| (i % 5 > 0).then_some(i as f32 / 3.0);
    [
        (
            "double",
            Arc::new(Float64Array::from_iter(all.clone().map(float))),
        ),
        (
            "single",
            Arc::new(Float32Array::from_iter(all.clone().map(single))),
        ),
        (
            "near",
            Arc::new(Int64Array::from_iter_values(
                all.clone().map(|i| i % 60_000),
            )),
        ),
        (
            "far",
            Arc::new(Int64Array::from_iter_values(all.map(|i| (i - 9) << 40))),
        ),
    ]
}

/// Those of a run and of chosen rows, over several pages.
#[test]
fn numbers_of_several_pages_are_those_of_arrays() {
    let columns = columns()
        .into_iter()
        .map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let case = Case::new(&batch.schema(), 16_384);
    case.load(&batch);
    let scan = Scan::new(case.table(), (0..4).collect(), false);
    let pool = case.store.pool();
    let traffic = Traffic::new(pool.nodes());
    let third: Vec<u32> = (5..19_990).step_by(3).collect();
    let few = [0, 4_095, 4_096, 19_999];
    let rows = [
        Rows::Run(0..20_000),
        Rows::Run(4_000..4_200),
        Rows::Run(7..7),
    ];
    let rows = rows
        .into_iter()
        .chain([Rows::Some(&third), Rows::Some(&few), Rows::Some(&[])]);
    let (_, morsel) = scan.morsels().next().unwrap();
    let cursor = block_on(scan.open(pool, morsel, &[], &traffic, || 0))
        .unwrap()
        .unwrap();
    for rows in rows {
        for column in 0..2 {
            // Behind what is there already.
            let mut found = vec![0.5];
            cursor.floats(column, &rows, &mut found).unwrap();
            let array = cursor.array(column, &rows).unwrap();
            let wanted = arrow::compute::cast(&array, &DataType::Float64).unwrap();
            let wanted = wanted.as_primitive::<Float64Type>();
            assert!(found[0] == 0.5 && found.len() == 1 + wanted.len());
            let same = |(found, wanted): (&f64, Option<f64>)| {
                wanted.is_none_or(|wanted| wanted.to_bits() == found.to_bits())
            };
            assert!(found[1..].iter().zip(wanted).all(same), "{column} {rows:?}");
        }
        for column in 2..4 {
            let (mut found, mut wide) = (vec![7], vec![7]);
            cursor.ints(column, &rows, &mut found).unwrap();
            cursor.wides(column, &rows, &mut wide).unwrap();
            let array = cursor.array(column, &rows).unwrap();
            let wanted = array.as_primitive::<Int64Type>().values();
            assert_eq!(found[1..], **wanted, "{column} {rows:?}");
            assert!(
                wide.iter()
                    .zip(&found)
                    .all(|(wide, found)| *wide == i128::from(*found))
            );
            assert_eq!(wide.len(), found.len());
        }
    }
}
