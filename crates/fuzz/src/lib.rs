//! Hostile bytes for whatever decodes what lies on disk; for tests.
//!
//! A [`Target`] draws cases from a seed and gives each to a function of the test, which mutates a valid structure,
//! makes its checksums anew so that decoding goes deep, decodes it, and says in a word what came of it. The cases run
//! in a process of their own that may have [`LIMIT`] bytes of memory (`RLIMIT_DATA`: the heap, C libraries included,
//! stacks, and what is mapped to be written to). The test fails, and says how to repeat the case, if one
//!
//! * panics, or the process dies: also of an allocation that is refused,
//! * takes longer than [`PATIENCE`],
//! * and also if a word that was [expected](Target::expects) never came: mutations that are all refused at the
//!   first check prove little.
//!
//! It is no search led by coverage: `cargo-fuzz` needs a nightly toolchain for that. What is drawn is [`Draw`]'s
//! knowledge of what breaks decoders, and the structure that the test knows of.
//!
//! ```no_run
//! // As the body of a test that is called `tests::any_pair`.
//! fuzz::Target::new("tests::any_pair", 1000).expects(&["a pair", "too short"]).run(|draw| {
//!     let mut bytes = vec![1, 2];
//!     draw.mutate(&mut bytes);
//!     match bytes.first_chunk::<2>() {
//!         Some([_, _]) => "a pair",
//!         None => "too short",
//!     }
//! });
//! ```
//!
//! | variable | says |
//! |---|---|
//! | `ATOLL_FUZZ_TIMES` | how many times the usual number of cases is drawn |
//! | `ATOLL_FUZZ_SEED` | what they are drawn from; the same at each run if it is not set |
//! | `ATOLL_FUZZ_CASE` | that one case alone |
//! | `ATOLL_FUZZ_HERE` | if set, no process of its own and no limit: for a debugger, or under an emulator that runs no second program |

mod child;
mod draw;
mod target;

pub use draw::Draw;
pub use target::{LIMIT, PATIENCE, Target};
