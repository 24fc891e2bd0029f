//! Domains: what the catalog keeps of them and of columns of them, before and after changes, and in which transactions.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use proptest::prelude::*;
use store::{Store, Transaction};
use table::*;

fn store() -> (tempfile::TempDir, Arc<Store>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.atoll");
    let store = Store::create(path, &store::Options::default()).unwrap();
    (folder, store)
}

fn domain(name: &str, parent: Option<&str>) -> Domain {
    Domain {
        name: name.to_owned(),
        composite: false,
        data_type: DataType::Int32,
        text: "integer".to_owned(),
        parent: parent.map(str::to_owned),
        not_null: false,
        default: None,
        checks: vec![check(format!("{name}_check"), "value > 0".to_owned())],
    }
}

fn check(name: String, text: String) -> Check {
    Check {
        name,
        text,
        unchecked: false,
    }
}

fn table(name: &str, domains: &[&str]) -> Definition {
    let mut fields = vec![Field::new("id", DataType::Int64, false)];
    fields.extend(domains.iter().enumerate().map(|(at, domain)| {
        let metadata = [(DOMAIN.to_owned(), (*domain).to_owned())];
        Field::new(format!("c{at}"), DataType::Int32, true).with_metadata(metadata.into())
    }));
    Definition::from_schema(name, &Schema::new(fields)).unwrap()
}

fn of_columns(tables: &Tables, name: &str) -> Vec<Option<String>> {
    let columns = &tables.get(name).unwrap().definition().columns;
    columns.iter().map(|column| column.domain.clone()).collect()
}

#[test]
fn columns_follow_their_domains() {
    let (_folder, store) = store();
    let catalog = Catalog::default();
    let mut tx = store.begin().unwrap();
    create_domain(&mut tx, &domain("d", None)).unwrap();
    create_domain(&mut tx, &domain("e", Some("d"))).unwrap();
    create(&mut tx, &table("t", &["d", "e"])).unwrap();
    create(&mut tx, &table("u", &[])).unwrap();
    tx.commit().unwrap();
    let before = catalog.tables(&store.snapshot()).unwrap();
    assert_eq!(
        of_columns(&before, "t"),
        [None, Some("d".into()), Some("e".into())]
    );
    let names = |name| -> Vec<String> {
        let lineage = before.lineage(name).into_iter();
        lineage.map(|own| own.name.clone()).collect()
    };
    assert_eq!(names("e"), ["d", "e"]);

    let mut tx = store.begin().unwrap();
    let renamed = Domain {
        not_null: true,
        ..domain("s\u{1}f", None)
    };
    change_domain(&mut tx, "d", &renamed).unwrap();
    tx.commit().unwrap();
    let after = catalog.tables(&store.snapshot()).unwrap();
    assert_eq!(
        of_columns(&after, "t"),
        [None, Some("s\u{1}f".into()), Some("e".into())]
    );
    assert_eq!(after.domain("d"), None);
    assert_eq!(
        after.domain("e").unwrap().parent.as_deref(),
        Some("s\u{1}f")
    );
    // Who has read the domain as it was must not write by that.
    assert!(before.differs(&after, "t"));
    assert!(!before.differs(&after, "u"));
    assert!(before.differs(&after, "d") && before.differs(&after, "s\u{1}f"));

    let mut tx = store.begin().unwrap();
    assert!(drop_domain(&mut tx, "s\u{1}f").is_err());
    assert!(drop_domain(&mut tx, "e").is_err());
    drop(&mut tx, "t").unwrap();
    assert!(drop_domain(&mut tx, "s\u{1}f").is_err());
    drop_domain(&mut tx, "e").unwrap();
    drop_domain(&mut tx, "s\u{1}f").unwrap();
    tx.commit().unwrap();
    assert!(
        catalog
            .tables(&store.snapshot())
            .unwrap()
            .domains()
            .is_empty()
    );
}

#[test]
fn what_a_child_refuses_changes_with_its_parent() {
    let (_folder, store) = store();
    let catalog = Catalog::default();
    let mut tx = store.begin().unwrap();
    create_domain(&mut tx, &domain("d", None)).unwrap();
    create_domain(&mut tx, &domain("e", Some("d"))).unwrap();
    create_domain(&mut tx, &domain("f", Some("e"))).unwrap();
    create(&mut tx, &table("t", &["f"])).unwrap();
    tx.commit().unwrap();
    let before = catalog.tables(&store.snapshot()).unwrap();
    let mut tx = store.begin().unwrap();
    let changed = Domain {
        not_null: true,
        ..domain("d", None)
    };
    change_domain(&mut tx, "d", &changed).unwrap();
    tx.commit().unwrap();
    let after = catalog.tables(&store.snapshot()).unwrap();
    assert!(before.differs(&after, "t"));
}

#[test]
fn columns_and_arrays_follow_composite_types() {
    let (_folder, store) = store();
    let catalog = Catalog::default();
    let fields = vec![Field::new("a", DataType::Int32, true)];
    let pair = DataType::Struct(fields.into());
    let own = |name: &str| Domain {
        composite: true,
        data_type: pair.clone(),
        text: "STRUCT(\"a\" INT)".to_owned(),
        checks: vec![],
        ..domain(name, None)
    };
    let field = |name: &str, data_type: DataType| {
        let metadata = [(DOMAIN.to_owned(), "c".to_owned())];
        Field::new(name, data_type, true).with_metadata(metadata.into())
    };
    let items = Field::new_list_field(pair.clone(), true);
    let columns = vec![
        field("one", pair.clone()),
        field("all", DataType::List(Arc::new(items))),
    ];
    let made = Definition::from_schema("t", &Schema::new(columns)).unwrap();

    let mut tx = store.begin().unwrap();
    create_domain(&mut tx, &own("c")).unwrap();
    create(&mut tx, &made).unwrap();
    tx.commit().unwrap();
    let tables = catalog.tables(&store.snapshot()).unwrap();
    assert_eq!(**tables.domain("c").unwrap(), own("c"));
    let read = tables.get("t").unwrap().definition().columns.clone();
    assert_eq!(read, made.columns);

    let mut tx = store.begin().unwrap();
    let other = Domain {
        composite: false,
        ..own("c")
    };
    assert!(change_domain(&mut tx, "c", &other).is_err());
    change_domain(&mut tx, "c", &own("d")).unwrap();
    tx.commit().unwrap();
    let tables = catalog.tables(&store.snapshot()).unwrap();
    assert_eq!(
        of_columns(&tables, "t"),
        [Some("d".into()), Some("d".into())]
    );
    let mut tx = store.begin().unwrap();
    assert!(drop_domain(&mut tx, "d").is_err());
    drop(&mut tx, "t").unwrap();
    drop_domain(&mut tx, "d").unwrap();
}

#[test]
fn what_cannot_be_is_refused() {
    let (_folder, store) = store();
    let mut tx = store.begin().unwrap();
    create_domain(&mut tx, &domain("d", None)).unwrap();
    create_type(&mut tx, &EnumType::new("e", ["a".to_owned()])).unwrap();
    create(&mut tx, &table("t", &[])).unwrap();
    for name in ["d", "e", "t"] {
        assert!(
            create_domain(&mut tx, &domain(name, None)).is_err(),
            "{name}"
        );
        let renamed = domain(name, None);
        assert!(name == "d" || change_domain(&mut tx, "d", &renamed).is_err());
    }
    assert!(create_domain(&mut tx, &domain("x", Some("y"))).is_err());
    assert!(create_domain(&mut tx, &domain("x", Some("e"))).is_err());
    assert!(create(&mut tx, &table("d", &[])).is_err());
    assert!(create_type(&mut tx, &EnumType::new("d", [])).is_err());
    assert!(drop_domain(&mut tx, "e").is_err());
    assert!(drop_type(&mut tx, "d").is_err());
    let other = Domain {
        data_type: DataType::Int64,
        ..domain("d", None)
    };
    assert!(change_domain(&mut tx, "d", &other).is_err());
    let mut twice = domain("d", None);
    twice.checks.push(twice.checks[0].clone());
    assert!(change_domain(&mut tx, "d", &twice).is_err());
}

#[test]
fn a_schema_takes_its_domains_along() {
    let (_folder, store) = store();
    let catalog = Catalog::default();
    let mut tx = store.begin().unwrap();
    create_schema(&mut tx, "s").unwrap();
    create_domain(&mut tx, &domain("s\u{1}d", None)).unwrap();
    create_domain(&mut tx, &domain("s\u{1}e", Some("s\u{1}d"))).unwrap();
    create(&mut tx, &table("s\u{1}t", &["s\u{1}e"])).unwrap();
    assert!(drop_schema(&mut tx, "s").is_err());
    rename_schema(&mut tx, "s", "z").unwrap();
    tx.commit().unwrap();
    let tables = catalog.tables(&store.snapshot()).unwrap();
    assert_eq!(
        of_columns(&tables, "z\u{1}t"),
        [None, Some("z\u{1}e".into())]
    );
    assert_eq!(
        tables.domain("z\u{1}e").unwrap().parent.as_deref(),
        Some("z\u{1}d")
    );
    assert_eq!(tables.domains(), ["z\u{1}d", "z\u{1}e"]);
}

/// What is done to the domains of a store.
#[derive(Clone, Debug)]
enum Step {
    Create(u8, Option<u8>),
    Check(u8),
    Rename(u8, u8),
    Drop(u8),
    /// Commits, or drops what the transaction did.
    End(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = || 0u8..5;
    let step = prop_oneof![
        (name(), proptest::option::of(name())).prop_map(|(own, parent)| Step::Create(own, parent)),
        name().prop_map(Step::Check),
        (name(), name()).prop_map(|(from, to)| Step::Rename(from, to)),
        name().prop_map(Step::Drop),
        any::<bool>().prop_map(Step::End),
    ];
    proptest::collection::vec(step, 1..30)
}

/// Of each domain its parent and the number of its checks.
type Model = BTreeMap<String, (Option<String>, usize)>;

fn apply(tx: &mut Transaction, model: &mut Model, step: &Step) {
    let called = |own: &u8| format!("d{own}");
    match step {
        Step::Create(own, parent) => {
            let (name, parent) = (called(own), parent.as_ref().map(called));
            let fits = !model.contains_key(&name)
                && parent
                    .as_ref()
                    .is_none_or(|parent| model.contains_key(parent));
            let made = create_domain(tx, &domain(&name, parent.as_deref()));
            assert_eq!(made.is_ok(), fits, "{step:?}");
            if fits {
                model.insert(name, (parent, 1));
            }
        }
        Step::Check(own) => {
            let name = called(own);
            if let Some((parent, checks)) = model.get_mut(&name) {
                *checks += 1;
                let mut own = domain(&name, parent.as_deref());
                while own.checks.len() < *checks {
                    let name = own.free_name();
                    let text = "value < 9".to_owned();
                    own.checks.push(check(name, text));
                }
                change_domain(tx, &name, &own).unwrap();
            }
        }
        Step::Rename(from, to) => {
            let (name, to) = (called(from), called(to));
            let Some((parent, checks)) = model.get(&name).cloned() else {
                return;
            };
            let mut own = domain(&to, parent.as_deref());
            while own.checks.len() < checks {
                let name = own.free_name();
                let text = "value < 9".to_owned();
                own.checks.push(check(name, text));
            }
            let fits = name == to || !model.contains_key(&to);
            assert_eq!(change_domain(tx, &name, &own).is_ok(), fits, "{step:?}");
            if fits {
                model.remove(&name);
                for (parent, _) in model.values_mut() {
                    if parent.as_ref() == Some(&name) {
                        *parent = Some(to.clone());
                    }
                }
                model.insert(to, (parent, checks));
            }
        }
        Step::Drop(own) => {
            let name = called(own);
            let used = model
                .values()
                .any(|(parent, _)| parent.as_ref() == Some(&name));
            let fits = model.contains_key(&name) && !used;
            assert_eq!(drop_domain(tx, &name).is_ok(), fits, "{step:?}");
            if fits {
                model.remove(&name);
            }
        }
        Step::End(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn domains_are_as_a_model_says(steps in steps()) {
        let (_folder, store) = store();
        let catalog = Catalog::default();
        let mut kept = Model::new();
        let mut model = kept.clone();
        let mut tx = store.begin().unwrap();
        for step in steps.iter().chain([&Step::End(true)]) {
            if let Step::End(commits) = step {
                if *commits {
                    tx.commit().unwrap();
                    kept.clone_from(&model);
                } else {
                    std::mem::drop(tx);
                    model.clone_from(&kept);
                }
                let tables = catalog.tables(&store.snapshot()).unwrap();
                let found: Model = tables
                    .domains()
                    .into_iter()
                    .map(|name| {
                        let own = tables.domain(name).unwrap();
                        (name.to_owned(), (own.parent.clone(), own.checks.len()))
                    })
                    .collect();
                prop_assert_eq!(&found, &kept);
                tx = store.begin().unwrap();
            } else {
                apply(&mut tx, &mut model, step);
            }
        }
    }
}
