use super::*;
use crate::parse::{Statement, parse};

fn read(text: &str) -> SchemaStatement {
    match parse(text).unwrap().pop().unwrap().statement {
        Statement::Schema(found) => found,
        other => panic!("{other:?}"),
    }
}

fn path(names: &[&str], local: bool, called: bool) -> SchemaStatement {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    SchemaStatement::SetPath {
        setting: Some(Some(names.into())),
        local,
        called,
    }
}

#[test]
fn paths_are_lists_of_names() {
    assert_eq!(
        read("SET search_path = A, \"B c\", 'd,e'"),
        path(&["a", "B c", "d,e"], false, false)
    );
    assert_eq!(
        read("set local search_path to ''"),
        path(&[""], true, false)
    );
    assert_eq!(read("set schema 'S'"), path(&["S"], false, false));
    assert_eq!(
        read("select pg_catalog.set_config('search_path', '', false)"),
        path(&[], false, true)
    );
    assert_eq!(
        read("select set_config('search_path', 'a, \"B\"', true)"),
        path(&["a", "B"], true, true)
    );
    for text in [
        "set search_path to",
        "set search_path to a,",
        "set schema s",
        "show search_path x",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn owners_are_read() {
    assert_eq!(
        read("create schema authorization Ann"),
        SchemaStatement::Create {
            name: None,
            if_not_exists: false,
            owner: Some(RoleName::Named("ann".into())),
        }
    );
}

#[test]
fn schemas_are_named() {
    assert_eq!(
        read("drop schema if exists a, \"B\" cascade"),
        SchemaStatement::Drop {
            names: vec!["a".into(), "B".into()],
            if_exists: true,
            cascade: true,
        }
    );
    assert_eq!(
        read("alter materialized view if exists a.m set schema B"),
        SchemaStatement::Move {
            kind: Kind::MaterializedView,
            name: "a\u{1}m".into(),
            if_exists: true,
            schema: "b".into(),
        }
    );
    for text in [
        "create schema",
        "create schema a.b",
        "create schema authorization",
        "alter schema a owner b",
        "drop schema a b",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
