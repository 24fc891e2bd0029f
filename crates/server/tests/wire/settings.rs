//! What clients set: what is taken and what not, what a rollback undoes, and what clients are told.

use crate::client::{Client, Served, Told};

/// What the server tells of settings among its answers.
fn told(all: &[Told]) -> Vec<(String, String)> {
    let told = all.iter().filter(|told| told.kind == 'S');
    told.map(|told| {
        let mut parts = told.body.split(|byte| *byte == 0);
        let mut text = || String::from_utf8(parts.next().unwrap().to_vec()).unwrap();
        (text(), text())
    })
    .collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

#[test]
fn what_clients_send_is_taken() {
    let served = Served::new();
    let mut client = served.client();
    for (text, shown, value) in [
        ("set enable_nestloop = false", "enable_nestloop", "off"),
        ("set enable_hashjoin to 1", "enable_hashjoin", "on"),
        ("set work_mem = '1024MB'", "work_mem", "1GB"),
        ("set work_mem to 65536", "work_mem", "64MB"),
        ("set random_page_cost = 1.10", "random_page_cost", "1.1"),
        (
            "set client_min_messages to warning",
            "client_min_messages",
            "warning",
        ),
        ("set extra_float_digits = 3", "extra_float_digits", "3"),
        (
            "set session statement_timeout = '2s'",
            "statement_timeout",
            "2000",
        ),
        ("set DateStyle = 'ISO, DMY'", "datestyle", "ISO, DMY"),
        ("set datestyle to ymd", "datestyle", "ISO, YMD"),
        ("reset datestyle", "datestyle", "ISO, MDY"),
        ("set my.own = 'a b'", "my.own", "a b"),
        (
            "set session characteristics as transaction read write",
            "work_mem",
            "64MB",
        ),
        ("set names 'utf8'", "client_encoding", "UTF8"),
        ("set time zone 'UTC'", "timezone", "UTC"),
        ("set time zone 'europe/zurich'", "timezone", "Europe/Zurich"),
        ("set session time zone -8", "timezone", "<-08>+08"),
        (
            "set time zone interval '-08:30' hour to minute",
            "timezone",
            "<-08:30>+08:30",
        ),
        ("set time zone local", "timezone", "UTC"),
        ("set datestyle = German", "datestyle", "German, DMY"),
        (
            "set datestyle = 'Postgres', 'MDY'",
            "datestyle",
            "Postgres, MDY",
        ),
        ("reset datestyle", "datestyle", "ISO, MDY"),
        (
            "set intervalstyle to postgres_verbose",
            "intervalstyle",
            "postgres_verbose",
        ),
        ("reset intervalstyle", "intervalstyle", "postgres"),
        ("reset work_mem", "work_mem", "4MB"),
        ("set statement_timeout to default", "statement_timeout", "0"),
    ] {
        let code = client.code(text);
        assert_eq!(code, "", "{text}");
        assert_eq!(client.value(&format!("show {shown}")), value, "{text}");
        let asked = format!("select current_setting('{shown}')");
        assert_eq!(client.value(&asked), value, "{text}");
        let asked = format!("select max(current_setting('{shown}')) from (values (1)) v(a)");
        assert_eq!(client.value(&asked), value, "{text}");
    }
}

/// As drivers say that a connection only reads.
#[test]
fn transactions_to_come_are_what_was_asked() {
    let served = Served::new();
    let mut client = served.client();
    client.tag("create table t (a int)");
    client.tag(
        "set session characteristics as transaction isolation level read committed, read only",
    );
    for (setting, value) in [
        ("default_transaction_read_only", "on"),
        ("transaction_read_only", "on"),
        ("transaction_isolation", "read committed"),
        ("transaction_deferrable", "off"),
    ] {
        assert_eq!(client.value(&format!("show {setting}")), value);
    }
    assert_eq!(client.code("insert into t values (1)"), "25006");
    assert_eq!(
        client.code("create temporary table mine as select 1 as a"),
        ""
    );
    client.tag("begin");
    assert_eq!(client.code("alter table t add column b int"), "25006");
    client.tag("rollback");
    client.tag("begin read write, isolation level serializable, deferrable");
    assert_eq!(client.value("show transaction_read_only"), "off");
    assert_eq!(
        client.value("show transaction isolation level"),
        "serializable"
    );
    assert_eq!(client.value("show transaction_deferrable"), "on");
    assert_eq!(client.code("insert into t values (1)"), "");
    client.tag("commit");
    client.tag("set default_transaction_read_only = off");
    assert_eq!(client.value("show transaction_read_only"), "off");
    assert_eq!(client.code("insert into t values (2)"), "");
    assert_eq!(client.value("select count(*) from t"), "2");
}

#[test]
fn texts_are_in_the_zone_and_the_style_of_the_session() {
    let served = Served::new();
    let mut client = served.client();
    client.tag("create table moments (at timestamptz, day date, lasts interval)");
    client.tag("insert into moments values ('2024-07-01 12:00+00', '2024-07-02', '1 day 02:00')");
    let row = |client: &mut crate::client::Client| {
        let row = client.rows("select at, day, lasts, array[at], row(at) from moments");
        let row: Vec<String> = row[0].iter().flatten().cloned().collect();
        row.join(" | ")
    };
    assert_eq!(
        row(&mut client),
        "2024-07-01 12:00:00+00 | 2024-07-02 | 1 day 02:00:00 | {\"2024-07-01 12:00:00+00\"} | (\"2024-07-01 12:00:00+00\")"
    );
    client.tag("begin; set local timezone = 'America/New_York'; set local datestyle = 'Postgres, DMY'; set local intervalstyle = 'postgres_verbose'");
    assert_eq!(
        row(&mut client),
        "Mon 01 Jul 08:00:00 2024 EDT | 02-07-2024 | @ 1 day 2 hours | {\"Mon 01 Jul 08:00:00 2024 EDT\"} | (\"Mon 01 Jul 08:00:00 2024 EDT\")"
    );
    client.tag("commit; set timezone = 'Asia/Tokyo'");
    assert_eq!(
        client.value("select at::date + extract(hour from at)::int from moments"),
        "2024-07-22"
    );
    // What is not said of an instant is said by the session.
    client.tag("delete from moments");
    client.tag("insert into moments (at) values ('2024-07-01 12:00')");
    client.tag("set timezone = 'UTC'");
    assert_eq!(
        client.value("select at from moments"),
        "2024-07-01 03:00:00+00"
    );
}

#[test]
fn what_is_no_setting_is_refused() {
    let served = Served::new();
    let mut client = served.client();
    for (text, code) in [
        ("set enable_nestloop = perhaps", "22023"),
        ("set work_mem = '4 apples'", "22023"),
        ("set timezone = 'Europe/Nowhere'", "22023"),
        ("set datestyle = Roman", "22023"),
        ("set client_encoding = latin1", "22023"),
        ("set extra_float_digits = 9", "22023"),
        ("set server_version = '16'", "55P02"),
        ("set no_such = 1", "42704"),
        ("show no_such", "42704"),
        ("reset no_such", "42704"),
        ("select current_setting('no_such')", "42704"),
        ("select length(current_setting('no_such'))", "42704"),
    ] {
        assert_eq!(client.code(text), code, "{text}");
    }
    assert_eq!(
        client.rows("select current_setting('no_such', true) is null from (values (1)) v(a)"),
        [[Some("t".to_string())]]
    );
}

#[test]
fn all_settings_are_shown() {
    let served = Served::new();
    let mut client = served.client();
    client.tag("set enable_nestloop = false");
    let all = client.rows("show all");
    assert!(all.len() > 100);
    assert!(all.iter().any(|row| row[0].as_deref() == Some("TimeZone")));
    let row = "select setting, source, context, vartype, boot_val from pg_settings where name = 'enable_nestloop'";
    let row = client.rows(row);
    let row: Vec<_> = row[0].iter().map(|text| text.as_deref().unwrap()).collect();
    assert_eq!(row, ["off", "session", "user", "bool", "on"]);
    client.tag("set search_path = a, public");
    for text in [
        "select setting from pg_settings where name = 'search_path'",
        "select current_setting('search_path')",
        "select upper(current_setting('search_path'))",
    ] {
        assert_eq!(client.value(text).to_lowercase(), "a, public", "{text}");
    }
}

#[test]
fn a_rollback_undoes_what_was_set_and_clients_are_told() {
    let served = Served::new();
    let mut client = served.client();
    let name = |client: &mut Client| client.value("show application_name");
    assert_eq!(
        told(&client.ask("set application_name = 'a'")),
        [pair("application_name", "a")]
    );
    client.tag("begin");
    client.tag("set application_name = 'b'");
    client.tag("savepoint s");
    client.tag("set application_name = 'c'");
    assert_eq!(
        told(&client.ask("rollback to savepoint s")),
        [pair("application_name", "b")]
    );
    assert_eq!(name(&mut client), "b");
    assert_eq!(
        told(&client.ask("rollback")),
        [pair("application_name", "a")]
    );
    assert_eq!(name(&mut client), "a");
    // What fails is undone, too.
    client.tag("begin");
    client.tag("set application_name = 'b'");
    assert_eq!(client.code("select 1 / 0"), "22012");
    assert_eq!(told(&client.ask("commit")), [pair("application_name", "a")]);
    // Texts of several statements are one transaction.
    client.ask("set application_name = 'd'; select 1 / 0");
    assert_eq!(name(&mut client), "a");
    client.ask("set application_name = 'd'; select 1");
    assert_eq!(name(&mut client), "d");
    // Until the transaction ends.
    client.tag("begin");
    client.tag("set local application_name = 'e'");
    client.tag("set local work_mem = '8MB'");
    assert_eq!(name(&mut client), "e");
    assert_eq!(client.value("select current_setting('work_mem')"), "8MB");
    assert_eq!(told(&client.ask("commit")), [pair("application_name", "d")]);
    assert_eq!(client.value("show work_mem"), "4MB");
    // What is set last stays.
    client.tag("begin");
    client.tag("set local application_name = 'e'");
    client.tag("set application_name = 'f'");
    client.tag("commit");
    assert_eq!(name(&mut client), "f");
    assert_eq!(
        told(&client.ask("reset all")),
        [pair("application_name", "")]
    );
    client.tag("set application_name = 'g'");
    assert_eq!(
        told(&client.ask("discard all")),
        [pair("application_name", "")]
    );
}

#[test]
fn clients_that_want_no_warnings_get_none() {
    let served = Served::new();
    let mut client = served.client();
    let warned = |client: &mut Client| client.ask("commit").iter().any(|told| told.kind == 'N');
    assert!(warned(&mut client));
    client.tag("set client_min_messages = error");
    assert!(!warned(&mut client));
}
