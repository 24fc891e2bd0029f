//! The drawing of a machine.

use crate::Machine;

pub(crate) fn render(machine: &Machine) -> String {
    format!("{}\n", machine.name())
}
