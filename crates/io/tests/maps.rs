//! As many maps as a process can have: in a process of its own, as it leaves none for other tests.

use io::{Device, Error, File, Map, Mapping};

fn map(file: &File) -> io::Result<Map> {
    // SAFETY: nobody writes to the file while it is mapped.
    unsafe { Map::new(file, 0, 4096, Mapping::ReadOnly) }
}

#[test]
fn there_is_a_limit_and_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = File::create(directory.path().join("pages")).unwrap();
    file.write_at(0, &[1; 4096]).unwrap();
    let mut maps = Vec::new();
    let error = loop {
        match map(&file) {
            Ok(map) => maps.push(map),
            Err(error) => break error,
        }
        assert!(maps.len() <= Map::LIMIT);
    };
    assert!(matches!(error, Error::TooManyMaps { .. }), "{error}");
    drop(maps);
    map(&file).unwrap();
}
