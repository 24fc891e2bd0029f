//! The boot image of a machine (kernel, modules, init): made once and kept in the user's cache directory.
//!
//! ```text
//! $XDG_CACHE_HOME/atoll/lab/kernel/vmlinux       Debian's kernel, uncompressed
//!                                  modules.cpio  the modules needed, in the order to load them
//!                           guest-HASH/init.cpio the first process
//!                                      dram.so   the access counter
//!                           kvm                  whether hardware virtualisation works here
//! ```

mod archive;
mod kernel;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

pub(crate) use archive::Archive;

use crate::error::{Error, Result};
use crate::tools;
use crate::variables::KERNEL_VARIABLE;

const INIT: &str = include_str!("../../guest/init.c");
const MARKS: &str = include_str!("../../guest/atoll_roi.h");
const PLUGIN: &str = include_str!("../../plugin/dram.c");
const PLUGIN_API: &str = include_str!("../../plugin/qemu_api.h");

/// The files of the image.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) directory: PathBuf,
    guest: PathBuf,
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { what, path, source }
}

impl Image {
    /// The image; made first where it is missing, with a line about it to `progress`.
    pub(crate) fn ready(progress: &mut dyn Write) -> Result<Image> {
        let directory = cache()?;
        let image = Image {
            guest: directory.join(format!("guest-{:016x}", sources())),
            directory,
        };
        tools::check(!image.complete())?;
        if image.complete() {
            return Ok(image);
        }
        fs::create_dir_all(&image.directory).map_err(failed("create", &image.directory))?;
        let _lock = lock(&image.directory.join("lock"))?;
        // Somebody else may have made it meanwhile.
        if !image.kernel().is_file() {
            // Progress that nobody reads is no reason to stop.
            let _ = writeln!(progress, "atoll lab: getting Debian's kernel, once");
            image.make("kernel", make_kernel)?;
        }
        if !image.guest.is_dir() {
            let _ = writeln!(
                progress,
                "atoll lab: compiling the guest's first process, once"
            );
            image.make(&name_of(&image.guest), make_guest)?;
        }
        Ok(image)
    }

    fn complete(&self) -> bool {
        self.kernel().is_file() && self.guest.is_dir()
    }

    /// The kernel, uncompressed.
    pub(crate) fn kernel(&self) -> PathBuf {
        self.directory.join("kernel/vmlinux")
    }

    /// The access counter.
    ///
    /// # Errors
    ///
    /// [`Error::Count`] where the emulator that is installed cannot run it.
    pub(crate) fn plugin(&self) -> Result<PathBuf> {
        tools::runs_plugin()?;
        Ok(self.guest.join("dram.so"))
    }

    /// The first file system: modules and first process.
    pub(crate) fn archive(&self) -> Result<Vec<u8>> {
        let modules = self.directory.join("kernel/modules.cpio");
        let mut bytes = fs::read(&modules).map_err(failed("read", &modules))?;
        let init = self.guest.join("init.cpio");
        bytes.extend(fs::read(&init).map_err(failed("read", &init))?);
        Ok(bytes)
    }

    /// Makes a directory of the image: in a temporary one beside it that is then renamed, so that
    /// there is either all of it or nothing.
    fn make(&self, name: &str, make: fn(&Path) -> Result<()>) -> Result<()> {
        let scratch = Scratch::new(self.directory.join("building"))?;
        make(&scratch.0)?;
        let target = self.directory.join(name);
        // Left behind only where its files were deleted one by one.
        let _ = fs::remove_dir_all(&target);
        fs::rename(&scratch.0, &target).map_err(failed("create", &target))
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// A fresh directory, removed on drop unless it was renamed.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: PathBuf) -> Result<Scratch> {
        // Whoever left one was killed: we hold the lock.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(failed("create", &path))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Waits for the lock; it is held until the file is closed.
fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).map_err(failed("create", path))?;
    // SAFETY: the descriptor is open for the whole call, which has no other precondition.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } < 0 {
        return Err(failed("lock", path)(io::Error::last_os_error()));
    }
    Ok(file)
}

/// `$XDG_CACHE_HOME/atoll/lab`, or the same under `~/.cache`.
fn cache() -> Result<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let base = base.ok_or_else(|| Error::Emulator {
        why: "there is nowhere to keep the image: set HOME or XDG_CACHE_HOME".to_owned(),
    })?;
    Ok(base.join("atoll/lab"))
}

/// Tells images of different sources apart.
fn sources() -> u64 {
    let mut hasher = DefaultHasher::new();
    (INIT, MARKS, PLUGIN, PLUGIN_API).hash(&mut hasher);
    hasher.finish()
}

/// Compiles the first process and the access counter.
fn make_guest(directory: &Path) -> Result<()> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(failed("write", &path))
    };
    write("init.c", INIT)?;
    write("atoll_roi.h", MARKS)?;
    write("dram.c", PLUGIN)?;
    write("qemu_api.h", PLUGIN_API)?;
    let compile = |what, arguments: &[&str]| {
        tools::run(directory, "cc", arguments).map_err(|why| Error::Compile { what, why })
    };
    compile(
        "the first process",
        &["-O2", "-static", "-s", "-o", "init", "init.c"],
    )?;
    let flags = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden"];
    let files = ["-o", "dram.so", "dram.c"];
    compile("the access counter", &[&flags[..], &files[..]].concat())?;
    let init = directory.join("init");
    let init = fs::read(&init).map_err(failed("read", &init))?;
    let mut archive = Archive::default();
    for name in ["dev", "proc", "sys", "host", "writes", "new"] {
        archive.directory(name);
    }
    archive.program("init", &init);
    let path = directory.join("init.cpio");
    fs::write(&path, archive.finish()).map_err(failed("write", &path))
}

/// Gets the kernel package and takes out of it what is needed.
fn make_kernel(directory: &Path) -> Result<()> {
    let scratch = Scratch::new(directory.join("package"))?;
    let package = match std::env::var_os(KERNEL_VARIABLE) {
        // Programs are run in other directories.
        Some(path) => std::path::absolute(&path).unwrap_or_else(|_| path.into()),
        None => download(&scratch.0)?,
    };
    let content = scratch.0.join("content");
    let (from, to) = (package.as_os_str(), content.as_os_str());
    tools::run(&scratch.0, "dpkg-deb", &["-x".as_ref(), from, to])
        .map_err(|why| Error::Download { why })?;
    let vmlinuz = one(&content.join("boot"), "vmlinuz-")?;
    let path = directory.join("vmlinux");
    fs::write(&path, kernel::uncompressed(&vmlinuz)?).map_err(failed("write", &path))?;

    let mut archive = Archive::default();
    archive.directory("modules");
    let mut order = String::new();
    for (name, module) in kernel::modules(&content)? {
        archive.file(&format!("modules/{name}"), &module);
        order += &format!("{name}\n");
    }
    archive.file("modules/order", order.as_bytes());
    let path = directory.join("modules.cpio");
    fs::write(&path, archive.finish()).map_err(failed("write", &path))
}

/// The one file of a directory whose name starts so.
fn one(directory: &Path, start: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(directory).map_err(failed("read", directory))?;
    let mut files = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    let file = files.next().ok_or_else(|| Error::Kernel {
        path: directory.join(start),
        why: "the package does not hold it".to_owned(),
    })?;
    Ok(file.path())
}

/// Downloads the package of the current kernel into `directory`; nothing is installed. Where the
/// system's package lists are missing or out of date, own ones are fetched.
fn download(directory: &Path) -> Result<PathBuf> {
    if tools::find("apt-get").is_none() {
        let why = "there is no apt-get on this system".to_owned();
        return Err(Error::Download { why });
    }
    if let Ok(package) = download_with(directory, &[]) {
        return Ok(package);
    }
    let lists = directory.join("lists");
    let cache = directory.join("cache");
    for path in [lists.join("partial"), cache.join("archives/partial")] {
        fs::create_dir_all(&path).map_err(failed("create", &path))?;
    }
    let options = [
        format!("-oDir::State::lists={}", lists.display()),
        format!("-oDir::Cache={}", cache.display()),
        // apt would change to a user that may not write here.
        "-oAPT::Sandbox::User=root".to_owned(),
    ];
    let update = [&options[..], &["update".to_owned()]].concat();
    tools::run(directory, "apt-get", &update)
        .and_then(|_| download_with(directory, &options))
        .map_err(|why| Error::Download { why })
}

fn download_with(directory: &Path, options: &[String]) -> std::result::Result<PathBuf, String> {
    const LATEST: &str = "linux-image-amd64";
    let words = |more: &[&str]| -> Vec<String> {
        let more = more.iter().map(|word| (*word).to_owned());
        options.iter().cloned().chain(more).collect()
    };
    let depends = tools::run(directory, "apt-cache", &words(&["depends", LATEST]))?;
    let mut needed = depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "));
    let package = needed.find(|name| name.starts_with("linux-image-"));
    let package = package.ok_or_else(|| format!("no package {LATEST} is known"))?;
    tools::run(directory, "apt-get", &words(&["download", "-q", package]))?;
    one(directory, package).map_err(|error| error.to_string())
}
