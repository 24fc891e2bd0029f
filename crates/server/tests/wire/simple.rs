//! Simple queries: values, errors, transactions, settings.

use crate::client::{Served, bind, framed, kinds, parse, sync};

fn some(row: &[&str]) -> Vec<Option<String>> {
    row.iter().map(|value| Some((*value).to_string())).collect()
}

#[test]
fn users_are_told_who_they_are() {
    let served = Served::new();
    let mut client = served.client();
    assert_eq!(client.value("select current_user"), "ann");
    assert_eq!(
        client.value("select session_user || current_role"),
        "annann"
    );
    client.ask("begin");
    assert_eq!(client.value("select current_user"), "ann");
    client.ask("create table t (owner varchar default current_user, a int)");
    client.ask("insert into t (a) values (1)");
    client.ask("commit");
    assert_eq!(
        client.value("select owner from t where owner = session_user"),
        "ann"
    );
}

#[test]
fn values_of_all_types_come_as_postgresql_writes_them() {
    let served = Served::new();
    let mut client = served.client();
    let rows = client.rows(
        "select 1, -2.50, 1.5::float8, 'é', true, null, date '2026-11-25', timestamp '2026-11-25 01:02:03.5', \
         cast('12:30:00' as time), cast('ab' as bytea), interval '1 month 2 days', 1e20::float8",
    );
    let mut wanted = some(&[
        "1",
        "-2.50",
        "1.5",
        "é",
        "t",
        "",
        "2026-11-25",
        "2026-11-25 01:02:03.5",
        "12:30:00",
        "\\x6162",
        "1 mon 2 days",
        "1e+20",
    ]);
    wanted[5] = None;
    assert_eq!(rows, [wanted]);
}

#[test]
fn commands_have_the_tags_of_postgresql() {
    let served = Served::new();
    let mut client = served.client();
    for (text, tag) in [
        ("create table t (a int, b varchar)", "CREATE TABLE"),
        ("insert into t values (1, 'x'), (2, 'y')", "INSERT 0 2"),
        ("update t set b = 'z' where a = 2", "UPDATE 1"),
        ("select * from t", "SELECT 2"),
        ("delete from t where a = 1", "DELETE 1"),
        ("insert into t values (3, 'w') returning a", "INSERT 0 1"),
        ("create table u as select * from t", "SELECT 2"),
        ("begin", "BEGIN"),
        ("rollback", "ROLLBACK"),
        ("set application_name = 'x'", "SET"),
        ("drop table u", "DROP TABLE"),
    ] {
        assert_eq!(client.tag(text), tag, "{text}");
    }
    assert_eq!(kinds(&client.ask(" ; -- nothing")), "IZ");
    assert_eq!(
        kinds(&client.ask("select a from t; select b from t")),
        "TDDCTDDCZ"
    );
}

#[test]
fn errors_have_codes_and_places() {
    let served = Served::new();
    let mut client = served.client();
    for (text, code) in [
        ("selec 1", "42601"),
        ("select a from nowhere", "42P01"),
        ("select a from (select 1 as b) q", "42703"),
        ("select 1/0", "22012"),
        ("select cast('x' as int)", "22P02"),
        ("select no_such_function(1)", "42883"),
        ("create table u (a int) partition by list (a)", "0A000"),
        ("select * from 'f.csv'", "42501"),
        ("copy (select 1) to '/tmp/atoll-none.csv'", "42501"),
    ] {
        assert_eq!(client.code(text), code, "{text}");
    }
    let all = client.ask("select 1;\nselect a from (select 1 as b) q");
    assert_eq!(
        all.iter().find(|told| told.kind == 'E').unwrap().part(b'P'),
        "18"
    );
    assert_eq!(client.value("select 1"), "1");
}

#[test]
fn transactions_have_states() {
    let served = Served::new();
    let mut client = served.client();
    let mut other = served.client();
    client.ask("create table t (a int)");
    let status = |all: &[crate::client::Told]| char::from(all.last().unwrap().body[0]);
    assert_eq!(status(&client.ask("begin")), 'T');
    assert_eq!(status(&client.ask("insert into t values (1)")), 'T');
    assert_eq!(other.value("select count(*) from t"), "0");
    assert_eq!(status(&client.ask("select nothing from t")), 'E');
    assert_eq!(client.code("select 1"), "25P02");
    assert_eq!(client.tag("commit"), "ROLLBACK");
    assert_eq!(client.value("select count(*) from t"), "0");
    // Warnings, as PostgreSQL has them, where there is nothing to do.
    assert_eq!(kinds(&client.ask("commit")), "NCZ");
    assert_eq!(kinds(&client.ask("begin")), "CZ");
    assert_eq!(kinds(&client.ask("begin")), "NCZ");
    client.ask("insert into t values (1)");
    assert_eq!(status(&client.ask("commit")), 'I');
    assert_eq!(other.value("select count(*) from t"), "1");
}

#[test]
fn statements_of_one_text_are_one_transaction() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int)");
    client.ask("insert into t values (1); insert into t values (2)");
    assert_eq!(
        client.code("insert into t values (3); insert into t values (1/0)"),
        "22012"
    );
    assert_eq!(client.value("select sum(a) from t"), "3");
    let all = client.ask("begin; insert into t values (4); rollback; insert into t values (5)");
    assert_eq!(kinds(&all), "CCCCZ");
    assert_eq!(client.value("select sum(a) from t"), "8");
}

#[test]
fn a_path_is_of_its_session_and_goes_back_with_its_transaction() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create schema s; create table s.t (a int); insert into s.t values (1)");
    assert_eq!(client.code("select * from t"), "42P01");
    assert_eq!(client.code("create schema s"), "42P06");
    assert_eq!(client.code("create table nowhere.t (a int)"), "3F000");
    assert_eq!(client.code("drop schema nowhere"), "3F000");
    assert_eq!(client.code("drop schema s"), "2BP01");
    assert_eq!(client.tag("set search_path to s, public"), "SET");
    assert_eq!(client.value("show search_path"), "s, public");
    assert_eq!(client.value("select a from t"), "1");
    let all = client.ask("begin; set search_path = nowhere; rollback");
    assert_eq!(kinds(&all), "CCCZ");
    assert_eq!(client.value("select a from t"), "1");
    let setting = "select current_setting('search_path')";
    assert_eq!(client.value(setting), "s, public");
    assert_eq!(
        client.value("select set_config('search_path', 's', false) as path"),
        "s"
    );
    assert_eq!(client.value(setting), "s");
    assert_eq!(client.tag("reset search_path"), "RESET");
    assert_eq!(client.value("show search_path"), "\"$user\", public");
    assert_eq!(client.code("select a from t"), "42P01");
    client.ask("set search_path to s");
    assert_eq!(client.tag("discard all"), "DISCARD ALL");
    assert_eq!(client.code("select a from t"), "42P01");
    assert_eq!(client.value("select a from s.t"), "1");
}

#[test]
fn a_text_that_is_no_utf8_is_refused_and_the_session_goes_on() {
    let served = Served::new();
    let mut client = served.client();
    client.send(&framed(Some(b'Q'), b"select '\xff\xfe'\0"));
    let all = client.answers();
    assert_eq!(kinds(&all), "EZ");
    assert_eq!(all[0].part(b'C'), "22021");
    assert_eq!(client.value("select 42"), "42");
    let mut bytes = framed(Some(b'P'), b"\0select '\xff'\0\0\0");
    bytes.extend(bind("", "", false, &[], false));
    bytes.extend(sync());
    client.send(&bytes);
    let all = client.answers();
    assert_eq!(kinds(&all), "EZ");
    assert_eq!(all[0].part(b'C'), "22021");
    let mut bytes = parse("", "select $1::text", &[]);
    bytes.extend(bind("", "", false, &[Some(b"\xff")], false));
    bytes.extend(sync());
    client.send(&bytes);
    let all = client.answers();
    assert_eq!(kinds(&all), "1EZ");
    assert_eq!(all[1].part(b'C'), "22021");
    assert_eq!(client.value("select 43"), "43");
}

#[test]
fn what_pgadmin_sets_first_is_set() {
    let served = Served::new();
    let mut client = served.client();
    let all = client.ask(
        "SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false) \
         FROM pg_show_all_settings() WHERE name = 'bytea_output'; SET client_encoding='UTF8';",
    );
    let kinds = kinds(&all).replace('S', "");
    assert_eq!(kinds, "CCTDCCZ");
    assert_eq!(client.value("select pg_is_in_recovery()"), "f");
    let missing = client.rows("select current_setting('no.such', true)");
    assert_eq!(missing, [[None]]);
    assert_eq!(client.code("select current_setting('no.such')"), "42704");
    // An error is told, whatever table it is about: what is not understood is not empty.
    let wrong = "select nothing(tgname) from pg_catalog.pg_trigger";
    assert_eq!(client.code(wrong), "42883");
    assert_eq!(
        client.code("select nothing from pg_catalog.pg_rewrite"),
        "42703"
    );
}

#[test]
fn what_drivers_ask_first_is_answered() {
    let served = Served::new();
    let mut client = served.client();
    assert_eq!(client.parameters["server_encoding"], "UTF8");
    assert_eq!(client.parameters["TimeZone"], "UTC");
    assert!(client.parameters["server_version"].starts_with("15."));
    assert_eq!(client.value("show standard_conforming_strings"), "on");
    assert_eq!(
        client.value("SHOW TRANSACTION ISOLATION LEVEL"),
        "repeatable read"
    );
    assert_eq!(
        client.value("select pg_catalog.set_config('search_path', '', false)"),
        ""
    );
    assert_eq!(
        client.value("select current_setting('server_version_num')"),
        "150000"
    );
    assert_eq!(
        client.tag("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE; select 1"),
        "SET"
    );
    let all = client.ask("set application_name to 'reef'");
    assert_eq!(kinds(&all), "SCZ");
    assert_eq!(client.code("set datestyle = 'Roman'"), "22023");
    assert_eq!(client.code("set no_such = 1"), "42704");
    let process = client.process.to_string();
    assert_eq!(client.value("select pg_backend_pid()"), process);
    assert_eq!(client.tag("discard all"), "DISCARD ALL");
}
