//! Panics of the server's threads, which no client sees: its connection closes, as it does for much else.

use std::sync::Once;

use parking_lot::Mutex;

/// What begins the names of threads of the server, and of the workers.
const OWN: &str = "atoll";

/// What the test of this is called by the thread that panics for it.
const FOR_THE_TEST: &str = "atoll-panics-for-a-test";

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From here on panics of the server's threads are remembered.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            // Arrow's reader of messages panics at hostile ones, which the server catches and tells its client.
            let is_arrows = panic
                .location()
                .is_some_and(|at| at.file().contains("/arrow-"));
            if name.starts_with(OWN) && !is_arrows {
                SEEN.lock().push(format!("{name}: {panic}"));
            }
            before(panic);
        }));
    });
}

/// Those that there were so far.
fn seen() -> Vec<String> {
    let all = SEEN.lock();
    let own = all.iter().filter(|text| !text.starts_with(FOR_THE_TEST));
    own.cloned().collect()
}

/// That there were none.
pub fn none() {
    let seen = seen();
    assert!(seen.is_empty(), "threads of the server panicked: {seen:#?}");
}

#[test]
fn a_panic_of_a_thread_of_the_server_is_seen() {
    watch();
    let thread = std::thread::Builder::new().name(FOR_THE_TEST.into());
    let panicked = thread.spawn(|| panic!("for a test")).unwrap().join();
    assert!(panicked.is_err());
    let all = SEEN.lock();
    assert!(all.iter().any(|text| text.starts_with(FOR_THE_TEST)));
}
