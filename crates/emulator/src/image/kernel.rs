//! A distribution's kernel, taken apart: the image without its compression, and the modules the
//! emulated machine needs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// What the first process needs: the bus, the port to the launcher, the host's files.
const WANTED: [&str; 5] = [
    "virtio_pci",
    "virtio_console",
    "9pnet_virtio",
    "9p",
    "overlay",
];

/// What is wrong with a file of the kernel.
fn wrong(path: &Path, why: impl Into<String>) -> Error {
    Error::Kernel {
        path: path.to_owned(),
        why: why.into(),
    }
}

/// The kernel as an ELF file, out of the compressed file that boot loaders take: under emulation
/// unpacking it at every start would cost more than the rest of the boot.
///
/// The header's fields are described in the kernel's documentation of the x86 boot protocol.
pub(crate) fn uncompressed(vmlinuz: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(vmlinuz).map_err(|error| wrong(vmlinuz, error.to_string()))?;
    let short = || wrong(vmlinuz, "it is not a compressed x86 kernel");
    if bytes.get(0x202..0x206) != Some(b"HdrS") {
        // "HdrS" stands at 0x202.
        return Err(short());
    }
    let number = |at: usize| -> Option<usize> {
        let four = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(four.try_into().ok()?) as usize)
    };
    let sectors = match bytes.get(0x1f1) {
        Some(0) => 4,
        Some(count) => usize::from(*count),
        None => return Err(short()),
    };
    let start = (sectors + 1) * 512 + number(0x248).ok_or_else(short)?;
    let length = number(0x24c).ok_or_else(short)?;
    let payload = start
        .checked_add(length)
        .and_then(|end| bytes.get(start..end))
        .ok_or_else(short)?;
    let kernel = unpacked(vmlinuz, payload)?;
    if !kernel.starts_with(b"\x7fELF") {
        return Err(wrong(vmlinuz, "what it holds is not an ELF file"));
    }
    Ok(kernel)
}

/// The content of compressed bytes, by the program that knows the format.
fn unpacked(path: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    // The kernel's length follows the compressed bytes, which the programs take for garbage.
    let (program, arguments): (&str, &[&str]) = match bytes {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => ("xz", &["-dc", "--single-stream"]),
        [0x1f, 0x8b, ..] => ("gzip", &["-dcq"]),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd", &["-dcq"]),
        _ => return Err(wrong(path, "it is compressed in a way that is not known")),
    };
    let failed = |error: std::io::Error| wrong(path, format!("{program}: {error}"));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut input = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(input) = &mut input {
                // A program that ends early is noticed by what it leaves.
                let _ = input.write_all(bytes);
            }
        });
        child.wait_with_output()
    });
    Ok(output.map_err(failed)?.stdout)
}

/// The modules of the unpacked package in `root` that are needed, each after those it depends
/// on, with their content. What is built into the kernel is not among them.
pub(crate) fn modules(root: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = BTreeMap::new();
    collect(&root.join("lib/modules"), &mut files)
        .map_err(|error| wrong(root, format!("its modules cannot be listed: {error}")))?;
    if files.is_empty() {
        return Err(wrong(root, "it holds no kernel modules"));
    }
    let mut ordered = Vec::new();
    for name in WANTED {
        add(name, &files, &mut ordered, 0)?;
    }
    Ok(ordered)
}

/// All modules below a directory by name, in which `-` is written as `_`.
fn collect(directory: &Path, files: &mut BTreeMap<String, PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().replace('-', "_");
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if let Some((name, ending)) = name.split_once(".ko")
            && matches!(ending, "" | ".xz" | ".zst" | ".gz")
        {
            files.insert(name.to_owned(), path);
        }
    }
    Ok(())
}

fn add(
    name: &str,
    files: &BTreeMap<String, PathBuf>,
    ordered: &mut Vec<(String, Vec<u8>)>,
    depth: usize,
) -> Result<()> {
    /// Longer chains are loops in a damaged package.
    const DEEPEST: usize = 32;
    let known = ordered.iter().any(|(done, _)| done == name);
    let Some(path) = files.get(name).filter(|_| !known && depth < DEEPEST) else {
        return Ok(());
    };
    let bytes = fs::read(path).map_err(|error| wrong(path, error.to_string()))?;
    let bytes = if bytes.starts_with(b"\x7fELF") {
        bytes
    } else {
        unpacked(path, &bytes)?
    };
    for needed in needs(&bytes) {
        add(&needed, files, ordered, depth + 1)?;
    }
    ordered.push((name.to_owned(), bytes));
    Ok(())
}

/// The modules that a module names as needed before it, from its `.modinfo` section: texts of
/// the form `key=value`, each ended by a zero byte.
fn needs(module: &[u8]) -> Vec<String> {
    let texts = module.split(|byte| *byte == 0);
    let lists = texts.filter_map(|text| {
        let text = std::str::from_utf8(text).ok()?;
        let list = text.strip_prefix("depends=");
        list.or_else(|| text.strip_prefix("softdep=pre: "))
    });
    let names = lists.flat_map(|list| list.split([',', ' ']));
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_modules_are_read_from_a_module() {
        let module = b"\x7fELF..\0license=GPL\0depends=9pnet,net-fs\0softdep=pre: crc32c\0";
        assert_eq!(needs(module), ["9pnet", "net_fs", "crc32c"]);
        assert_eq!(needs(b"depends=\0"), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_kernel_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("vmlinuz");
        let mut header = vec![0u8; 0x260];
        header[0x202..0x206].copy_from_slice(b"HdrS");
        header[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        for content in [b"".to_vec(), b"short".to_vec(), vec![1; 4096], header] {
            fs::write(&file, content).unwrap();
            let error = uncompressed(&file).unwrap_err().to_string();
            assert!(error.contains("vmlinuz"), "{error}");
        }
        assert!(uncompressed(Path::new("/nonexistent/vmlinuz")).is_err());
        assert!(modules(directory.path()).is_err());
    }
}
