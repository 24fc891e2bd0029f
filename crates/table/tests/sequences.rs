//! Sequences in the catalog: what they are comes and goes with transactions, where they are does not.

use io::fault::Disk;
use store::Store;
use table::*;

fn sequence(number: u64) -> Sequence {
    Sequence {
        number,
        state: number,
        bytes: 8,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cycle: false,
        first: at(1, false),
    }
}

fn at(value: i64, called: bool) -> Position {
    Position { value, called }
}

fn create_on(disk: &Disk) -> std::sync::Arc<Store> {
    let options = store::Options::default();
    Store::create_on(disk.device("data"), disk.device("log"), &options).unwrap()
}

#[test]
fn what_a_sequence_is_is_of_its_transaction_and_where_it_is_is_not() {
    let disk = Disk::new(0);
    let store = create_on(&disk);
    let catalog = Catalog::new();
    let mut tx = store.begin().unwrap();
    let number = new_sequence_number(&tx).unwrap();
    create_sequence(&mut tx, "s", &sequence(number)).unwrap();
    for taken in [
        create_sequence(&mut tx, "s", &sequence(9)),
        create_view(&mut tx, "s", "select 1"),
    ] {
        assert!(matches!(taken, Err(Error::Exists { .. })), "{taken:?}");
    }
    tx.commit().unwrap();
    assert_eq!(sequence_position(&store, "s", number).unwrap(), None);

    let mut tx = store.begin().unwrap();
    drop_sequence(&mut tx, "s").unwrap();
    keep_sequence_position(&store, number, at(40, true)).unwrap();
    std::mem::drop(tx);
    let tables = catalog.tables(&store.snapshot()).unwrap();
    assert_eq!(tables.sequences(), ["s"]);
    assert_eq!(**tables.sequence("s").unwrap(), sequence(number));
    let found = sequence_position(&store, "s", number).unwrap();
    assert_eq!(found, Some(at(40, true)));

    // A restart has a place of its own, and a drop takes the place along.
    let mut tx = store.begin().unwrap();
    let state = new_sequence_number(&tx).unwrap();
    assert!(state > number);
    let restarted = Sequence {
        state,
        ..sequence(number)
    };
    change_sequence(&mut tx, "s", &restarted).unwrap();
    let before = catalog.tables(&store.snapshot()).unwrap();
    let within = catalog.fork().tables(&tx.view()).unwrap();
    assert!(before.differs(&within, "s"));
    let seen = before.overlaid(&before, &within);
    assert_eq!(seen.sequence("s").unwrap().state, state);
    tx.commit().unwrap();
    assert!(!has_sequence_position(&store.snapshot(), number));
    keep_sequence_position(&store, state, at(7, false)).unwrap();
    std::mem::drop(store);
    let left = disk.crash(0);
    let options = store::Options::default();
    let store = Store::open_on(left.device("data"), left.device("log"), &options).unwrap();
    let found = sequence_position(&store, "s", state).unwrap();
    assert_eq!(found, Some(at(7, false)));
    let mut tx = store.begin().unwrap();
    drop_sequence(&mut tx, "s").unwrap();
    assert!(matches!(
        drop_sequence(&mut tx, "s"),
        Err(Error::NoTable { .. })
    ));
    tx.commit().unwrap();
    assert!(!has_sequence_position(&store.snapshot(), state));
}

#[test]
fn what_can_be_no_sequence_is_refused() {
    let store = create_on(&Disk::new(0));
    let mut tx = store.begin().unwrap();
    for bad in [
        Sequence {
            increment: 0,
            ..sequence(1)
        },
        Sequence {
            max: 1,
            ..sequence(1)
        },
        Sequence {
            bytes: 3,
            ..sequence(1)
        },
        Sequence {
            first: at(0, true),
            ..sequence(1)
        },
    ] {
        let refused = create_sequence(&mut tx, "s", &bad);
        assert!(matches!(refused, Err(Error::Mismatch { .. })), "{bad:?}");
    }
}
