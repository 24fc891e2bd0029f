//! Programs whose memory traffic is known in advance, to check the access counter with.
//!
//! ```text
//! traffic stream CORE_NODE,... MEMORY_NODE|own|interleaved MIB read|write
//! traffic window CORE_NODE MEMORY_NODE,... MIB FIRST LAST
//! traffic moved CORE_NODE NODE NODE MIB ROUNDS
//! traffic random CORE_NODE TABLE_BYTES ACCESSES
//! ```
//!
//! `stream` has a thread on each node named pass once over MIB MiB of its own, line by line, from
//! empty caches; the caches are emptied again at the end, so that all that was written counts.
//! `window` does so with one thread over memory spread over the nodes page by page, of which the bytes from FIRST up to LAST are a
//! window; then once more over all of it without a window. `moved` passes over memory on the first node, has the kernel move it to the second, passes again and
//! unmaps it, so many times. `random` reads uniformly random lines of a table on its own node, from warm caches. All mark
//! what is to be counted. Nodes are the operating system's numbers.

use std::process::ExitCode;
use std::sync::Barrier;

use emulator::{count, roi};
use memory::pages::{self, Movable, Policy};
use placement::{CpuSet, apply};
use topology::Machine;

const USAGE: &str = "usage: traffic stream NODE,... NODE|own|interleaved MIB read|write\n       \
    traffic window NODE NODE,... MIB FIRST LAST\n       \
    traffic moved NODE NODE NODE MIB ROUNDS\n       \
    traffic random NODE TABLE_BYTES ACCESSES";

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["stream", cores, memory, mib, mode @ ("read" | "write")] => {
            stream(cores, memory, mib, mode == "write")
        }
        ["window", core, nodes, mib, first, last] => window(core, nodes, mib, first, last),
        ["moved", core, from, to, mib, rounds] => moved(core, from, to, mib, rounds),
        ["random", node, table, accesses] => random(node, table, accesses),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("traffic: {error}");
            ExitCode::from(1)
        }
    }
}

fn stream(cores: &str, memory: &str, mib: &str, write: bool) -> Result<(), Failure> {
    let cores: Vec<u32> = cores.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let bytes = mib.parse::<usize>()? << 20;
    let machine = Machine::live()?;
    let all: Vec<u32> = machine.nodes().iter().map(|node| node.os_index).collect();
    let barrier = Barrier::new(cores.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = cores
            .iter()
            .enumerate()
            .map(|(at, core)| {
                let (cores, barrier, machine, all) = (&cores, &barrier, &machine, &all);
                scope.spawn(move || -> Result<(), Failure> {
                    // Threads of one node take its cores in turn.
                    let nth = cores[..at].iter().filter(|other| *other == core).count();
                    bind_thread(machine, *core, nth)?;
                    let mut lines = match memory {
                        "own" => Lines::new(bytes, &[*core])?,
                        "interleaved" => Lines::new(bytes, all)?,
                        node => Lines::new(bytes, &[node.parse()?])?,
                    };
                    if barrier.wait().is_leader() {
                        roi::flush();
                        roi::start();
                    }
                    barrier.wait();
                    let sum = lines.pass(write);
                    if barrier.wait().is_leader() {
                        roi::flush();
                        roi::stop();
                    }
                    std::hint::black_box(sum);
                    Ok(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

fn window(core: &str, nodes: &str, mib: &str, first: &str, last: &str) -> Result<(), Failure> {
    let nodes: Vec<u32> = nodes.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let bytes = mib.parse::<usize>()? << 20;
    let (first, last) = (first.parse::<usize>()?, last.parse::<usize>()?);
    bind_thread(&Machine::live()?, core.parse()?, 0)?;
    let mut lines = Lines::new(bytes, &nodes)?;
    for named in [true, false] {
        if named {
            let start = lines.0.as_ptr().cast::<u8>();
            if first >= last || last > bytes {
                return Err("no such window".into());
            }
            // SAFETY: both ends are in the memory of `lines`.
            unsafe { roi::window(start.add(first), last - first) };
        }
        roi::flush();
        roi::start();
        let sum = lines.pass(false);
        roi::stop();
        std::hint::black_box(sum);
    }
    Ok(())
}

fn moved(core: &str, from: &str, to: &str, mib: &str, rounds: &str) -> Result<(), Failure> {
    let (from, to) = (from.parse()?, to.parse()?);
    let bytes = mib.parse::<usize>()? << 20;
    bind_thread(&Machine::live()?, core.parse()?, 0)?;
    for round in 0..rounds.parse::<usize>()? {
        let mut lines = Lines::new(bytes, &[from])?;
        roi::flush();
        roi::start();
        let first = lines.pass(false);
        roi::stop();
        lines.move_to(to)?;
        roi::flush();
        roi::start();
        let second = lines.pass(false);
        roi::stop();
        if first != second {
            return Err(format!("round {round}: the memory has changed").into());
        }
        lines.unmap();
    }
    Ok(())
}

fn random(node: &str, table: &str, accesses: &str) -> Result<(), Failure> {
    let node = node.parse()?;
    let accesses: u64 = accesses.parse()?;
    let lines = Lines::new(table.parse()?, &[node])?;
    bind_thread(&Machine::live()?, node, 0)?;
    // Until the caches are as full of it as they get.
    let state = lines.reads(8 * lines.count() as u64, 1);
    roi::start();
    let state = lines.reads(accesses, state);
    roi::stop();
    std::hint::black_box(state);
    Ok(())
}

/// Binds the calling thread to the nth core of a node.
fn bind_thread(machine: &Machine, os_node: u32, nth: usize) -> Result<(), Failure> {
    let node = machine.nodes().iter().find(|node| node.os_index == os_node);
    let node = node.ok_or_else(|| format!("there is no node {os_node}"))?;
    let core = node.cores.get(nth % node.cores.len().max(1));
    let core = core.ok_or_else(|| format!("node {os_node} has no cores"))?;
    apply::bind(0, &CpuSet::from(vec![core.cpus[0]]))?;
    Ok(())
}

/// One word of each line is used.
const WORDS: usize = count::LINE_BYTES as usize / size_of::<u64>();

/// Lines of memory on given nodes, all present; unmapped by [`Lines::unmap`] or at the end of the
/// program.
struct Lines(&'static mut [u64]);

impl Lines {
    /// Memory spread page by page over `nodes`.
    fn new(bytes: usize, nodes: &[u32]) -> Result<Lines, Failure> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().into());
        }
        // `Interleave` goes on to other nodes where one has no page to give at the moment.
        let policy = match nodes {
            [_] => Policy::Bind,
            _ => Policy::Interleave,
        };
        pages::set_policy(start.addr(), bytes, policy, nodes)?;
        // SAFETY: the mapping is ours. Without this advice it may be interleaved by huge pages; where
        // the kernel has none it is refused, which is as well.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
        // SAFETY: the mapping is `bytes` long, zeroed, aligned to a page, ours alone, and stays.
        let words = unsafe { std::slice::from_raw_parts_mut(start.cast::<u64>(), bytes / 8) };
        words.fill(1);
        let lines = Lines(words);
        lines.check_spread(nodes)?;
        Ok(lines)
    }

    /// That each node has its part of the pages: otherwise what is counted would not be what is expected.
    fn check_spread(&self, nodes: &[u32]) -> Result<(), Failure> {
        let pages = self.pages();
        let mut places = vec![0; pages.len()];
        pages::locate(0, &pages, &mut places)?;
        for node in nodes {
            let own = places.iter().filter(|at| **at == node.cast_signed());
            let (own, wanted) = (own.count(), pages.len() / nodes.len());
            if own.abs_diff(wanted) > 1 {
                return Err(
                    format!("node {node} gave {own} pages, {wanted} were asked for").into(),
                );
            }
        }
        Ok(())
    }

    /// The addresses of its pages.
    fn pages(&self) -> Vec<usize> {
        const PAGE_WORDS: usize = 4096 / size_of::<u64>();
        let pages = self.0.chunks(PAGE_WORDS);
        pages.map(|page| page.as_ptr().addr()).collect()
    }

    fn count(&self) -> usize {
        self.0.len() / WORDS
    }

    /// Touches each line once, in order.
    fn pass(&mut self, write: bool) -> u64 {
        let mut sum = 0;
        for line in self.0.chunks_exact_mut(WORDS) {
            let word = &raw mut line[0];
            // SAFETY: a word of a slice that is ours alone.
            unsafe {
                if write {
                    word.write_volatile(sum);
                } else {
                    sum += word.read_volatile();
                }
            }
        }
        sum
    }

    /// Has the kernel move all of it to a node.
    fn move_to(&mut self, node: u32) -> Result<(), Failure> {
        let pages = self.pages();
        let nodes = vec![node.cast_signed(); pages.len()];
        let status = pages::relocate(0, &pages, &nodes, Movable::Private)?;
        match status.iter().find(|at| **at != node.cast_signed()) {
            Some(at) => Err(format!("a page was not moved to node {node}: {at}").into()),
            None => Ok(()),
        }
    }

    fn unmap(self) {
        // SAFETY: the whole mapping, to which nothing but `self` refers.
        unsafe { libc::munmap(self.0.as_mut_ptr().cast(), size_of_val(self.0)) };
    }

    /// Reads random lines; `state` is the generator's, and its next value is returned.
    fn reads(&self, accesses: u64, mut state: u64) -> u64 {
        let count = self.count() as u64;
        let mut sum = 0u64;
        for _ in 0..accesses {
            // A linear congruential generator (Knuth's constants), of which the high bits count.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let line = ((state >> 32) * count) >> 32;
            let word = &raw const self.0[line as usize * WORDS];
            // SAFETY: a word of our slice.
            sum = sum.wrapping_add(unsafe { word.read_volatile() });
        }
        std::hint::black_box(sum);
        state
    }
}
