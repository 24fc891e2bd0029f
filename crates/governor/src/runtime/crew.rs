//! What the governor needs of the workers it governs.

use placement::CpuSet;

/// The workers of a database in this process.
pub trait Crew: Send + Sync {
    /// The operating system's numbers of their threads.
    fn threads(&self) -> Vec<u32>;

    /// Bytes that they have read so far, by the operating system's number of the node that holds them. Never falls.
    fn bytes(&self) -> Vec<(u32, u64)>;

    /// Restricts the workers to these cpus of the machine, at least one.
    ///
    /// # Errors
    ///
    /// Why it failed, in words; the workers then stay where they are.
    fn place(&self, cpus: &CpuSet) -> std::result::Result<(), String>;
}
