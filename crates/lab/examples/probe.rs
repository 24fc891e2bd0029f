//! Programs with known threads and known memory, for the tests that look at other processes.
//!
//! ```text
//! probe spin THREADS SECONDS
//! probe hold NODE,... MIB SECONDS
//! ```
//!
//! `spin` starts threads one after the other that compute for so long, and
//! prints for each a line with its number, the cpu and the node it ended on. `hold` keeps memory on the
//! first node, and has a child of its own do so on the others; it prints `ready` when all is there.
//! Nodes are the operating system's numbers.

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use memory::pages::{self, Policy};

const USAGE: &str = "usage: probe spin THREADS SECONDS\n       probe hold NODE,... MIB SECONDS";

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["spin", threads, seconds] => spin(threads, seconds),
        ["hold", nodes, mib, seconds] => hold(nodes, mib, seconds),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("probe: {error}");
            ExitCode::from(1)
        }
    }
}

fn spin(threads: &str, seconds: &str) -> Result<(), Failure> {
    let time = Duration::try_from_secs_f64(seconds.parse()?)?;
    let until = Instant::now() + time;
    let threads: Vec<_> = (0..threads.parse::<usize>()?)
        .map(|_| {
            std::thread::spawn(move || {
                while Instant::now() < until {
                    std::hint::black_box((0..10_000u64).sum::<u64>());
                }
                here()
            })
        })
        .collect();
    let mut out = std::io::stdout().lock();
    for (at, thread) in threads.into_iter().enumerate() {
        let (cpu, node) = thread.join().map_err(|_| "a thread panicked")?;
        writeln!(out, "{at} {cpu} {node}")?;
    }
    Ok(())
}

fn hold(nodes: &str, mib: &str, seconds: &str) -> Result<(), Failure> {
    let time = Duration::try_from_secs_f64(seconds.parse()?)?;
    let (node, others) = nodes.split_once(',').unwrap_or((nodes, ""));
    let words = on_node(mib.parse::<usize>()? << 20, node.parse()?)?;
    if !others.is_empty() {
        let own = std::env::current_exe()?;
        let mut child = Command::new(own)
            .args(["hold", others, mib, seconds])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut ready = [0; 6];
        child
            .stdout
            .take()
            .ok_or("no pipe")?
            .read_exact(&mut ready)?;
    }
    writeln!(std::io::stdout(), "ready")?;
    std::thread::sleep(time);
    std::hint::black_box(words);
    Ok(())
}

/// Memory on a node, all of it present, in small pages; unmapped at the end of the program.
fn on_node(bytes: usize, node: u32) -> Result<&'static [u64], Failure> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error().into());
    }
    pages::set_policy(start.addr(), bytes, Policy::Interleave, &[node])?;
    // SAFETY: the mapping is ours. Where the kernel has no huge pages the advice is refused, which is as well.
    unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
    // SAFETY: the mapping is `bytes` long, zeroed, aligned to a page, ours alone, and stays.
    let words = unsafe { std::slice::from_raw_parts_mut(start.cast::<u64>(), bytes / 8) };
    words.fill(1);
    Ok(words)
}

/// The cpu and the node that the calling thread is on.
fn here() -> (u32, u32) {
    let (mut cpu, mut node) = (0u32, 0u32);
    let none = std::ptr::null::<u8>();
    // SAFETY: the kernel writes the two numbers, which are ours. It cannot fail.
    unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, none) };
    (cpu, node)
}
