//! Where the memory of a process lies.

use counters::{Depth, Holds, Look, Looker, Process, ProcessMemory, Sensor};

use crate::child::{ARENA, STACK, Subject, nodes, real};

/// On a machine of several nodes each arena is on its own; on one node, on that.
#[test]
fn pages_are_where_they_were_bound() {
    let subject = Subject::start("memory");
    let process = Process::open(&real(), subject.pid()).unwrap();
    let nodes = nodes();
    let walked = Looker::new(&real(), &nodes)
        .depth(Depth::Walk)
        .look(&process)
        .unwrap();
    assert_eq!(walked.look, Look::Walked);
    assert_eq!(walked.nodes, nodes.numbers());
    let arenas = ARENA as u64;
    for (node, bytes) in walked.nodes.iter().zip(walked.bytes()) {
        assert!(bytes >= arenas, "{bytes} on node {node}");
        if nodes.numbers().len() > 1 {
            // The rest of a small process is a few MiB.
            assert!(
                *node == walked.nodes[0] || bytes < arenas + (8 << 20),
                "{bytes}"
            );
        }
    }
    let (total, counted) = (walked.total(), walked.counted);
    assert!(
        total.abs_diff(counted) < total / 10,
        "{total} found, the kernel counts {counted}"
    );

    let sampled = Looker::new(&real(), &nodes).depth(Depth::Sample(8192));
    let sampled = match sampled.look(&process) {
        Ok(sampled) => sampled,
        Err(error) => {
            assert!(error.to_string().contains("move_pages"), "{error}");
            return notrun::not_run(error);
        }
    };
    assert!(matches!(sampled.look, Look::Sampled { addresses } if addresses < 12_000));
    for ((sample, error), exact) in sampled
        .bytes()
        .iter()
        .zip(&sampled.error)
        .zip(walked.bytes())
    {
        let near = (exact / 10).max(4 * error);
        assert!(
            sample.abs_diff(exact) <= near,
            "{sample} +- {error} for {exact}"
        );
    }
    subject.end();
}

#[test]
fn each_stack_is_told_from_the_rest() {
    for role in ["stacks", "running stacks"] {
        let subject = Subject::start(role);
        let process = Process::open(&real(), subject.pid()).unwrap();
        let looker = Looker::new(&real(), &nodes()).stacks().huge();
        let residency = looker.look(&process).unwrap();
        let name = |thread| Some(process.thread(thread).ok()??.name);
        let groups = residency.groups(name);
        for worker in ["worker-0", "worker-1", "worker-2"] {
            let group = groups.iter().find(|group| group.name.contains(worker));
            let group = group.unwrap_or_else(|| panic!("{role}: {worker} in {groups:#?}"));
            assert_eq!((group.kind, group.threads.len()), ("stack", 1));
            assert!(group.total() >= STACK as u64, "{role}: {group:?}");
        }
        assert!(
            groups
                .iter()
                .any(|group| group.kind == "heap" || group.kind == "anonymous")
        );
        assert!(
            groups
                .iter()
                .any(|group| group.name == "stack of the main thread")
        );
        let program = std::env::current_exe().unwrap();
        assert!(
            groups
                .iter()
                .any(|group| group.name == program.to_str().unwrap())
        );
        let sum: u64 = groups.iter().map(|group| group.total()).sum();
        assert_eq!(sum, residency.total());
        assert!(
            residency
                .huge()
                .is_some_and(|huge| huge <= residency.total())
        );
        assert!(
            groups
                .windows(2)
                .all(|pair| pair[0].total() >= pair[1].total())
        );
        subject.end();
    }
}

#[test]
fn our_own_arena_is_found_with_its_policy() {
    let arena = memory::Arena::new(4 << 20, Some(0)).unwrap();
    // SAFETY: the whole arena is ours alone.
    unsafe { std::ptr::write_bytes(arena.as_ptr(), 1, 4 << 20) };
    let process = Process::open(&real(), std::process::id()).unwrap();
    let residency = Looker::new(&real(), &nodes())
        .depth(Depth::Walk)
        .look(&process)
        .unwrap();
    let address = arena.as_ptr().addr() as u64;
    let region = residency
        .regions
        .iter()
        .find(|region| region.start <= address && region.end.is_some_and(|end| address < end));
    let region = region.expect("a mapping with the arena");
    assert!(
        region.policy.is_some() && region.total() >= 4 << 20,
        "{region:?}"
    );
    assert!(
        matches!(region.holds, Holds::Anonymous(_) | Holds::Shared(_)),
        "{region:?}"
    );
}

#[test]
fn programs_are_no_data() {
    let arena = memory::Arena::new(4 << 20, None).unwrap();
    // SAFETY: the whole arena is ours alone.
    unsafe { std::ptr::write_bytes(arena.as_ptr(), 1, 4 << 20) };
    let process = Process::open(&real(), std::process::id()).unwrap();
    for depth in [Depth::Walk, Depth::Sample(4096)] {
        let residency = Looker::new(&real(), &nodes())
            .depth(depth)
            .look(&process)
            .unwrap();
        let of = |address: usize| {
            let address = address as u64;
            let mut regions = residency.regions.iter();
            regions.find(|region| {
                region.start <= address && region.end.is_some_and(|end| address < end)
            })
        };
        let code = of(programs_are_no_data as fn() as usize).expect("our code");
        assert!(code.program, "{code:?}");
        let data = of(arena.as_ptr().addr()).expect("our arena");
        assert!(!data.program, "{data:?}");
        let sum = |bytes: Vec<u64>| bytes.iter().sum::<u64>();
        assert!(sum(residency.data()) >= data.total());
        assert!(sum(residency.data()) <= sum(residency.bytes()) - code.total());
    }
}

/// However often it is asked, it does not look more than a fiftieth of the time.
#[test]
fn looking_is_bounded() {
    let subject = Subject::start("memory");
    let process = Process::open(&real(), subject.pid()).unwrap();
    let mut memory = ProcessMemory::new(Looker::new(&real(), &nodes()), process);
    let (_, age) = memory.look().unwrap();
    assert!(age.is_zero());
    let first = memory.read();
    assert!(
        first.iter().all(|reading| !reading.age.is_zero()),
        "the second look is the first"
    );
    let (sum, parts): (Vec<_>, Vec<_>) = first
        .iter()
        .partition(|reading| matches!(reading.scope, counters::Scope::Process(_)));
    let total: f64 = parts
        .iter()
        .filter_map(|reading| reading.value.number())
        .sum();
    assert_eq!(sum[0].value.number(), Some(total));
    subject.end();
}

/// Little memory in a mapping that is nearly empty, as allocators reserve them.
#[test]
fn what_is_rare_is_found() {
    const RESERVED: usize = 8 << 30;
    const FILLED: usize = 64 << 20;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, which is nobody else's.
    let reserved = unsafe { libc::mmap(std::ptr::null_mut(), RESERVED, rights, flags, -1, 0) };
    assert_ne!(reserved, libc::MAP_FAILED);
    // SAFETY: within the mapping, and nobody else knows it.
    unsafe { std::ptr::write_bytes(reserved.cast::<u8>().add(RESERVED / 3), 1, FILLED) };
    let process = Process::open(&real(), std::process::id()).unwrap();
    let look = |depth| {
        let looker = Looker::new(&real(), &nodes()).depth(depth);
        looker.look(&process).unwrap()
    };
    let found = |residency: &counters::Residency| {
        let address = reserved.addr() as u64;
        let mut regions = residency.regions.iter();
        let region = regions
            .find(|region| region.start <= address && region.end.is_some_and(|end| address < end));
        region.map_or(0, |region| region.total())
    };
    let walked = look(Depth::UpTo {
        walked: 16 << 30,
        addresses: 0,
    });
    assert_eq!(walked.look, Look::Walked);
    assert!(found(&walked) >= FILLED as u64);
    let sampled = look(Depth::UpTo {
        walked: 0,
        addresses: 64,
    });
    // What else the test program has in memory is less than that.
    let (sampled, exact) = (found(&sampled), found(&walked));
    assert!(
        (exact / 2..exact * 2).contains(&sampled),
        "{sampled} of {exact}"
    );
    // SAFETY: the mapping made above, which nobody uses any more.
    unsafe { libc::munmap(reserved, RESERVED) };
}
