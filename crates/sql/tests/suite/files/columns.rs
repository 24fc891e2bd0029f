//! The columns of files that no `*` returns: the name of the file, and the number of the row in it.

use super::{Fixture, directory, executors};
use crate::answers::rows;

/// Runs `check` with each executor over files of two folders, and one that has a column `filename`; it is given what asks for
/// rows, and the database.
fn over_files(check: impl Fn(&dyn Fn(&str) -> Vec<String>, &Fixture)) {
    let directory = directory();
    let folder = directory.path();
    std::fs::create_dir_all(folder.join("h/k=1")).unwrap();
    std::fs::create_dir_all(folder.join("h/k=2")).unwrap();
    std::fs::write(folder.join("h/k=1/a.csv"), "n\n5\n6\n7\n").unwrap();
    std::fs::write(folder.join("h/k=2/b.csv"), "n\n7\n8\n").unwrap();
    std::fs::write(folder.join("own.csv"), "n,filename\n1,mine\n").unwrap();
    let short = |text: &str| text.replace(&format!("{}/", folder.display()), "");
    for own in executors(&directory) {
        let ask = |text: &str| -> Vec<String> {
            let found = rows(&own.sql(text).unwrap_or_else(|e| panic!("{text}: {e}")));
            found.iter().map(|row| short(row)).collect()
        };
        check(&ask, &own);
    }
}

#[test]
fn rows_know_their_file_and_their_number() {
    over_files(|ask, _| {
        assert_eq!(
            ask("select *, filename, file_row_number from '$h' where n <> 6"),
            [
                "5|1|h/k=1/a.csv|0",
                "7|1|h/k=1/a.csv|2",
                "7|2|h/k=2/b.csv|0",
                "8|2|h/k=2/b.csv|1"
            ]
        );
        assert_eq!(
            ask("select n, input_file_name(), file_row_index() from read_csv('$h/k=2/b.csv')"),
            ["7|h/k=2/b.csv|0", "8|h/k=2/b.csv|1"]
        );
        assert_eq!(
            ask(
                "select filename, count(*), max(t.file_row_number) from '$h' t group by filename order by filename"
            ),
            ["h/k=1/a.csv|3|2", "h/k=2/b.csv|2|1"]
        );
        assert_eq!(
            ask("select n from '$h' where filename like '%b.csv' and file_row_index() = 1"),
            ["8"]
        );
        assert_eq!(
            ask(
                "select count(*), sum(id - file_row_number), max(file_row_number) from '$t.parquet' where id >= 10"
            ),
            ask("select count(*), 0, max(id) from '$t.parquet' where id >= 10")
        );
    });
}

#[test]
fn columns_of_files_are_those_of_the_files_that_a_select_names() {
    over_files(|ask, own| {
        // Each `select` has files of its own.
        assert_eq!(
            ask(
                "select filename from '$h/k=1/a.csv' where n = 5 union all select filename from '$h/k=2/b.csv' where n = 8"
            ),
            ["h/k=1/a.csv", "h/k=2/b.csv"]
        );
        assert_eq!(
            ask(
                "select a.filename, b.file_row_number, n from '$h/k=1/a.csv' a natural join '$h/k=2/b.csv' b"
            ),
            ["h/k=1/a.csv|0|7"]
        );
        assert_eq!(
            ask("select x, filename from '$h/k=2/b.csv' t(x)"),
            ["7|h/k=2/b.csv", "8|h/k=2/b.csv"]
        );
        assert_eq!(
            ask("select *, file_row_index() from '$h/k=2/b.csv' t, unnest(array[3]) as u(v)"),
            ["7|3|0", "8|3|1"]
        );
        // A column of the file comes first, and no star has more than the file.
        assert_eq!(
            ask("select filename, file_row_index() from '$own.csv'"),
            ["mine|0"]
        );
        assert_eq!(
            ask("select * from '$h/k=2/b.csv' where filename is not null"),
            ["7", "8"]
        );
        let both = "from '$h/k=1/a.csv' a join '$h/k=2/b.csv' b on a.n = b.n";
        let several = own.sql(&format!("select file_row_index() {both}"));
        let several = several.unwrap_err().to_string();
        assert!(several.contains("write table.file_row_number"), "{several}");
        let none = own
            .sql("select filename from (values (1)) t(a)")
            .unwrap_err();
        assert!(
            none.to_string().contains("no column \"filename\""),
            "{none}"
        );
    });
}
