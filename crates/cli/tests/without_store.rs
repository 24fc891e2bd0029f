//! Statements without a store: what somebody types who has just installed the program.

mod atoll;
mod terminal;

use atoll::{Folder, json};
use terminal::Terminal;

/// The names in the folder for temporary files.
fn left(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path("tmp")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// What `atoll sql` prints as CSV, with its temporary files in a folder of its own, where it leaves nothing.
#[track_caller]
fn csv(folder: &Folder, arguments: &[&str]) -> String {
    std::fs::create_dir_all(folder.path("tmp")).unwrap();
    let all = [&["sql"], arguments, &["--format", "csv"]].concat();
    let mut command = folder.command(&all);
    let output = command.env("TMPDIR", folder.path("tmp")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    assert!(left(folder).is_empty(), "{:?}", left(folder));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_statement_needs_no_store() {
    let folder = Folder::new();
    folder.write("x.csv", "a,b\n1,one\n2,two\n");
    assert_eq!(csv(&folder, &["select 6 * 7 as n"]), "n\n42\n");
    assert_eq!(csv(&folder, &["select sum(a) as s from 'x.csv'"]), "s\n3\n");
    assert_eq!(csv(&folder, &["from 'x.csv'"]), "a,b\n1,one\n2,two\n");
    let several =
        "create table t (a int); insert into t values (1), (2); select sum(a) as s from t";
    assert_eq!(csv(&folder, &[several]), "s\n3\n");
    assert_eq!(csv(&folder, &[":memory:", several]), "s\n3\n");
    folder.write("script.sql", several);
    assert_eq!(csv(&folder, &["-f", "script.sql"]), "s\n3\n");
    let piped = folder.piped(
        &["sql", "--json"],
        b"create table t (a int); select 1 as a;",
    );
    let last = piped.succeeded();
    assert_eq!(json(last.lines().last().unwrap())["rows"][0][0], 1);
    // Nothing but what was written stays.
    assert!(!folder.path(":memory:").exists());
}

#[test]
fn a_name_that_is_no_store_is_told_from_a_statement() {
    let folder = Folder::new();
    let create = "create table t (a int)";
    folder.run(&["sql", "s.atoll", create]).succeeded();
    folder.write("x.csv", "a\n1\n");
    folder
        .run(&["sql", "s.atol", "select 1"])
        .failed(1, &["s.atol: there is no such store", "s.atoll"]);
    folder
        .run(&["sql", "s.atol"])
        .failed(1, &["s.atol: there is no such store", "s.atoll"]);
    folder
        .run(&["sql", "my reef.atoll"])
        .failed(1, &["my reef.atoll: there is no such store"]);
    folder
        .run(&["serve", "none.atoll"])
        .failed(1, &["none.atoll: there is no such store", "--create"]);
    folder
        .run(&["sql", "select 1", "select 2"])
        .failed(1, &["is no store", "with ; between"]);
    folder
        .run(&["sql", "x.csv"])
        .failed(1, &["no store", "select * from 'x.csv'"]);
    folder.run(&["sql", "selec 1"]).failed(1, &[]);
    folder
        .run(&["sql", "--create"])
        .failed_usage(&["--create", "STORE"]);
    // A file that is there is a store, whatever its name reads like.
    std::fs::rename(folder.path("s.atoll"), folder.path("select 1")).unwrap();
    std::fs::rename(folder.path("s.atoll.log"), folder.path("select 1.log")).unwrap();
    let all = folder.run(&[
        "sql",
        "select 1",
        "select count(*) as n from t",
        "--format",
        "csv",
    ]);
    assert_eq!(all.succeeded(), "n\n0\n");
}

#[test]
fn files_and_folders_are_described_and_summarized() {
    let folder = Folder::new();
    folder.write("x.csv", "a,b\n1,one\n2,two\n3,one\n");
    let described = csv(&folder, &["describe 'x.csv'"]);
    assert_eq!(
        described,
        "column,type,nullable,key\na,bigint,yes,\"\"\nb,varchar,yes,\"\"\n"
    );
    let summary = csv(&folder, &["summarize 'x.csv'"]);
    let lines: Vec<_> = summary.lines().collect();
    assert_eq!(
        lines[0],
        "column_name,column_type,min,max,approx_unique,avg,std,q25,q50,q75,count,null_percentage"
    );
    // Quartiles are estimated.
    assert!(
        lines[1].starts_with("a,bigint,1,3,3,2,1,") && lines[1].ends_with(",3,0.0"),
        "{summary}"
    );
    assert!(lines[2].starts_with("b,varchar,one,two,2,,,"), "{summary}");

    // A folder needs no slash at its end.
    folder.write("hive/year=2023/a.csv", "v\n1\n");
    folder.write("hive/year=2024/a.csv", "v\n2\n3\n");
    for from in ["'hive'", "'hive/'", "'./hive'"] {
        let query = format!("select year, sum(v) as s from {from} group by year order by year");
        assert_eq!(
            csv(&folder, &[&query]),
            "year,s\n2023,1\n2024,5\n",
            "{from}"
        );
    }
    assert!(csv(&folder, &["describe 'hive'"]).contains("\nyear,"));
}

#[test]
fn the_shell_needs_no_store_and_goes_to_another() {
    let folder = Folder::new();
    let create = "create table coral (depth int default 7, name varchar primary key); \
         create view deep as select * from coral where depth > 3; \
         create table polyp (coral varchar references coral (name) on delete cascade)";
    folder.run(&["sql", "s.atoll", create]).succeeded();
    std::fs::create_dir_all(folder.path("tmp")).unwrap();
    let mut command = folder.command(&["sql"]);
    command
        .env("TMPDIR", folder.path("tmp"))
        .env("SHELL", "/bin/sh");
    let mut shell = Terminal::start(command, 100, 40);
    shell.until("in memory");
    shell.until("atoll> ");
    shell.ask("create table t (a int); insert into t values (1);");
    assert!(shell.ask(".tables").contains(" t "));
    assert!(shell.ask("\\c").contains("in memory"));
    assert!(shell.ask("\\c none.atoll").contains("no such store"));
    assert!(
        shell
            .ask("select count(*) * 100 as n from t;")
            .contains(" 100 ")
    );
    assert!(shell.ask(".open s.atoll").contains("the store is s.atoll"));
    let shown = shell.ask("\\d coral");
    assert!(
        shown.contains("default 7")
            && shown.contains("referenced by polyp (coral) on delete cascade"),
        "{shown}"
    );
    let shown = shell.ask("\\d+ polyp");
    assert!(
        shown.contains("foreign key (coral) references coral (name) on delete cascade"),
        "{shown}"
    );
    assert!(shell.ask("\\dv").contains("deep"));
    assert!(shell.ask("\\d+ deep").contains("depth > 3"));
    assert!(shell.ask("\\dv x*").contains("none of the views"));
    assert!(shell.ask("\\dn").contains("public"));
    assert!(shell.ask("\\di").contains("coral_pkey"));
    assert!(shell.ask("\\ds").contains("no sequences"));
    assert!(shell.ask("\\df md5*").contains("md5"));
    assert!(shell.ask("\\! echo $((6 * 7))0").contains("420"));
    assert!(shell.ask("\\echo so it is").contains("so it is"));
    assert!(shell.ask(".mode csv").contains("unknown command .mode"));
    // A name that there is none of leaves a transaction as it was.
    shell.send("begin;\r");
    shell.until("atoll*> ");
    shell.send("\\d nothing\r");
    shell.until("no table or view");
    shell.until("atoll*> ");
    shell.send("commit;\r");
    shell.until("atoll> ");
    assert_eq!(shell.leave(), Some(0));
    assert!(left(&folder).is_empty());
}

#[test]
fn what_takes_long_shows_that_it_runs() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("tmp")).unwrap();
    let mut command = folder.command(&["sql"]);
    command.env("TMPDIR", folder.path("tmp"));
    let mut shell = Terminal::start(command, 100, 40);
    shell.until("atoll> ");
    shell.send("select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3;\r");
    shell.until(" s; Ctrl-C cancels");
    shell.send("\x03");
    shell.until("cancelled");
    shell.until("atoll> ");
    // What is quick shows nothing.
    assert!(!shell.ask("select 6 * 7;").contains("Ctrl-C"));
    assert_eq!(shell.leave(), Some(0));
}

#[test]
fn wide_tables_show_the_columns_that_fit() {
    let folder = Folder::new();
    let mut shell = Terminal::start(folder.command(&["sql"]), 60, 40);
    shell.until("atoll> ");
    let columns: Vec<_> = (100..120).map(|n| format!("v * {n} as c{n}")).collect();
    let query = format!(
        "select {} from generate_series(1, 3) g(v);",
        columns.join(", ")
    );
    let shown = shell.ask(&query);
    assert!(
        shown.contains("c100") && shown.contains("c119") && shown.contains('…'),
        "{shown}"
    );
    assert!(
        !shown.contains("c110\r\n")
            && shown.contains("of 20 columns fit the terminal; \\x shows all"),
        "{shown}"
    );
    let table = shown.split("\r\n").filter(|line| line.contains('│'));
    for line in table {
        assert!(line.chars().count() <= 60, "{line}");
    }
    let shown = shell.ask("\\x on");
    assert!(shown.contains("expanded rows are on"), "{shown}");
    assert!(shell.ask(&query).contains("c110"));
    assert_eq!(shell.leave(), Some(0));
}

#[test]
fn commands_need_no_terminal() {
    let folder = Folder::new();
    let create = "create table t (a int); insert into t values (1), (2)";
    folder.run(&["sql", "s.atoll", create]).succeeded();
    let script = "\\dt\n.tables\nselect 'a\n.tables' as s;\n\\echo told\nselect sum(a) as s from t;\n\\q\nselect 9;\n";
    let shown = |run: atoll::Run| {
        let text = run.succeeded();
        assert_eq!(text.matches("columns").count(), 2, "{text}");
        assert!(
            text.contains("told") && text.contains(".tables") && !text.contains('9'),
            "{text}"
        );
    };
    shown(folder.piped(&["sql", "s.atoll"], script.as_bytes()));
    folder.write("s.sql", script);
    shown(folder.run(&["sql", "s.atoll", "-f", "s.sql"]));
    let one = folder.run(&["sql", "s.atoll", "\\d t"]).succeeded();
    assert!(
        one.contains("bigint") || one.contains("integer") || one.contains("int"),
        "{one}"
    );
    // What follows a command that fails runs where statements arrive, and not where all are given.
    let wrong = "\\nosuch\nselect 42 as n;\n";
    let piped = folder.piped(&["sql", "s.atoll"], wrong.as_bytes());
    assert!(
        piped.code == Some(1) && piped.stdout.contains("42"),
        "{}",
        piped.stderr
    );
    folder.write("wrong.sql", wrong);
    let given = folder.run(&["sql", "s.atoll", "-f", "wrong.sql"]);
    assert!(
        given.code == Some(1) && given.stdout.is_empty(),
        "{}",
        given.stdout
    );
    assert!(
        given.stderr.contains("unknown command \\nosuch"),
        "{}",
        given.stderr
    );
}
