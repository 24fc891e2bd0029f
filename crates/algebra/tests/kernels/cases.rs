//! Property tests whose runner is compiled once.
//!
//! `proptest!` compiles the whole runner, with shrinking and messages, for each test and its strategies. Behind [`run`]
//! every strategy gives a [`Case`], so that only the strategy and the body are compiled for each test: this program took
//! 63 CPU seconds to build before, and 40 since.

use std::any::Any;
use std::fmt::{self, Debug};

use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};

/// The inputs of a test, whatever their types are.
trait Inputs: Debug {
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Debug + 'static> Inputs for T {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// One set of inputs of a test, with their names for messages.
struct Case {
    names: &'static str,
    inputs: Box<dyn Inputs>,
}

impl Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {:?}", self.names, self.inputs)
    }
}

/// A test as its source names it.
pub struct Test {
    /// With its module.
    pub name: &'static str,
    /// The source file, beside which failures are kept.
    pub file: &'static str,
    /// The names of the inputs.
    pub inputs: &'static str,
    /// How many cases are tried; `None` for the usual number.
    pub cases: Option<u32>,
}

/// Runs `body` on inputs of `strategy`.
///
/// # Panics
/// With the smallest inputs found for which the body fails.
pub fn check<V: Debug + 'static>(
    test: &Test,
    strategy: impl Strategy<Value = V> + 'static,
    body: impl Fn(V) -> TestCaseResult,
) {
    let names = test.inputs;
    let cases = strategy.prop_map(move |inputs| Case {
        names,
        inputs: Box::new(inputs),
    });
    run(test, &cases.boxed(), &|inputs| {
        body(*inputs.downcast().expect("the strategy's own inputs"))
    });
}

fn run(test: &Test, cases: &BoxedStrategy<Case>, body: &dyn Fn(Box<dyn Any>) -> TestCaseResult) {
    let mut config = ProptestConfig {
        test_name: Some(test.name),
        source_file: Some(test.file),
        ..ProptestConfig::default()
    };
    config.cases = test.cases.unwrap_or(config.cases);
    let mut runner = TestRunner::new(config);
    if let Err(error) = runner.run(cases, |case| body(case.inputs.into_any())) {
        panic!("{error}\n{runner}");
    }
}

/// Tests as `proptest!` takes them. `cases: 64;` before the first sets how many cases are tried.
macro_rules! properties {
    (cases: $cases:expr; $($tests:tt)+) => {
        $crate::cases::properties! { @ Some($cases), $($tests)+ }
    };
    (@ $cases:expr, $(
        $(#[$meta:meta])*
        fn $name:ident($($input:pat in $strategy:expr),+ $(,)?) $body:block
    )+) => {$(
        $(#[$meta])*
        fn $name() {
            let test = $crate::cases::Test {
                name: concat!(module_path!(), "::", stringify!($name)),
                file: file!(),
                inputs: stringify!(($($input),+)),
                cases: $cases,
            };
            let strategy = ($($strategy.boxed(),)+);
            $crate::cases::check(&test, strategy, |($($input,)+)| {
                let () = $body;
                Ok(())
            });
        }
    )+};
    ($($tests:tt)+) => {
        $crate::cases::properties! { @ None, $($tests)+ }
    };
}
pub(crate) use properties;
