//! [`Machine::parse`]: from what a user writes to a machine, whichever of the sources it names.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::machine::{Machine, Source};
use crate::{shipped, synthetic, xml};

/// The largest XML file that is read: the largest machines take a few MB.
const MAX_XML_BYTES: u64 = 64 << 20;

impl Machine {
    /// The machine that `spec` names: `live`, one of [`SHIPPED`](crate::SHIPPED), a path ending
    /// in `.xml`, `NODESxCORES` such as `4x4`, or an hwloc synthetic description such as
    /// `node:4 l3:1 core:4 pu:2`. Surrounding white space is ignored.
    ///
    /// # Errors
    ///
    /// One that names `spec`, says what is wrong with it and what would be accepted; machines
    /// over [`MAX_CPUS`](crate::MAX_CPUS) or [`MAX_NODES`](crate::MAX_NODES) are refused before memory is taken for them.
    ///
    /// ```
    /// let error = topology::Machine::parse("opteron").unwrap_err();
    /// assert!(error.to_string().contains("opteron-8387"));
    /// ```
    pub fn parse(spec: &str) -> Result<Machine> {
        parse(spec)
    }
}

fn parse(spec: &str) -> Result<Machine> {
    let spec = spec.trim();
    if spec == "live" {
        return Machine::live();
    }
    if let Some(machine) = shipped::machine(spec) {
        return machine;
    }
    let path = Path::new(spec);
    if path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("xml"))
    {
        return file(path);
    }
    if let Some((nodes, cores)) = grid(spec) {
        return synthetic::machine(&format!("node:{nodes} core:{cores} pu:1"), spec);
    }
    let first = spec.split([':', '(', ' ']).next().unwrap_or_default();
    if spec.contains(':') && first.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[') {
        return synthetic::machine(spec, spec);
    }
    Err(Error::Unknown {
        spec: spec.to_owned(),
    })
}

/// The two sides of `NODESxCORES`, digits only, of any length.
fn grid(spec: &str) -> Option<(&str, &str)> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    spec.split_once('x')
        .filter(|(nodes, cores)| number(nodes) && number(cores))
}

/// The machine in an hwloc XML file.
fn file(path: &Path) -> Result<Machine> {
    let unreadable = |error: std::io::Error| Error::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let wrong = |why: &str| Error::Xml {
        path: path.to_owned(),
        why: why.to_owned(),
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_XML_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_XML_BYTES {
        return Err(wrong("it is larger than 64 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not text in UTF-8"))?;
    let parts = xml::read(&text).map_err(|why| wrong(&why))?;
    let name = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into());
    parts.into_machine(name, Source::Xml(PathBuf::from(path)))
}
