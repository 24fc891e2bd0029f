//! Environment variables that are read, or set for the command.

/// Names a linux-image .deb file to use instead of the one that apt would download.
pub const KERNEL_VARIABLE: &str = "ATOLL_LAB_KERNEL";

/// Set for the command to the name of the emulated machine.
pub const MACHINE_VARIABLE: &str = "ATOLL_LAB_MACHINE";

/// The name of the emulated machine that this process runs on, if it does: what
/// [`MACHINE_VARIABLE`] says.
pub fn inside() -> Option<String> {
    let name = std::env::var_os(MACHINE_VARIABLE)?;
    (!name.is_empty()).then(|| name.to_string_lossy().into_owned())
}
