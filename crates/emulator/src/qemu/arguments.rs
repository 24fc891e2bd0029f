//! The emulator's command line.

use std::fmt::Write;
use std::os::fd::RawFd;
use std::path::Path;

use crate::shape::Shape;

/// How the machine's processors are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// All processors in turn on one thread of the host: steady, and quickest where the host has
    /// few cores.
    OneThread,
    /// A thread of the host for each processor: real races.
    ManyThreads,
    /// By the host's processors.
    Hardware,
}

/// What the command line is made of, besides the shape.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) engine: Engine,
    pub(crate) kernel: &'a Path,
    /// Open files of this process that the emulator inherits.
    pub(crate) initrd: RawFd,
    pub(crate) console: RawFd,
    pub(crate) share: Option<&'a Path>,
    pub(crate) balancing: bool,
    /// Plugin with its arguments.
    pub(crate) plugin: Option<String>,
}

/// What the kernel is told: to be quick and quiet, to end the emulator when it panics, and not to
/// move pages unless asked to.
const KERNEL: &str = "console=ttyS0 quiet loglevel=3 panic=-1 nokaslr tsc=reliable no_timer_check \
    mitigations=off random.trust_cpu=on rcupdate.rcu_expedited=1 8250.nr_uarts=1 audit=0 lsm= \
    cryptomgr.notests nowatchdog noreplace-smp no5lvl rdinit=/init";

/// All that the emulator can do, as a processor whose hardware threads and shared caches the
/// kernel recognises: as the default vendor's, each thread would be a core with its own caches.
const EMULATED_CPU: &str = "max,vendor=GenuineIntel,family=6,model=106,stepping=6";

/// The words after the program's name.
pub(crate) fn arguments(shape: &Shape, parts: &Parts<'_>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut option = |name: &str, value: String| words.extend([format!("-{name}"), value]);
    let (accel, cpu) = match parts.engine {
        Engine::OneThread => ("tcg,thread=single", EMULATED_CPU),
        Engine::ManyThreads => ("tcg,thread=multi", EMULATED_CPU),
        Engine::Hardware => ("kvm", "host"),
    };
    option("accel", accel.to_owned());
    option("cpu", cpu.to_owned());
    option("machine", "q35".to_owned());
    option("display", "none".to_owned());
    option("kernel", parts.kernel.display().to_string());
    option("initrd", format!("/dev/fd/{}", parts.initrd));
    let balancing = if parts.balancing { "enable" } else { "disable" };
    option("append", format!("{KERNEL} numa_balancing={balancing}"));

    // The kernel's messages, kept for when it fails.
    option(
        "chardev",
        format!("file,id=console,path=/dev/fd/{}", parts.console),
    );
    option("serial", "chardev:console".to_owned());
    // The port to the first process is the emulator's standard output.
    option("chardev", "stdio,id=port,signal=off".to_owned());
    option("device", "virtio-serial-pci".to_owned());
    option("device", "virtserialport,chardev=port,nr=1".to_owned());
    let files = |path: &str, tag: &str| {
        // A comma ends a value unless it is written twice.
        let path = path.replace(',', ",,");
        format!("local,path={path},mount_tag={tag},security_model=none,multidevs=remap")
    };
    option("virtfs", files("/", "host") + ",readonly=on");
    if let Some(share) = parts.share {
        option("virtfs", files(&share.display().to_string(), "share"));
    }
    if let Some(plugin) = &parts.plugin {
        option("plugin", plugin.clone());
    }
    processors(shape, &mut option);
    memory(shape, &mut option);
    for flag in ["nodefaults", "no-user-config", "no-reboot"] {
        words.push(format!("-{flag}"));
    }
    words
}

/// A package for each node that has cores; where these have different numbers of them, a package
/// for each core.
fn processors(shape: &Shape, option: &mut impl FnMut(&str, String)) {
    let with_cores: Vec<usize> = shape
        .nodes()
        .iter()
        .map(|node| node.cores)
        .filter(|cores| *cores > 0)
        .collect();
    let same = with_cores.iter().all(|cores| *cores == with_cores[0]);
    let (packages, cores) = if same {
        (with_cores.len(), with_cores[0])
    } else {
        (shape.cores(), 1)
    };
    let threads = shape.threads();
    let cpus = shape.cpus();
    let smp = format!("{cpus},sockets={packages},cores={cores},threads={threads}");
    option("smp", smp);
}

fn memory(shape: &Shape, option: &mut impl FnMut(&str, String)) {
    let nodes = shape.nodes();
    let total: u64 = nodes.iter().map(|node| node.memory_mib).sum();
    option("m", format!("{total}M"));
    let mut cpu = 0;
    for (at, node) in nodes.iter().enumerate() {
        let size = node.memory_mib;
        option(
            "object",
            format!("memory-backend-ram,id=node{at},size={size}M"),
        );
        let mut value = format!("node,nodeid={at},memdev=node{at}");
        let cpus = node.cores * shape.threads();
        if cpus > 0 {
            let _ = write!(value, ",cpus={cpu}-{}", cpu + cpus - 1);
        }
        cpu += cpus;
        option("numa", value);
    }
    for a in 0..nodes.len() {
        for b in (0..nodes.len()).filter(|b| *b != a) {
            let distance = shape.distance(a, b);
            option("numa", format!("dist,src={a},dst={b},val={distance}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use topology::Machine;

    fn line(spec: &str, memory_only: usize, share: Option<&Path>) -> String {
        let machine = Machine::parse(spec).unwrap();
        let shape = Shape::of(&machine, 128, memory_only).unwrap();
        let parts = Parts {
            engine: Engine::OneThread,
            kernel: Path::new("vmlinux"),
            initrd: 3,
            console: 4,
            share,
            balancing: false,
            plugin: None,
        };
        arguments(&shape, &parts).join(" ")
    }

    #[test]
    fn nodes_packages_and_distances() {
        let line = line("opteron-8387", 1, None);
        assert!(
            line.contains("-smp 16,sockets=4,cores=4,threads=1"),
            "{line}"
        );
        assert!(
            line.contains("node,nodeid=3,memdev=node3,cpus=12-15 "),
            "{line}"
        );
        assert!(line.contains("node,nodeid=4,memdev=node4 "), "{line}");
        assert!(line.contains("dist,src=0,dst=3,val=22"), "{line}");
        assert!(line.contains("-m 640M"), "{line}");
        assert!(line.contains("numa_balancing=disable"), "{line}");
    }

    #[test]
    fn a_comma_in_a_path_does_not_end_the_value() {
        let line = line("2x2", 0, Some(Path::new("/tmp/a,b")));
        assert!(line.contains("path=/tmp/a,,b,mount_tag=share"), "{line}");
    }
}
