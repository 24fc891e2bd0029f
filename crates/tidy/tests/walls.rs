//! The walls that `walls.toml` names stand.

use tidy::{Walls, Workspace};

#[test]
fn the_walls_stand() {
    let root = tidy::root();
    let workspace = Workspace::read(&root).unwrap();
    let walls = Walls::read(&root.join("crates/tidy/walls.toml")).unwrap();
    let broken: Vec<String> = walls
        .broken(&workspace)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
