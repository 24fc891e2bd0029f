//! The page of the documentation about the command line says what the program says.

mod atoll;

use std::fs;
use std::path::Path;

use atoll::Folder;

/// With `UPDATE_DOCS=1` in the environment the page is written anew.
#[test]
fn the_reference_of_the_command_line_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/command-line.md");
    let said = Folder::new().run(&["reference"]).succeeded();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &said).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(said.lines()).position(|(a, b)| a != b);
    let differs = differs.unwrap_or(page.lines().count().min(said.lines().count()));
    assert!(
        page == said,
        "docs/reference/command-line.md differs from line {} on; write it anew with \
         UPDATE_DOCS=1 cargo test -p cli --test reference",
        differs + 1
    );
}
