//! Files of the operating system.

use io::{Access, Device, Error, File};

#[test]
fn bytes_come_back_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let file = File::create(&path).unwrap();
    assert!(file.is_empty().unwrap());
    let bytes: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
    file.write_at(12_345, &bytes).unwrap();
    file.sync().unwrap();
    assert_eq!(file.len().unwrap(), 112_345);
    drop(file);

    let file = File::open(&path, Access::Write).unwrap();
    let mut back = vec![1; 100_000];
    file.read_at(12_345, &mut back).unwrap();
    assert_eq!(back, bytes);
    file.read_at(0, &mut back[..12_345]).unwrap();
    assert!(back[..12_345].iter().all(|byte| *byte == 0));
    file.set_len(12_346).unwrap();
    assert_eq!(file.len().unwrap(), 12_346);
    assert_eq!(file.path(), path);
}

#[test]
fn a_read_past_the_end_says_how_much_there_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let file = File::create(&path).unwrap();
    file.write_at(0, &[7; 100]).unwrap();
    let mut into = [0; 64];
    let error = file.read_at(90, &mut into).unwrap_err();
    assert!(
        matches!(
            error,
            Error::ShortRead {
                offset: 90,
                wanted: 64,
                got: 10,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(into[..10], [7; 10]);
    assert!(
        error
            .to_string()
            .contains("data: read only 10 of 64 bytes at offset 90")
    );
    assert!(file.read_at(1 << 40, &mut into).is_err());
    file.read_at(100, &mut []).unwrap();
}

#[test]
fn offsets_no_file_can_have_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let file = File::create(directory.path().join("data")).unwrap();
    let mut into = [0; 8];
    assert!(file.read_at(u64::MAX - 3, &mut into).is_err());
    assert!(file.write_at(u64::MAX - 3, &into).is_err());
    assert!(file.set_len(u64::MAX).is_err());
    assert_eq!(file.len().unwrap(), 0);
}

#[test]
fn what_cannot_be_opened_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let missing = directory.path().join("no/such/data");
    assert!(
        matches!(File::open(&path, Access::Read), Err(Error::NotFound { path: p }) if p == path)
    );
    assert!(matches!(File::create(&missing), Err(Error::NoDirectory { path: p }) if p == missing));
    assert!(matches!(
        File::open(directory.path(), Access::Read),
        Err(Error::NotAFile { .. })
    ));
    drop(File::create(&path).unwrap());
    assert!(matches!(File::create(&path), Err(Error::Exists { .. })));
    // A file is no directory.
    assert!(matches!(
        File::create(path.join("below")),
        Err(Error::NoDirectory { .. })
    ));
}

#[test]
fn allocated_room_is_taken_on_the_disk() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let room = || std::fs::metadata(&path).unwrap().blocks() * 512;
    let file = File::create(&path).unwrap();
    file.write_at(0, b"kept").unwrap();
    file.set_len(1 << 20).unwrap();
    assert!(room() < 1 << 20, "a hole takes no room");
    file.allocate(1 << 19, 1 << 20).unwrap();
    assert_eq!(file.len().unwrap(), 3 << 19);
    assert!((1 << 20..2 << 20).contains(&room()), "{}", room());
    file.allocate(0, 100).unwrap();
    file.allocate(1 << 30, 0).unwrap();
    assert_eq!(file.len().unwrap(), 3 << 19, "it never gets shorter");
    let mut into = [1; 8];
    file.read_at(0, &mut into).unwrap();
    assert_eq!(&into, b"kept\0\0\0\0");
    assert!(file.allocate(0, u64::MAX).is_err());
    assert_eq!(file.len().unwrap(), 3 << 19, "nor longer when it fails");
    drop(file);
    let file = File::open(&path, Access::Read).unwrap();
    assert!(matches!(file.allocate(0, 1), Err(Error::Denied { .. })));
}

#[test]
fn a_file_opened_for_reading_takes_no_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    drop(File::create(&path).unwrap());
    let reader = File::open(&path, Access::Read).unwrap();
    assert_eq!(reader.access(), Access::Read);
    let denied = |done: io::Result<()>| matches!(done, Err(Error::Denied { .. }));
    assert!(denied(reader.write_at(0, b"x")) && denied(reader.set_len(0)));
}

#[test]
fn a_device_node_is_not_a_file() {
    assert!(matches!(
        File::open("/dev/full", Access::Write),
        Err(Error::NotAFile { .. })
    ));
}
