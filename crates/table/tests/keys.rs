//! Keys that hold, against a model: what is refused, what is found, and what is left after what was undone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use futures::executor::block_on;
use store::{Store, Transaction};
use table::*;

/// A row: its primary key, and a unique key of a text and a float, of which each may be NULL.
type Row = (i64, Option<String>, Option<f64>);

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("note", DataType::Utf8View, true),
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8View, true),
        Field::new("size", DataType::Float64, true),
    ]))
}

fn definition() -> Definition {
    let mut definition = Definition::from_schema("t", &schema()).unwrap();
    definition.primary_key = vec![1];
    definition.enforce_primary_key();
    definition.add_key("t_name_size_key".into(), vec![2, 3], false);
    definition
}

fn batch(rows: &[Row]) -> RecordBatch {
    let notes = StringViewArray::from_iter_values(rows.iter().map(|row| format!("n{}", row.0)));
    let ids = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
    let names = StringViewArray::from_iter(rows.iter().map(|row| row.1.as_deref()));
    let sizes = Float64Array::from_iter(rows.iter().map(|row| row.2));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(notes),
        Arc::new(ids),
        Arc::new(names),
        Arc::new(sizes),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// What the unique key of a row is, in the model.
fn second(row: &Row) -> Option<(String, u64)> {
    let size = row.2?;
    let bits = if size.is_nan() {
        u64::MAX
    } else if size == 0.0 {
        0
    } else {
        size.to_bits()
    };
    Some((row.1.clone()?, bits))
}

/// The rows of a table.
#[derive(Clone, Default)]
struct Model {
    rows: HashMap<i64, Row>,
}

impl Model {
    /// Whether these rows can be added.
    fn takes(&self, rows: &[Row]) -> bool {
        let all = self.rows.values().chain(rows);
        let mut seconds: Vec<_> = all.filter_map(second).collect();
        let count = seconds.len();
        seconds.sort_unstable();
        seconds.dedup();
        let firsts: HashSet<i64> = rows.iter().map(|row| row.0).collect();
        firsts.len() == rows.len()
            && !firsts.iter().any(|id| self.rows.contains_key(id))
            && seconds.len() == count
    }

    fn add(&mut self, rows: &[Row]) {
        self.rows
            .extend(rows.iter().map(|row| (row.0, row.clone())));
    }
}

/// Draws rows; among `wide` ids, most of which are free.
fn draw(random: &mut fastrand::Rng, count: usize, wide: i64, sorted: bool) -> Vec<Row> {
    let start = random.i64(-5..wide);
    let mut rows = Vec::new();
    for at in 0..count {
        let id = if sorted {
            start + at as i64
        } else {
            match random.u8(0..100) {
                0 => i64::MAX - random.i64(0..3),
                1 => i64::MIN + random.i64(0..3),
                _ => random.i64(-5..wide),
            }
        };
        let name = match random.u8(0..12) {
            0 => None,
            1 => Some(String::new()),
            2 => Some("a\0".to_string()),
            3 => Some("x".repeat(random.usize(100..40_000))),
            _ => Some(format!("name {}", random.u32(0..2_000_000))),
        };
        let size = match random.u8(0..12) {
            0 => None,
            1 => Some(0.0),
            2 => Some(-0.0),
            3 => Some(f64::NAN),
            4 => Some(-f64::NAN),
            _ => Some(f64::from(random.u16(0..999)) / 8.0),
        };
        // So that many rows can be added at once: hostile ones are rare there.
        let plain = count > 50 && random.u16(0..2_000) > 0;
        rows.push(if plain {
            (id, Some(format!("plain {id}")), Some(1.5))
        } else {
            (id, name, size)
        });
    }
    // In order piece by piece, as workers hand over what they have read.
    if count > 50 && sorted && random.bool() {
        let pieces: Vec<&[Row]> = rows.chunks(random.usize(300..1_500)).collect();
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        random.shuffle(&mut order);
        rows = order.iter().flat_map(|at| pieces[*at].to_vec()).collect();
    }
    if count > 50 && random.bool() {
        let mut seen = HashSet::new();
        rows.retain(|row| seen.insert(row.0));
    }
    rows
}

fn open() -> (tempfile::TempDir, Arc<Store>) {
    let folder = tempfile::tempdir().unwrap();
    let options = store::Options {
        page_size: 16_384,
        ..store::Options::default()
    };
    let store = Store::create(folder.path().join("k.atoll"), &options).unwrap();
    let mut tx = store.begin().unwrap();
    create(&mut tx, &definition()).unwrap();
    tx.commit().unwrap();
    (folder, store)
}

fn table(tx: &Transaction) -> Arc<Table> {
    let tables = Catalog::new().tables(&tx.view()).unwrap();
    tables.get("t").unwrap().clone()
}

fn is_duplicate(error: &Error) -> bool {
    matches!(error, Error::Duplicate { .. })
}

/// Adds rows in one of the ways in which rows are added; none if that is refused.
fn add(tx: Transaction, rows: &[Row], how: u8, random: &mut fastrand::Rng) -> Option<Transaction> {
    let added = if how == 0 {
        block_on(insert(tx, "t", &[batch(rows)]))
    } else {
        let loader = block_on(Loader::new(tx, "t")).unwrap();
        let blocks: Vec<_> = rows
            .chunks(random.usize(1..2_000).max(rows.len() / 9))
            .collect();
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        random.shuffle(&mut order);
        for at in order {
            loader.block(at as u64, &[batch(blocks[at])]).unwrap();
        }
        block_on(loader.finish())
    };
    match added {
        Ok((tx, count)) => {
            assert_eq!(count, rows.len() as u64);
            Some(tx)
        }
        Err(error) => {
            assert!(is_duplicate(&error), "{error}");
            None
        }
    }
}

/// That the index finds what the model has, and nothing else.
fn check(tx: &Transaction, model: &Model, random: &mut fastrand::Rng) {
    let table = table(tx);
    assert_eq!(table.rows(), model.rows.len() as u64);
    let mut ids: Vec<i64> = model.rows.keys().copied().collect();
    random.shuffle(&mut ids);
    ids.truncate(40);
    ids.extend((0..20).map(|_| random.i64(-9..90_000)));
    let key = &table.definition().keys[0];
    let column: ArrayRef = Arc::new(Int64Array::from(ids.clone()));
    let found = block_on(table.find(key, std::slice::from_ref(&column))).unwrap();
    check_lacking(&table, 0, &[column]);
    let many: Int64Array = (0..2_000).map(|_| Some(random.i64(-9..90_000))).collect();
    check_lacking(&table, 0, &[Arc::new(many.clone())]);
    check_many(&table, &many, random);
    let there: Vec<(i64, u64)> = ids
        .iter()
        .copied()
        .zip(&found)
        .filter_map(|(id, row)| Some((id, (*row)?)))
        .collect();
    for (id, row) in ids.iter().zip(&found) {
        assert_eq!(row.is_some(), model.rows.contains_key(id), "id {id}");
    }
    let rows: Vec<u64> = there.iter().map(|(_, row)| *row).collect();
    let fetched = block_on(table.fetch(&[1, 0], &rows)).unwrap();
    let ids = fetched.column(0).as_primitive::<Int64Type>().values();
    let wanted: Vec<i64> = there.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, &wanted);
    let traffic = memory::Traffic::new(tx.base().pool().nodes());
    for (at, row) in rows.iter().enumerate() {
        let one = block_on(table.row(&[1, 0, 3, 2, 1], *row, (&traffic, 0))).unwrap();
        let all = block_on(table.fetch(&[1, 0, 3, 2, 1], &[*row])).unwrap();
        assert_eq!(one, all.columns(), "{at}");
    }
    for row in [u64::MAX, u64::from(u16::MAX), 1 << 40] {
        let one = block_on(table.row(&[0], row, (&traffic, 0))).is_ok();
        assert_eq!(one, block_on(table.fetch(&[0], &[row])).is_ok(), "{row}");
    }
    let own: Vec<Row> = wanted.iter().map(|id| model.rows[id].clone()).collect();
    let both = batch(&own);
    let key = &table.definition().keys[1];
    let columns = [both.column(2).clone(), both.column(3).clone()];
    let seconds = block_on(table.find(key, &columns)).unwrap();
    check_lacking(&table, 1, &columns);
    for (row, (found, own)) in rows.iter().zip(seconds.iter().zip(&own)) {
        assert_eq!(*found, second(own).map(|_| *row), "{own:?}");
    }
}

/// That what is lacking is what is not found, of few keys and of many.
fn check_lacking(table: &Arc<Table>, key: usize, columns: &[ArrayRef]) {
    let key = &table.definition().keys[key];
    let found = block_on(table.find(key, columns)).unwrap();
    let wanted = (0..).zip(&found).filter(|(_, found)| found.is_none());
    let wanted: Vec<u32> = wanted.map(|(row, _)| row).collect();
    assert_eq!(block_on(table.lacking(key, columns)).unwrap(), wanted);
}

/// That many keys at once are found as each is by itself: some twice, some of no row, and NULL among them.
fn check_many(table: &Arc<Table>, ids: &Int64Array, random: &mut fastrand::Rng) {
    let key = &table.definition().keys[0];
    let places = (0..3_000).map(|_| (random.u8(0..9) > 0).then(|| random.u32(0..ids.len() as u32)));
    let places: UInt32Array = places.collect();
    let many = arrow::compute::take(ids, &places, None).unwrap();
    let found = block_on(table.find(key, std::slice::from_ref(&many))).unwrap();
    assert_eq!(found.len(), many.len());
    for _ in 0..60 {
        let at = random.usize(0..many.len());
        let one = block_on(table.find(key, &[many.slice(at, 1)])).unwrap();
        assert_eq!(found[at], one[0], "{at}");
    }
    let some = many.slice(0, 900);
    let some = block_on(table.find(key, &[some])).unwrap();
    assert_eq!(some, found[..900]);
}

fn delete_some(tx: &mut Transaction, model: &mut Model, random: &mut fastrand::Rng) {
    let table = table(tx);
    let scan = Scan::new(table.clone(), vec![1], true);
    let traffic = memory::Traffic::new(tx.base().pool().nodes());
    let share = random.u8(0..=100);
    let (mut gone, mut numbers) = (vec![], vec![]);
    for (_, morsel) in scan.morsels() {
        // Whole blocks, too.
        let whole = random.u8(0..8) == 0;
        let pool = tx.base().pool();
        let opened = block_on(scan.open(pool, morsel, &[], &traffic, || 0)).unwrap();
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(3_000).unwrap() {
            let ids = batch.column(0).as_primitive::<Int64Type>();
            let rows = batch.column(1).as_primitive::<UInt64Type>();
            for at in 0..batch.num_rows() {
                if whole || random.u8(0..100) < share / 4 {
                    gone.push(ids.value(at));
                    numbers.push(rows.value(at));
                }
            }
        }
    }
    assert_eq!(delete(tx, "t", &numbers).unwrap(), numbers.len() as u64);
    for id in gone {
        assert!(model.rows.remove(&id).is_some());
    }
}

/// Makes one change; none if it is refused.
fn change(
    mut tx: Transaction,
    model: &mut Model,
    random: &mut fastrand::Rng,
) -> Option<Transaction> {
    match random.u8(0..12) {
        0..=5 => {
            let large = random.u8(0..6) == 0;
            let count = if large {
                random.usize(51..6_000)
            } else {
                random.usize(1..6)
            };
            let (how, sorted) = (random.u8(0..3), random.u8(0..3) > 0);
            let wide = if large || random.bool() { 90_000 } else { 40 };
            let rows = draw(random, count, wide, sorted);
            let takes = model.takes(&rows);
            let added = add(tx, &rows, how, random);
            assert_eq!(added.is_some(), takes);
            tx = added?;
            model.add(&rows);
        }
        6..=8 => delete_some(&mut tx, model, random),
        9 if random.u8(0..6) == 0 => {
            truncate(&mut tx, "t").unwrap();
            model.rows.clear();
        }
        9 => {
            drop_key(&mut tx, "t", "t_pkey").unwrap();
            block_on(add_key(&mut tx, "t", "t_pkey", vec![1], true)).unwrap();
            // The first again, as the checks have it.
            redefine(&mut tx, "t", |definition| {
                definition.keys.reverse();
                Ok(())
            })
            .unwrap();
        }
        _ => {}
    }
    Some(tx)
}

/// Works, and says how many changes were made, and how many were refused.
fn work(seed: u64, steps: usize) -> (usize, usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (_folder, store) = open();
    let mut model = Model::default();
    let (mut refused, mut done) = (0, 0);
    for _ in 0..steps {
        let mut tx = store.begin().unwrap();
        let mut next = model.clone();
        // A few changes in a transaction, each in one nested in it.
        for _ in 0..random.usize(1..4) {
            let mut after = next.clone();
            let Some(inner) = change(tx.nested(), &mut after, &mut random) else {
                refused += 1;
                continue;
            };
            done += 1;
            // Some go back to a savepoint.
            if random.u8(0..3) > 0 {
                tx.adopt(inner);
                next = after;
            }
        }
        check(&tx, &next, &mut random);
        if random.u8(0..5) > 0 {
            tx.commit().unwrap();
            model = next;
        }
    }
    let tx = store.begin().unwrap();
    check(&tx, &model, &mut random);
    std::mem::drop(tx);
    parts_are_all(&store);
    let problems = store.check(&|_, _| {}).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    (done, refused)
}

/// That the table has all pages of the store, and each once.
fn parts_are_all(store: &Arc<Store>) {
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    let mut pages: Vec<_> = tables
        .get("t")
        .unwrap()
        .parts()
        .into_iter()
        .flat_map(|(_, pages)| pages)
        .collect();
    let count = pages.len();
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(pages.len(), count);
    assert_eq!(count as u64, store.statistics().pages.pages);
}

#[test]
fn keys_are_those_of_a_model_whatever_is_done_and_undone() {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..8 {
        let counts = work(seed, 60);
        done += counts.0;
        refused += counts.1;
    }
    assert!(
        done > 400 && refused > 60,
        "{done} changes, {refused} refused"
    );
}

#[test]
fn the_error_names_the_key_and_its_values() {
    let (_folder, store) = open();
    let rows = [(1, Some("a".to_string()), Some(0.0)), (2, None, None)];
    let (tx, _) = block_on(insert(store.begin().unwrap(), "t", &[batch(&rows)])).unwrap();
    tx.commit().unwrap();
    let refused = |row: Row| {
        let tx = store.begin().unwrap();
        block_on(insert(tx, "t", &[batch(&[row])]))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused((1, None, None)),
        "duplicate key value violates unique constraint \"t_pkey\": Key (id)=(1) already exists."
    );
    assert_eq!(
        refused((3, Some("a".into()), Some(-0.0))),
        "duplicate key value violates unique constraint \"t_name_size_key\": Key (name, size)=(a, 0.0) already exists."
    );
}

/// An earlier version knows no index and raises the counter of changes alone: then nothing relies on the index.
#[test]
fn an_index_that_is_behind_is_not_used() {
    let (_folder, store) = open();
    let mut tx = store.begin().unwrap();
    let entry = b"tt";
    let space = u32::from_le_bytes(tx.get(0, entry).unwrap()[..].try_into().unwrap());
    let rows = u64::from_le_bytes(tx.get(space, b"r").unwrap()[..].try_into().unwrap());
    tx.put(space, b"r", &(rows + 1).to_le_bytes());
    tx.put(space, b"v", &(rows + 1).to_le_bytes());
    tx.commit().unwrap();
    let tx = store.begin().unwrap();
    let table = table(&tx);
    assert!(!table.has_index(&table.definition().keys[0]));
    let refused = block_on(insert(tx, "t", &[batch(&[(1, None, None)])])).unwrap_err();
    assert!(matches!(refused, Error::Key { .. }), "{refused}");
    // Nor does a later change make it right.
    let mut tx = store.begin().unwrap();
    truncate(&mut tx, "t").unwrap();
    let refused = block_on(insert(tx, "t", &[batch(&[(1, None, None)])])).unwrap_err();
    assert!(matches!(refused, Error::Key { .. }), "{refused}");
    // Making it anew does.
    let mut tx = store.begin().unwrap();
    for (name, columns, primary) in [
        ("t_pkey", vec![1], true),
        ("t_name_size_key", vec![2, 3], false),
    ] {
        drop_key(&mut tx, "t", name).unwrap();
        block_on(add_key(&mut tx, "t", name, columns, primary)).unwrap();
    }
    block_on(insert(tx, "t", &[batch(&[(1, None, None)])])).unwrap();
}

#[test]
fn what_is_loaded_in_order_takes_no_page_of_an_index() {
    let (_folder, store) = open();
    let mut tx = store.begin().unwrap();
    drop_key(&mut tx, "t", "t_name_size_key").unwrap();
    let rows: Vec<Row> = (0..20_000).map(|id| (id, None, None)).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let tx = add(tx, &rows, 1, &mut random).unwrap();
    let parts = table(&tx).parts();
    assert!(
        parts.iter().all(|(part, _)| !matches!(part, Part::Key(_))),
        "{parts:?}"
    );
    // Also in pieces of two workers, whose blocks overlap.
    let mut pieces: Vec<Vec<Row>> = Vec::new();
    for start in (20_000..60_000).step_by(1_000) {
        let piece = |start: i64| (start..start + 1_000).map(|id| (id, None, None)).collect();
        pieces.extend([piece(start), piece(start + 100_000)]);
    }
    let loader = block_on(Loader::new(tx, "t")).unwrap();
    for (at, eight) in pieces.chunks(8).enumerate() {
        let eight: Vec<_> = eight.iter().map(|piece| batch(piece)).collect();
        loader.block(at as u64, &eight).unwrap();
    }
    let (tx, _) = block_on(loader.finish()).unwrap();
    let parts = table(&tx).parts();
    assert!(
        parts.iter().all(|(part, _)| !matches!(part, Part::Key(_))),
        "{parts:?}"
    );
    let rows: Vec<Row> = rows
        .iter()
        .rev()
        .map(|row| (row.0 + 200_000, None, None))
        .collect();
    let tx = add(tx, &rows, 1, &mut random).unwrap();
    let parts = table(&tx).parts();
    assert!(
        parts.iter().any(|(part, _)| matches!(part, Part::Key(0))),
        "{parts:?}"
    );
}

#[test]
fn a_load_in_no_order_is_indexed_by_several_threads() {
    let mut random = fastrand::Rng::with_seed(5);
    for more in [0, 1 << 21] {
        let (_folder, store) = open();
        let mut ids: Vec<i64> = (0..160_000).map(|id| id * 3).collect();
        random.shuffle(&mut ids);
        let (tx, _) = load(tx_of(&store), &ids, more).unwrap();
        tx.commit().unwrap();
        let tx = tx_of(&store);
        check_ids(&tx, &ids);
        let parts = table(&tx).parts();
        let pages = parts.iter().find(|(part, _)| *part == Part::Key(0));
        let pages = pages.map_or(0, |(_, pages)| pages.len());
        assert!((137..160).contains(&pages), "{pages}");
        std::mem::drop(tx);
        // One that is there among many new ones, and one that comes twice.
        let mut others: Vec<i64> = (0..90_000).map(|id| id * 3 + 1).collect();
        random.shuffle(&mut others);
        for twice in [ids[77_777], others[0]] {
            let own: Vec<i64> = others.iter().copied().chain([twice]).collect();
            let error = load(tx_of(&store), &own, more).unwrap_err();
            assert!(is_duplicate(&error), "{error}");
        }
        let (tx, _) = load(tx_of(&store), &others, more).unwrap();
        ids.extend(others);
        check_ids(&tx, &ids);
    }
}

fn tx_of(store: &Arc<Store>) -> Transaction {
    store.begin().unwrap()
}

/// Loads rows with these ids by three threads.
fn load(tx: Transaction, ids: &[i64], more: usize) -> Result<(Transaction, u64)> {
    let loader = block_on(Loader::new(tx, "t"))?;
    loader.keep_waiting(more);
    let rows = |some: &[i64]| {
        some.iter()
            .map(|id| (*id, None, None))
            .collect::<Vec<Row>>()
    };
    let blocks: Vec<RecordBatch> = ids.chunks(60_000).map(|some| batch(&rows(some))).collect();
    std::thread::scope(|scope| {
        for (at, block) in blocks.iter().enumerate() {
            let loader = &loader;
            scope.spawn(move || {
                loader
                    .block(at as u64, std::slice::from_ref(block))
                    .unwrap()
            });
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| while loader.index_some().unwrap() {});
        }
    });
    block_on(loader.finish())
}

/// That rows with these ids are found, and no others.
fn check_ids(tx: &Transaction, ids: &[i64]) {
    let table = table(tx);
    assert_eq!(table.rows(), ids.len() as u64);
    let key = &table.definition().keys[0];
    let all: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
    let found = block_on(table.find(key, &[all])).unwrap();
    let mut rows: Vec<u64> = found.into_iter().map(Option::unwrap).collect();
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), ids.len());
    for some in ids.chunks(50_000) {
        let few: ArrayRef = Arc::new(Int64Array::from_iter_values(
            some.iter().take(40).flat_map(|id| [*id, -1 - id]),
        ));
        let found = block_on(table.find(key, &[few])).unwrap();
        assert!(
            found
                .chunks(2)
                .all(|pair| pair[0].is_some() && pair[1].is_none())
        );
    }
}
