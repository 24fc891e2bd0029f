//! The NUMA nodes of the machine, and the node of each cpu.

use std::collections::BTreeSet;

use topology::Machine;

/// The nodes of a machine by the operating system's numbers, which is how the kernel's files
/// and calls name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    numbers: Vec<u32>,
    /// By cpu.
    of_cpu: Vec<Option<u32>>,
}

impl Nodes {
    /// The nodes of this machine.
    pub fn new(machine: &Machine) -> Nodes {
        let mut of_cpu = Vec::new();
        for node in machine.nodes() {
            for &cpu in node.cores.iter().flat_map(|core| &core.cpus) {
                let cpu = cpu as usize;
                if of_cpu.len() <= cpu {
                    of_cpu.resize(cpu + 1, None);
                }
                of_cpu[cpu] = Some(node.os_index);
            }
        }
        let numbers: BTreeSet<u32> = machine.nodes().iter().map(|node| node.os_index).collect();
        Nodes {
            numbers: numbers.into_iter().collect(),
            of_cpu,
        }
    }

    /// Their numbers, ascending; never empty.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// The cpus that have a node, ascending.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        let with_node = |(cpu, node): (usize, &Option<u32>)| node.map(|_| cpu as u32);
        self.of_cpu.iter().enumerate().filter_map(with_node)
    }

    /// The node of a cpu; `None` for one that this process may not use, which is not part of
    /// what [`Machine::live`] shows.
    pub fn of_cpu(&self, cpu: u32) -> Option<u32> {
        self.of_cpu.get(cpu as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_a_machine() {
        let nodes = Nodes::new(&Machine::parse("2x3").unwrap());
        assert_eq!(nodes.numbers(), [0, 1]);
        let of: Vec<_> = (0..7).map(|cpu| nodes.of_cpu(cpu)).collect();
        assert_eq!(of[..3], [Some(0); 3]);
        assert_eq!(of[3..6], [Some(1); 3]);
        assert_eq!(of[6], None);
        assert_eq!(nodes.cpus().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }
}
