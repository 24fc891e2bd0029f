//! Order, completeness and failure of a run.

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use super::*;

/// Keeps the values of each block.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<u64, Vec<i64>>>);

impl Sink for Kept {
    fn block(&self, block: &Block) -> Result<(), Error> {
        let columns = block
            .batches
            .iter()
            .map(|b| b.column(0).as_primitive::<Int64Type>());
        let values = columns.flat_map(|c| c.values().to_vec()).collect();
        assert!(
            self.0.lock().insert(block.ordinal, values).is_none(),
            "block stored twice"
        );
        Ok(())
    }
}

fn batch(from: u64, rows: u64) -> RecordBatch {
    let values = Int64Array::from_iter_values((from..from + rows).map(|v| v as i64));
    RecordBatch::try_from_iter([("a", Arc::new(values) as _)]).unwrap()
}

/// `count` pieces of different lengths, in batches of 1,000 rows; a piece's length is known if `known` is true for its
/// number.
fn pieces(count: u64, known: impl Fn(u64) -> bool + Send + 'static) -> (Pieces, u64) {
    let length = |piece: u64| 3000 + 7919 * (piece % 11);
    let total = (0..count).map(length).sum();
    let mut start = 0;
    let pieces = (0..count).map(move |piece| {
        let (first, rows) = (start, length(piece));
        start += rows;
        let read = move || {
            let cuts = (0..rows).step_by(1000);
            Ok(Box::new(cuts.map(move |at| Ok(batch(first + at, 1000.min(rows - at))))) as Batches)
        };
        Ok(Piece {
            rows: known(piece).then_some(rows),
            bytes: rows,
            read: Box::new(read),
        })
    });
    (Box::new(pieces), total)
}

fn on_threads<T>(threads: usize, with: impl FnOnce(&Handle) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .build()
        .unwrap();
    with(runtime.handle())
}

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn rows_arrive_once_and_in_order() {
    for (width, memory) in [
        (1, u64::MAX),
        (2, u64::MAX),
        (7, u64::MAX),
        (7, 0),
        (7, 3 << 20),
    ] {
        for kind in 0..3 {
            let (pieces, total) = pieces(60, move |piece| match kind {
                0 => true,
                1 => false,
                // Files of different formats: from the first unknown length on, order decides.
                _ => piece < 20 || piece % 2 == 0,
            });
            let mut bytes = 0;
            let mut watch = |_, now| {
                bytes = now;
                ControlFlow::Continue(())
            };
            let ran = on_threads(2, |handle| {
                run(handle, width, memory, pieces, Kept::default(), &mut watch)
            });
            let (kept, rows) = ran.unwrap();
            assert_eq!((rows, bytes), (total, total), "width {width}, kind {kind}");
            let blocks = kept.0.into_inner();
            assert!(
                blocks
                    .values()
                    .rev()
                    .skip(1)
                    .all(|values| values.len() == 65_536)
            );
            assert!(blocks.into_values().flatten().eq(0..total as i64));
        }
    }
}

#[test]
fn nothing_makes_no_block() {
    let ran = on_threads(2, |handle| {
        run(
            handle,
            2,
            u64::MAX,
            pieces(0, |_| true).0,
            Kept::default(),
            &mut go_on,
        )
    });
    let (kept, rows) = ran.unwrap();
    assert_eq!((rows, kept.0.into_inner().len()), (0, 0));
}

fn failing(piece: u64, how: fn() -> Result<Batches, Error>) -> Result<(Kept, u64), Error> {
    for known in [true, false] {
        let (pieces, _) = pieces(40, move |_| known);
        let pieces = (0..).zip(pieces).map(move |(at, found)| match found {
            Ok(found) if at == piece => Ok(Piece {
                read: Box::new(how),
                ..found
            }),
            found => found,
        });
        let ran = on_threads(2, |handle| {
            run(
                handle,
                3,
                u64::MAX,
                Box::new(pieces),
                Kept::default(),
                &mut go_on,
            )
        });
        if ran.is_ok() || known {
            continue;
        }
        return ran;
    }
    Ok((Kept::default(), 0))
}

#[test]
fn the_first_failure_is_reported() {
    let failed = failing(17, || Err(Error::Import("piece 17".to_owned())));
    assert!(failed.is_err_and(|error| error.to_string().contains("piece 17")));
    let panicked = failing(5, || panic!("a decoder's panic, wanted by the test"));
    assert!(panicked.is_err_and(|error| error.to_string().contains("report")));
}

#[test]
fn a_piece_shorter_than_announced_is_damaged() {
    let piece = || {
        Ok(Piece {
            rows: Some(7),
            bytes: 1,
            read: Box::new(|| Ok(Box::new([Ok(batch(0, 5))].into_iter()) as Batches)),
        })
    };
    let pieces = std::iter::once_with(piece);
    let ran = on_threads(1, |handle| {
        run(
            handle,
            1,
            u64::MAX,
            Box::new(pieces),
            Kept::default(),
            &mut go_on,
        )
    });
    assert!(ran.is_err_and(|error| error.to_string().contains("damaged")));
}

#[test]
fn the_watcher_stops_an_endless_run() {
    let endless = (0..).map(|_: u64| {
        let read = || Ok(Box::new([Ok(batch(0, 1000))].into_iter()) as Batches);
        Ok(Piece {
            rows: Some(1000),
            bytes: 1,
            read: Box::new(read),
        })
    });
    let mut stop = |_, _| ControlFlow::Break(());
    struct Nowhere;
    impl Sink for Nowhere {
        fn block(&self, _: &Block) -> Result<(), Error> {
            Ok(())
        }
    }
    let ran = on_threads(2, |handle| {
        run(handle, 2, u64::MAX, Box::new(endless), Nowhere, &mut stop)
    });
    assert!(matches!(ran.map(|_| ()), Err(Error::Interrupted)));
}
