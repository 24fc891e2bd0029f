//! Joules from processor time, where nothing counts them.

use topology::{Machine, Rates};

/// Joules of a machine for so many seconds, of which its cores together worked for `busy`: those of cores that work, of those that do
/// not, and of memory that is on. The bits that moved are not known, and not in it.
///
/// By the machine's own rates, or [typical](Rates::TYPICAL) ones where it has none.
///
/// ```
/// let machine = topology::Machine::parse("xeon-4114")?;
/// let idle = placement::cost::estimate(&machine, 2.0, 0.0);
/// let busy = placement::cost::estimate(&machine, 2.0, 8.0);
/// // Four of its 20 cores worked, at 5.4 W more than they take idle.
/// assert!((busy - idle - 8.0 * 5.4).abs() < 0.1, "{busy} J, {idle} J");
/// # Ok::<(), topology::Error>(())
/// ```
pub fn estimate(machine: &Machine, seconds: f64, busy: f64) -> f64 {
    let rates = machine.rates().unwrap_or(&Rates::TYPICAL);
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1e3;
    let all = machine.cores() as f64 * seconds;
    // Two hardware threads of a core work in the time of one.
    let busy = busy.clamp(0.0, all);
    let nodes = machine.nodes().len() as f64;
    busy * watts(rates.core_mw)
        + (all - busy) * watts(rates.idle_mw)
        + nodes * seconds * watts(rates.memory_mw)
}
