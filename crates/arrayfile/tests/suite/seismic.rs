//! The synthetic seismic array in a store.

use array::{Array, Region};
use arrayfile::Error;
use arrayfile::seismic::{Seismic, Shape, make};
use futures::executor::block_on;

use crate::scratch::{Scratch, job};

#[test]
fn both_shapes_are_made_chunk_by_chunk() {
    let scratch = Scratch::new();
    for (name, shape, rank) in [("text", Shape::Volume, 3), ("scripts", Shape::Trials, 4)] {
        let seismic = Seismic::sized(shape, 1 << 20, 12);
        let made = block_on(make(&scratch.store, name, &seismic, false, job(4 << 20))).unwrap();
        assert_eq!((made.chunks, made.schema.shape().len()), (12, rank));
        assert!((900_000..1_200_000).contains(&made.bytes), "{}", made.bytes);
        let array = Array::open(&scratch.store.snapshot(), name).unwrap();
        assert_eq!(array.summary().unwrap().written, 12);
        // Every chunk differs from the first.
        let grid = array.grid().clone();
        let sum = |at: &[u64]| {
            let block = block_on(array.read(&grid.region(at), &[true])).unwrap();
            let column = block.column(0).unwrap();
            (0..block.cells())
                .filter_map(|cell| column.get(cell).to_f64())
                .sum::<f64>()
        };
        let sums: Vec<f64> = grid.all().map(|at| sum(&at)).collect();
        assert!(sums[1..].iter().all(|&other| other != sums[0]), "{sums:?}");
    }
    let seismic = Seismic::sized(Shape::Volume, 1 << 20, 12);
    let again = block_on(make(&scratch.store, "text", &seismic, false, job(4 << 20)));
    assert!(again.unwrap_err().to_string().contains("exists already"));
    // The same seed makes the same, another another.
    let first = |name: &str| {
        let array = Array::open(&scratch.store.snapshot(), name).unwrap();
        let region = Region::new([(0, 3), (0, 3), (0, 40)]);
        let mut bytes = vec![0; 360 * 8];
        block_on(array.read_into(&region, 0, &mut bytes)).unwrap();
        bytes
    };
    let before = first("text");
    block_on(make(&scratch.store, "text", &seismic, true, job(4 << 20))).unwrap();
    assert_eq!(first("text"), before);
    let other = Seismic { seed: 1, ..seismic };
    block_on(make(&scratch.store, "text", &other, true, job(4 << 20))).unwrap();
    assert_ne!(first("text"), before);
}

#[test]
fn it_stops_when_asked_to() {
    let scratch = Scratch::new();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let seismic = Seismic::sized(Shape::Trials, 1 << 20, 4);
    let made = block_on(make(
        &scratch.store,
        "a",
        &seismic,
        false,
        job(4 << 20).stopped_by(stop),
    ));
    assert!(matches!(made, Err(Error::Interrupted)));
    assert!(array::list(&scratch.store.snapshot()).unwrap().is_empty());
    let made = block_on(make(&scratch.store, "a", &seismic, false, job(1 << 10)));
    assert!(matches!(made, Err(Error::Memory { .. })));
}
