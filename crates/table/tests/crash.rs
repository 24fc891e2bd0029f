//! Tables after a loss of power: each statement is there with all its rows, or not at all, and the indexes of their keys
//! with it.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use futures::executor::block_on;
use io::fault::Disk;
use memory::Traffic;
use store::Store;
use table::*;

/// The rows of a table by their number, which each has its own: that, and a text or NULL.
type Content = Vec<(i64, Option<String>)>;
/// The tables of a version.
type State = BTreeMap<String, Content>;

fn options() -> store::Options {
    store::Options {
        page_size: 16_384,
        // So that checkpoints come by themselves, too.
        checkpoint_bytes: 20_000,
        pool: store::PoolOptions {
            bytes: 64 * 16_384,
            io_threads: 1,
            ..store::PoolOptions::default()
        },
        ..store::Options::default()
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("number", DataType::Int64, false),
        Field::new("text", DataType::Utf8View, true),
    ]))
}

fn rows(numbers: std::ops::Range<i64>) -> Content {
    let text = |n: i64| (n % 5 != 0).then(|| format!("text {}", n % 97));
    numbers.map(|n| (n, text(n))).collect()
}

fn batch(content: &Content) -> RecordBatch {
    let numbers = Int64Array::from_iter_values(content.iter().map(|(number, _)| *number));
    let texts = StringViewArray::from_iter(content.iter().map(|(_, text)| text.as_deref()));
    RecordBatch::try_new(schema(), vec![Arc::new(numbers), Arc::new(texts)]).unwrap()
}

/// The rows of a table, and for each its number in the hidden column.
fn read(store: &Arc<Store>, table: Arc<Table>) -> Result<(Content, Vec<u64>)> {
    let scan = Scan::new(table, vec![0, 1], true);
    let pool = store.pool();
    let traffic = Traffic::new(pool.nodes());
    let mut found = BTreeMap::new();
    for (_, morsel) in scan.morsels() {
        let opened = block_on(scan.open(pool, morsel, &[], &traffic, || 0))?;
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(3_000)? {
            let number = batch.column(0).as_primitive::<Int64Type>();
            let text = batch.column(1).as_string_view();
            let row = batch.column(2).as_primitive::<UInt64Type>();
            for at in 0..batch.num_rows() {
                let text = text.is_valid(at).then(|| text.value(at).to_owned());
                let before = found.insert((number.value(at), text), row.value(at));
                assert_eq!(before, None, "a row is there twice");
            }
        }
    }
    Ok(found.into_iter().unzip())
}

/// All tables of the last version, whose indexes have all their rows.
fn state(store: &Arc<Store>) -> State {
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    let names = tables.names();
    let content = |name: &&str| {
        let table = tables.get(name).unwrap();
        let (content, rows) = read(store, table.clone()).unwrap();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(content.iter().map(|c| c.0)));
        let found = block_on(table.find(&table.definition().keys[0], &[numbers])).unwrap();
        let found: Vec<u64> = found.into_iter().map(Option::unwrap).collect();
        assert_eq!(found, rows);
        content
    };
    names
        .iter()
        .map(|name| ((*name).to_owned(), content(name)))
        .collect()
}

/// What a statement does to a table.
#[derive(Debug, Clone, Copy)]
enum Step {
    Create(&'static str),
    /// A few rows go to the tail, many to blocks.
    Insert(&'static str, i64),
    /// Every seventh row.
    Delete(&'static str),
    Truncate(&'static str),
    Drop(&'static str),
}

const STEPS: [Step; 12] = [
    Step::Create("a"),
    Step::Insert("a", 40),
    Step::Insert("a", 16_500),
    Step::Create("b"),
    Step::Insert("b", 3),
    Step::Delete("a"),
    Step::Insert("b", 700),
    Step::Insert("a", 9),
    Step::Delete("b"),
    Step::Truncate("a"),
    Step::Insert("a", 90),
    Step::Drop("b"),
];

/// Does one statement on store and model; the model is that of the version it leads to.
fn step(store: &Arc<Store>, step: Step, state: &mut State) -> Result<store::Result<u64>> {
    let mut tx = store.begin()?;
    match step {
        Step::Create(name) => {
            let mut definition = Definition::from_schema(name, &schema())?;
            definition.primary_key = vec![0];
            definition.enforce_primary_key();
            create(&mut tx, &definition)?;
            state.insert(name.to_owned(), Content::new());
        }
        Step::Insert(name, count) => {
            let content = rows(1000 * count..1001 * count);
            // Not in the order of the key, so that its hashes go to pages; few are, so that ranges are there, too.
            let mut shuffled = content.clone();
            if count != 700 {
                shuffled.reverse();
            }
            let (inserted, _) = block_on(insert(tx, name, &[batch(&shuffled)]))?;
            tx = inserted;
            let all = state.get_mut(name).unwrap();
            all.extend(content);
            all.sort_unstable();
        }
        Step::Delete(name) => {
            let tables = Catalog::new().tables(&store.snapshot())?;
            let (_, numbers) = read(store, tables.get(name).unwrap().clone())?;
            let gone: Vec<u64> = numbers.iter().copied().step_by(7).collect();
            delete(&mut tx, name, &gone)?;
            let mut at = 0;
            state.get_mut(name).unwrap().retain(|_| {
                at += 1;
                (at - 1) % 7 != 0
            });
        }
        Step::Truncate(name) => {
            truncate(&mut tx, name)?;
            state.insert(name.to_owned(), Content::new());
        }
        Step::Drop(name) => {
            table::drop(&mut tx, name)?;
            state.remove(name);
        }
    }
    Ok(tx.commit())
}

/// Works until the disk stops; returns the states of all versions begun, and how many of them
/// were acknowledged (none: not even the store was created).
fn work(disk: &Disk) -> (Vec<State>, usize) {
    let mut states = vec![State::default()];
    let created = Store::create_on(disk.device("data"), disk.device("log"), &options());
    let Ok(store) = created else {
        return (states, 0);
    };
    for (done, what) in STEPS.into_iter().enumerate() {
        let mut next = states[done].clone();
        // What fails before it is committed leads to no version.
        let Ok(committed) = step(&store, what, &mut next) else {
            return (states, done + 1);
        };
        states.push(next);
        if committed.is_err() {
            return (states, done + 1);
        }
    }
    let acknowledged = states.len();
    let _ = store.close();
    (states, acknowledged)
}

fn fingerprint(image: &Disk) -> u64 {
    let mut hasher = DefaultHasher::new();
    for name in image.names() {
        (&name, image.bytes(&name)).hash(&mut hasher);
    }
    hasher.finish()
}

#[test]
fn tables_are_those_of_a_whole_statement_wherever_power_is_lost() {
    let whole = Disk::new(0);
    let (states, acknowledged) = work(&whole);
    assert_eq!(acknowledged, STEPS.len() + 1);
    let (mut seen, mut checked) = (HashSet::new(), 0);
    for operation in 0..whole.operations() {
        let disk = Disk::new(0);
        disk.stop_after(operation);
        let (begun, acknowledged) = work(&disk);
        assert!(begun == states[..begun.len()]);
        for image in 0..5 {
            let left = disk.crash(operation * 155 + image);
            if acknowledged == 0 || !seen.insert(fingerprint(&left)) {
                continue;
            }
            let of = format!("operation {operation}, image {image}");
            let store = Store::open_on(left.device("data"), left.device("log"), &options())
                .unwrap_or_else(|error| panic!("{of}: {error}"));
            let version = store.snapshot().version() as usize;
            assert!(
                version + 1 >= acknowledged,
                "{of}: {version} lost {acknowledged}"
            );
            assert!(state(&store) == states[version], "{of}: version {version}");
            checked += 1;
        }
    }
    assert!(checked > 150, "{checked} distinct images");
}
