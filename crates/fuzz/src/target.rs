//! A target: drawing its cases, and judging how they ended.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::child::{self, Progress};
use crate::draw::Draw;

/// Bytes of memory that the process of a target may have.
pub const LIMIT: u64 = 256 << 20;
/// How long one case may take; much more than any does, on a machine that does other things as well.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Names the progress file, in the process of the cases.
const CHILD: &str = "ATOLL_FUZZ_CHILD";
const SEED: &str = "ATOLL_FUZZ_SEED";
const CASE: &str = "ATOLL_FUZZ_CASE";
const TIMES: &str = "ATOLL_FUZZ_TIMES";
const HERE: &str = "ATOLL_FUZZ_HERE";
/// Before the number of the slowest case, whose milliseconds stand among the counts.
const SLOWEST: &str = "ms, the slowest case: ";
/// Cases are the same at each run unless a seed is given, so that a change is judged by itself.
const USUAL_SEED: u64 = 20_261_121;
/// Bytes of what the process printed that are shown.
const SHOWN: usize = 6000;

/// Something that decodes, and how many cases it is usually given.
#[derive(Debug, Clone)]
pub struct Target {
    test: &'static str,
    cases: u64,
    expected: &'static [&'static str],
    patience: Duration,
}

impl Target {
    /// A target of `cases` cases in the test that this program knows as `test`, with its modules.
    pub fn new(test: &'static str, cases: u64) -> Target {
        Target {
            test,
            cases,
            expected: &[],
            patience: PATIENCE,
        }
    }

    /// Words that must each be the outcome of a case at least.
    #[must_use]
    pub fn expects(self, expected: &'static [&'static str]) -> Target {
        Target { expected, ..self }
    }

    /// Runs the cases in a process of its own, and prints how many ended with which word.
    ///
    /// # Panics
    /// If a case panics, dies, or takes too long; if a word that was expected never came; if this program has no
    /// such test.
    pub fn run(self, mut case: impl FnMut(&mut Draw) -> &'static str) {
        if let Some(path) = env::var_os(CHILD) {
            let progress = Progress::open(Path::new(&path)).expect("the progress file opens");
            let words = self.draw(&mut case, |number| {
                progress
                    .begins(number)
                    .expect("the progress file can be written");
            });
            progress
                .ends(&encode(&words))
                .expect("the progress file can be written");
        } else if env::var_os(HERE).is_some() {
            let words = self.draw(&mut case, |_| ());
            eprintln!(
                "{}: the limit of memory was NOT CHECKED ({HERE} is set)",
                self.test
            );
            self.judge(&words);
        } else {
            match self.run_apart() {
                Ok(words) => self.judge(&words),
                Err(what) => panic!("{}: {what}", self.test),
            }
        }
    }

    /// The words that all cases ended with.
    fn draw(
        &self,
        case: &mut impl FnMut(&mut Draw) -> &'static str,
        begins: impl Fn(u64),
    ) -> BTreeMap<String, u64> {
        let cases = match number(CASE) {
            Some(one) => one..one + 1,
            None => 0..self.cases * number(TIMES).unwrap_or(1),
        };
        let seed = number(SEED).unwrap_or(USUAL_SEED);
        let mut words = BTreeMap::new();
        let mut slowest = (Duration::ZERO, 0);
        for number in cases {
            begins(number);
            let begun = Instant::now();
            let word = case(&mut Draw::new(mixed(seed, number)));
            slowest = slowest.max((begun.elapsed(), number));
            *words.entry(word.to_owned()).or_insert(0) += 1;
        }
        let (time, number) = slowest;
        words.insert(format!("{SLOWEST}{number}"), time.as_millis() as u64);
        words
    }

    /// Runs the cases in a process of its own; what went wrong, and with which case.
    fn run_apart(&self) -> Result<BTreeMap<String, u64>, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (said, printed) = (folder.path().join("progress"), folder.path().join("output"));
        let run = || {
            let mut progress = Progress::create(&said)?;
            let mut child =
                child::start(self.test, LIMIT, (CHILD, &said), File::create(&printed)?)?;
            let status = child::wait(&mut child, &progress, self.patience)?;
            Ok::<_, std::io::Error>((status, progress.case()?, progress.words()?))
        };
        let (status, case, words) = run().map_err(|error| error.to_string())?;
        let output = std::fs::read(&printed).unwrap_or_default();
        let output =
            String::from_utf8_lossy(&output[output.len().saturating_sub(SHOWN)..]).into_owned();
        match (status, case) {
            (Some(status), Some(_)) if status.success() => Ok(decode(&words)),
            (_, None) => Err(format!(
                "it has no test of that name, or no case of it began:\n{output}"
            )),
            (status, Some(case)) => Err(self.failure(status, case, &output)),
        }
    }

    fn failure(&self, status: Option<ExitStatus>, case: u64, output: &str) -> String {
        let how = match status {
            None => format!("took longer than {} s", self.patience.as_secs()),
            Some(status) => format!("ended with {status}; it may have {} MiB", LIMIT >> 20),
        };
        let seed = number(SEED).unwrap_or(USUAL_SEED);
        format!(
            "case {case} of seed {seed} {how}. Repeat it with {SEED}={seed} {CASE}={case} cargo test {}\n{output}",
            self.test
        )
    }

    /// Prints the words, and fails if one is missing.
    fn judge(&self, words: &BTreeMap<String, u64>) {
        eprintln!("{}: {words:?}", self.test);
        if number(CASE).is_some() {
            return;
        }
        for expected in self.expected {
            assert!(
                words.contains_key(*expected),
                "{}: no case ended with '{expected}', so the mutations do not go where they should: {words:?}",
                self.test
            );
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let value = env::var(variable).ok()?;
    match value.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{variable} is '{value}': give a whole number"),
    }
}

/// The seed of a case (SplitMix64).
fn mixed(seed: u64, case: u64) -> u64 {
    let mut x = seed.wrapping_add(case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn encode(words: &BTreeMap<String, u64>) -> String {
    words
        .iter()
        .map(|(word, count)| format!("{count} {word}\n"))
        .collect()
}

fn decode(words: &str) -> BTreeMap<String, u64> {
    let word = |line: &str| {
        let (count, word) = line.split_once(' ')?;
        Some((word.to_owned(), count.parse().ok()?))
    };
    words.lines().filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a target whose cases go wrong.
    fn failure(target: Target) -> String {
        target.run_apart().unwrap_err()
    }

    /// Runs as the process of the cases, and does nothing as a test of its own.
    fn planted(target: Target, case: impl FnMut(&mut Draw) -> &'static str) {
        if env::var_os(CHILD).is_some() {
            target.run(case);
        }
    }

    const PANICS: &str = "target::tests::one_that_panics";
    const GREEDY: &str = "target::tests::one_that_takes_memory";
    const HANGS: &str = "target::tests::one_that_does_not_end";
    const FINE: &str = "target::tests::one_that_is_fine";

    #[test]
    fn one_that_panics() {
        planted(Target::new(PANICS, 1000), |draw| {
            assert!(draw.below(100) != 7, "seven");
            "other"
        });
    }

    #[test]
    fn one_that_takes_memory() {
        planted(Target::new(GREEDY, 1000), |draw| {
            let bytes = if draw.one_in(100) {
                LIMIT as usize
            } else {
                1 << 20
            };
            std::hint::black_box(Vec::<u8>::with_capacity(bytes));
            "taken"
        });
    }

    #[test]
    fn one_that_does_not_end() {
        planted(Target::new(HANGS, 1000), |draw| {
            while draw.one_in(100) {
                std::thread::sleep(PATIENCE);
            }
            "ended"
        });
    }

    #[test]
    fn one_that_is_fine() {
        let target = Target::new(FINE, 500).expects(&["small", "large"]);
        target.run(|draw| if draw.below(10) < 5 { "small" } else { "large" });
    }

    #[test]
    fn what_goes_wrong_is_found_and_can_be_repeated() {
        let text = failure(Target::new(PANICS, 1000));
        assert!(
            text.contains("seven") && text.contains("ATOLL_FUZZ_CASE="),
            "{text}"
        );
        let text = failure(Target::new(GREEDY, 1000));
        assert!(
            text.contains("memory allocation of") && text.contains("256 MiB"),
            "{text}"
        );
        let mut slow = Target::new(HANGS, 1000);
        slow.patience = Duration::from_secs(2);
        let text = failure(slow);
        assert!(text.contains("took longer than 2 s"), "{text}");
        let text = failure(Target::new("target::tests::nothing_of_this_name", 1));
        assert!(text.contains("no test of that name"), "{text}");
    }

    #[test]
    fn every_case_is_counted() {
        let words = Target::new(FINE, 500).run_apart().unwrap();
        assert_eq!(
            words.values().sum::<u64>(),
            500 * number(TIMES).unwrap_or(1)
        );
        let missing = Target::new(FINE, 500).expects(&["huge"]);
        assert!(std::panic::catch_unwind(|| missing.judge(&words)).is_err());
    }
}
