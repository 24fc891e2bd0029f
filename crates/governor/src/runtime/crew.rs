//! Who is governed.

use placement::CpuSet;

/// The workers of a database in this process.
pub trait Crew: Send + Sync {
    /// The operating system's numbers of their threads.
    fn threads(&self) -> Vec<u32>;

    /// All bytes that they have read so far, by the operating system's number of the node that
    /// these are on. Never falls.
    fn bytes(&self) -> Vec<(u32, u64)>;

    /// From now on the workers run on these cpus of the machine, of which there is one at least.
    ///
    /// # Errors
    ///
    /// Why not, in words; they stay where they are then.
    fn place(&self, cpus: &CpuSet) -> std::result::Result<(), String>;
}
