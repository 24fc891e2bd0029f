//! The example in C is compiled, and run with the library of this build.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the example prints.
const PRINTED: &str = "3 rows\nnorth 12\nwest 23\nstatus 3, SQLSTATE 42703\n";

/// The shared library of this build, which lies beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("libadbc.so")
}

/// A folder with `arrow-adbc/adbc.h` in it: that of `$ATOLL_ADBC_INCLUDE`, of the system, or of Python's package
/// adbc-driver-manager.
fn include() -> Option<PathBuf> {
    let python = "import adbc_driver_manager as m, os; print(os.path.dirname(m.__file__), end='')";
    let python = Command::new("python3").args(["-c", python]).output();
    let python = python.ok().filter(|output| output.status.success());
    let python = python.and_then(|output| String::from_utf8(output.stdout).ok());
    let named = std::env::var_os("ATOLL_ADBC_INCLUDE").map(PathBuf::from);
    let system = ["/usr/include", "/usr/local/include"].map(PathBuf::from);
    let mut all = named
        .into_iter()
        .chain(system)
        .chain(python.map(PathBuf::from));
    all.find(|folder| folder.join("arrow-adbc/adbc.h").exists())
}

#[test]
fn a_program_in_c_uses_the_driver() {
    if Command::new("cc").arg("--version").output().is_err() {
        return notrun::not_run("there is no compiler of C, cc");
    }
    let Some(include) = include() else {
        return notrun::not_run(
            "arrow-adbc/adbc.h is not installed; ./test-adbc installs it for itself, or set ATOLL_ADBC_INCLUDE",
        );
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(library(), place.path().join("libatoll.so")).unwrap();
    let program = place.path().join("reef");
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(folder.join("include"))
        .arg("-I")
        .arg(include)
        .arg(folder.join("tests/c/reef.c"))
        .arg("-L")
        .arg(place.path())
        .args(["-latoll", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let output = Command::new(&program)
        .arg(place.path().join("reef.atoll"))
        .env("LD_LIBRARY_PATH", place.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), PRINTED);
}

/// The header alone is C and C++, and its words are those of the driver.
#[test]
fn the_header_names_what_there_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(folder.join("include/atoll.h")).unwrap();
    let named: Vec<&str> = header
        .lines()
        .filter(|line| line.starts_with("#define ATOLL_OPTION_"))
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert_eq!(named.len(), 7);
    let source = std::fs::read_to_string(folder.join("src/database.rs")).unwrap();
    for option in named {
        assert!(source.contains(&format!("\"{option}\"")), "{option}");
    }
    for compiler in ["cc", "c++"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            continue;
        }
        let language = if compiler == "cc" { "c" } else { "c++" };
        let output = Command::new(compiler)
            .args([
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsyntax-only",
                "-x",
                language,
            ])
            .arg(folder.join("include/atoll.h"))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler}: {told}");
    }
}
