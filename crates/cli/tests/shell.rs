//! The interactive shell, on a terminal of its own.

mod atoll;
mod terminal;

use atoll::Folder;
use terminal::Terminal;

/// A shell on a store with a table `coral`, after its first prompt.
fn shell(folder: &Folder, columns: u16, lines: u16) -> Terminal {
    let create = "create table coral (depth int, name varchar); insert into coral values (3, 'brain'), (4, 'fire')";
    folder.run(&["sql", "s.atoll", create]).succeeded();
    open(folder, &["sql", "s.atoll"], columns, lines)
}

fn open(folder: &Folder, arguments: &[&str], columns: u16, lines: u16) -> Terminal {
    let mut command = folder.command(arguments);
    for name in ["PAGER", "EDITOR", "VISUAL"] {
        command.env_remove(name);
    }
    let mut terminal = Terminal::start(command, columns, lines);
    terminal.until("\\? for help");
    terminal.until("atoll> ");
    terminal
}

#[test]
fn statements_span_lines_and_errors_point_at_their_place() {
    let folder = Folder::new();
    let mut shell = shell(&folder, 100, 40);
    shell.send("insert into coral\r");
    shell.until("    -> ");
    shell.send("values (5, 'a;\r");
    shell.until("    '> ");
    shell.send("b') /* c\r");
    shell.until("    *> ");
    shell.send("*/, (6, $x$\r");
    shell.until("    $> ");
    shell.send("$x$)\r");
    shell.until("    -> ");
    shell.send(";\r");
    shell.until("2 rows changed");
    shell.until("atoll> ");
    // Ctrl-C takes back what was typed.
    shell.send("select 'never\r");
    shell.until("    '> ");
    shell.send("\x03");
    shell.until("atoll> ");
    let shown = shell.ask("select sum(depth) * 100 as s from coral;");
    assert!(shown.contains("1800"), "{shown}");

    shell.send("select depth,\r");
    shell.until("    -> ");
    let shown = shell.ask("  nothing from coral;");
    assert!(
        shown.contains("no column \"nothing\" at line 2, column 3"),
        "{shown}"
    );
    assert!(
        shown.contains("2 |   nothing from coral\r\n  |   ^\r\n"),
        "{shown}"
    );
    // Statements run although one before them failed.
    let shown = shell.ask("select 40 + 1; select nothing; select 40 + 2;");
    assert!(
        shown.contains(" 41 ") && shown.contains("nothing") && shown.contains(" 42 "),
        "{shown}"
    );
    assert!(shell.ask("help").contains("\\timing"));
    assert_eq!(shell.leave(), Some(0));
}

#[test]
fn all_of_a_paste_runs() {
    let folder = Folder::new();
    let mut shell = shell(&folder, 100, 40);
    let statements: String = (0..60)
        .map(|n| format!("insert into coral values ({n}, 'a;{n}'); -- one; more\n"))
        .collect();
    let rest =
        "select count(*) * 1000 as n,\n  max(name) as \"m;\"\nfrom coral where name <> $$;$$;\n";
    // As terminals paste that do not say so: keys, faster than anybody types.
    shell.send(&format!("{statements}{rest}").replace('\n', "\r"));
    shell.until("62000");
    // And as those do that say so.
    shell.send(&format!("\x1b[200~{statements}{rest}\x1b[201~\r"));
    shell.until("122000");
    assert_eq!(shell.leave(), Some(0));
}

#[test]
fn ctrl_c_ends_the_statement_and_not_the_shell() {
    let folder = Folder::new();
    let mut shell = shell(&folder, 100, 40);
    for _ in 0..2 {
        // The second statement runs, or is about to, once the result of the first is shown.
        let endless = "with recursive n as (select 1 as a union all select a + 1 from n) select count(*) from n";
        shell.send(&format!("select 7 * 11 * 13; {endless}; select 17 * 19;\r"));
        shell.until("1001");
        // Impatience does not end the shell.
        shell.send("\x03\x03\x03");
        let before = shell.until("cancelled");
        assert!(
            !before.contains("323"),
            "what follows a cancelled statement does not run: {before}"
        );
        let shown = shell.ask("select 40 + 2;");
        assert!(shown.contains(" 42 ") && !shown.contains("323"), "{shown}");
    }
    assert_eq!(shell.leave(), Some(0));
}

#[test]
fn rows_are_folded_to_the_width_and_counted() {
    let folder = Folder::new();
    let mut shell = shell(&folder, 60, 200);
    let fits = |shown: &str| {
        let answer = shown
            .split("\r\n")
            .skip_while(|line| !line.starts_with(['┌', '─']));
        let lines: Vec<_> = answer.collect();
        assert!(lines.len() > 1, "{shown}");
        for line in lines {
            assert!(line.chars().count() <= 60, "{line:?} of {shown}");
        }
    };
    shell.ask("\\timing off");
    let folded = shell.ask("select 1 as a, repeat('word ', 30) || 'end' as b, 2 as c;");
    fits(&folded);
    assert!(
        folded.contains("end") && folded.contains("word word"),
        "{folded}"
    );
    // What cannot be folded stands in lines.
    let columns: Vec<_> = (100..120).map(|n| format!("{n}000 as c{n}")).collect();
    let blocks = shell.ask(&format!("select {};", columns.join(", ")));
    fits(&blocks);
    assert!(
        blocks.contains("─ row 1 ") && blocks.contains("c119  119000"),
        "{blocks}"
    );
    shell.ask("\\x on");
    let blocks = shell.ask("select depth, name from coral order by depth;");
    assert!(
        blocks.contains("name   fire") && blocks.contains("─ row 2 "),
        "{blocks}"
    );
    shell.ask("\\x off");

    let many = "select value from generate_series(1, 1234567) g(value);";
    let shown = shell.ask(many);
    assert!(
        shown.contains("40 of 1,234,567 rows shown; \\limit"),
        "{shown}"
    );
    assert!(
        shown.contains(" 20 ") && !shown.contains(" 21 ") && shown.contains(" 1234548 "),
        "{shown}"
    );
    assert!(shell.ask("\\limit 3").contains("3 rows of a result"));
    let shown = shell.ask(many);
    assert!(shown.contains("3 of 1,234,567 rows shown"), "{shown}");
    shell.ask("\\limit 0");
    let shown = shell.ask("select value from generate_series(1, 100) g(value);");
    assert!(
        shown.contains(" 50 ") && shown.contains("100 rows"),
        "{shown}"
    );
    assert_eq!(shell.leave(), Some(0));

    let mut shell = open(&folder, &["sql", "s.atoll", "--rows", "2"], 60, 200);
    assert!(
        shell
            .ask("select value from generate_series(1, 9) g(value);")
            .contains("2 of 9 rows shown")
    );
    assert_eq!(shell.leave(), Some(0));
}

#[test]
fn commands_do_what_they_say() {
    let folder = Folder::new();
    let mut shell = shell(&folder, 100, 20);
    let shown = shell.ask("\\d");
    assert!(shown.contains("coral") && shown.contains(" 2 "), "{shown}");
    assert!(
        shell.ask("\\dt c*").contains("coral") && shell.ask("\\dt x*").contains("no table matches")
    );
    let shown = shell.ask("\\d coral");
    assert!(
        shown.contains("depth") && shown.contains("varchar") && shown.contains("2 rows"),
        "{shown}"
    );
    assert!(
        shell
            .ask("\\d none")
            .contains("there is no table or view \"none\"")
    );
    let shown = shell.ask("\\l");
    assert!(shown.contains("s.atoll") && shown.contains('*'), "{shown}");

    // Results go to a file, which is there as soon as they are in it, and come back.
    shell.ask("\\o out.csv");
    assert!(!folder.path("out.csv").exists());
    shell.ask("select * from coral order by depth;");
    let wanted = "depth,name\n3,brain\n4,fire\n";
    assert_eq!(
        std::fs::read_to_string(folder.path("out.csv")).unwrap(),
        wanted
    );
    assert!(shell.ask("select 1;").contains("holds one result"));
    assert_eq!(
        std::fs::read_to_string(folder.path("out.csv")).unwrap(),
        wanted
    );
    shell.ask("\\o");
    assert!(shell.ask("select 6 * 7;").contains(" 42 "));
    assert!(shell.ask("\\o none/out.csv").contains("cannot write"));

    let shown = shell.ask("\\copy coral from out.csv");
    assert!(shown.contains("2 rows changed"), "{shown}");
    shell.ask("\\copy (select max(depth) as d from coral) to copied.csv");
    assert_eq!(
        std::fs::read_to_string(folder.path("copied.csv")).unwrap(),
        "d\n4\n"
    );

    folder.write(
        "more.sql",
        "select 11 * 11;\n\\timing off\nselect\n  nothing;\nselect 13 * 13;\n",
    );
    let shown = shell.ask("\\i more.sql");
    assert!(shown.contains(" 121 ") && !shown.contains("169"), "{shown}");
    assert!(
        shown.contains("more.sql: no column \"nothing\" at line 4, column 3"),
        "{shown}"
    );
    assert!(shell.ask("\\i none.sql").contains("cannot read none.sql"));
    assert!(shell.ask("\\timing").contains("timing is on"));
    assert!(shell.ask("\\x sideways").contains("on, off or auto"));
    assert!(shell.ask("\\limit many").contains("number of rows"));

    // Only what is longer than the screen goes through the pager.
    shell.ask("\\pager sed s/^/paged:/");
    let shown = shell.ask("select value from generate_series(1, 30) g(value);");
    assert!(
        shown.contains("paged:│") && shown.contains("paged:30 rows"),
        "{shown}"
    );
    assert!(!shell.ask("select 6 * 7;").contains("paged:"));
    shell.ask("\\pager no-such-pager");
    // It may end before anything is written to it, or after.
    for _ in 0..10 {
        let shown = shell.ask("select value from generate_series(1, 30) g(value);");
        assert!(shown.contains("cannot start the pager"), "{shown}");
    }
    shell.ask("\\pager off");
    assert_eq!(shell.leave(), Some(0));
}

#[test]
fn statements_are_edited_recalled_and_completed() {
    let folder = Folder::new();
    shell(&folder, 100, 40).leave();
    folder.write("editor", "#!/bin/sh\nsed -i s/40/400/ \"$1\"\n");
    folder.write("idle", "#!/bin/sh\n");
    for name in ["editor", "idle"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(name), mode).unwrap();
    }
    let mut command = folder.command(&["sql", "s.atoll"]);
    command.env("EDITOR", "./editor").env_remove("VISUAL");
    let mut shell = Terminal::start(command, 100, 40);
    shell.until("atoll> ");
    shell.ask("select 40 + 2 as a;");
    let shown = shell.ask("\\e");
    assert!(shown.contains(" 402 "), "{shown}");
    // Tables and columns are completed, behind an alias too.
    shell.send("select sum(dep\t) + 1000 as s from cor\t;\r");
    shell.until(" 1007 ");
    shell.send("select max(c.dep\t) + 2000 as s from coral c;\r");
    shell.until(" 2004 ");
    shell.until("atoll> ");
    // The statement before, which spans lines.
    shell.send("select\r");
    shell.until("    -> ");
    shell.send("50 * 60 as b;\r");
    shell.until(" 3000 ");
    shell.until("atoll> ");
    shell.send("\x1b[A\r");
    shell.until(" 3000 ");
    assert_eq!(shell.leave(), Some(0));
    let history = std::fs::read_to_string(folder.path(".local/state/atoll/history")).unwrap();
    assert!(history.contains("select 400 + 2 as a;"), "{history}");

    let mut command = folder.command(&["sql", "s.atoll"]);
    command.env("EDITOR", "./idle").env_remove("VISUAL");
    let mut shell = Terminal::start(command, 100, 40);
    shell.until("atoll> ");
    shell.ask("select 40 + 2 as a;");
    assert!(shell.ask("\\e").contains("nothing was saved"));
    assert_eq!(shell.leave(), Some(0));
}

#[test]
fn a_mistyped_store_is_no_shell() {
    let folder = Folder::new();
    shell(&folder, 100, 40).leave();
    let mut terminal = Terminal::start(folder.command(&["sql", "s.atol"]), 100, 40);
    terminal.until("did you mean s.atoll?");
    assert_eq!(terminal.leave(), Some(1));
    assert!(!folder.path("s.atol").exists());
    let mut shell = open(&folder, &["sql", "new.atoll", "--create"], 100, 40);
    assert!(shell.ask("create table t (a int);").contains("done"));
    assert_eq!(shell.leave(), Some(0));
}

#[test]
fn arrays_have_a_shell_of_their_own() {
    let folder = Folder::new();
    let create = "create array sea <m:double> [x=0:3; y=0:2]; store(build(<m:double> [x=0:3; y=0:2], x + y), depth)";
    folder
        .run(&["afl", "s.atoll", "--create", create])
        .succeeded();
    let mut command = folder.command(&["afl", "s.atoll"]);
    command.env_remove("PAGER");
    let mut shell = Terminal::start(command, 120, 40);
    shell.until("\\? for help");
    shell.until("afl> ");
    // A statement over several lines; a bracket is still open.
    shell.send("aggregate(depth,\r");
    shell.until("  (> ");
    shell.send("sum(m))\r");
    shell.until("  -> ");
    shell.send(";\r");
    let shown = shell.until("afl> ");
    assert!(shown.contains("30"), "{shown}");
    // Ctrl-C takes back what was typed.
    shell.send("filter('\r");
    shell.until("  '> ");
    shell.send("\x03");
    shell.until("afl> ");
    // Tab completes operators and names.
    shell.send("matm\t");
    shell.until("matmul(");
    shell.send("\x03");
    shell.until("afl> ");
    shell.send("filter(dep\t");
    shell.until("depth");
    shell.send("\x03");
    shell.until("afl> ");
    let mut ask = |line: &str, part: &str| {
        shell.send(&format!("{line}\r"));
        let shown = shell.until("afl> ");
        assert!(shown.contains(part), "{line}: {shown}");
    };
    ask("\\d", "sea");
    ask("\\d depth", "dimension x");
    ask("\\d nothing", "no array 'nothing'");
    ask("explain filter(depth, m > 1);", "filter(depth)");
    ask("analyze depth;", "12 cells");
    ask(
        "filter(depth, deep > 1);",
        "no attribute or dimension 'deep'",
    );
    ask("store(opposite(depth), low); aggregate(low, min(m));", "-5");
    // Another process writes meanwhile.
    folder.run(&["afl", "s.atoll", "remove(low)"]).succeeded();
    ask("low;", "no array 'low'");
    ask("create version one of depth;", "kept as depth@one");
    ask("\\d depth", "depth@one");
    ask("\\nothing", "unknown command");
    shell.send("exit\r");
    assert_eq!(shell.status(), Some(0));
}
