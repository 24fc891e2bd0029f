//! The module under an interpreter: the tests of `tests/test_core.py`, which need nothing but Python itself.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The shared library of this build, which lies beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("lib_atoll.so")
}

/// Whether `python3` is there and new enough.
fn is_python_there() -> bool {
    let asked = "import sys; sys.exit(sys.version_info < (3, 10))";
    let ended = Command::new("python3").args(["-c", asked]).status();
    ended.is_ok_and(|status| status.success())
}

#[test]
fn python_can_use_the_database() {
    if !is_python_there() {
        return notrun::not_run("python3 of 3.10 or later is not installed");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    let package = place.path().join("atoll");
    std::fs::create_dir(&package).unwrap();
    for entry in std::fs::read_dir(folder.join("atoll")).unwrap() {
        let file = entry.unwrap().path();
        if file.is_file() {
            std::fs::copy(&file, package.join(file.file_name().unwrap())).unwrap();
        }
    }
    std::os::unix::fs::symlink(library(), package.join("_atoll.abi3.so")).unwrap();
    let output = Command::new("timeout")
        .args(["300", "python3", "-B", "-m", "unittest", "-v", "test_core"])
        .current_dir(folder.join("tests"))
        .env("PYTHONPATH", place.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("\nOK"), "{told}");
}
