//! Which instructions kernels use, and how one plain loop becomes a version for each.

use std::cell::Cell;

/// A set of instructions that kernels are compiled for, from narrow to wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the target has (SSE2 on x86-64, NEON on AArch64).
    Baseline,
    /// AVX2 with BMI1, BMI2 and POPCNT.
    Avx2,
    /// AVX-512 F, BW, DQ and VL, and what [`Level::Avx2`] has.
    Avx512,
}

thread_local! {
    /// Invariant: never above what [`detected`] says.
    static CHOSEN: Cell<Option<Level>> = const { Cell::new(None) };
}

/// The level that kernels of this thread use: the widest that the processor has, unless
/// [`with_level`] lowered it.
#[inline]
pub fn level() -> Level {
    CHOSEN.get().unwrap_or_else(|| {
        let level = detected();
        CHOSEN.set(Some(level));
        level
    })
}

/// Runs `work` with the kernels of this thread at `limit`, or at what the processor has if that is
/// less: for tests and measurements. Threads that `work` starts are not limited.
pub fn with_level<R>(limit: Level, work: impl FnOnce() -> R) -> R {
    /// Puts the level back also when `work` panics.
    struct Restore(Option<Level>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CHOSEN.set(self.0);
        }
    }
    let _restore = Restore(CHOSEN.get());
    CHOSEN.set(Some(limit.min(detected())));
    work()
}

/// The levels that this processor has, from narrow to wide.
pub fn levels() -> impl Iterator<Item = Level> {
    let widest = detected();
    [Level::Baseline, Level::Avx2, Level::Avx512]
        .into_iter()
        .filter(move |l| *l <= widest)
}

/// The widest level that the processor has.
fn detected() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (avx2, avx512) {
            (true, true) => return Level::Avx512,
            (true, false) => return Level::Avx2,
            _ => {}
        }
    }
    Level::Baseline
}

/// A loop that [`vectorised`] runs.
pub trait Loop {
    /// What it comes to.
    type Output;
    /// Runs it. It must be `#[inline(always)]`, and so must what it calls, or they are compiled for the baseline.
    fn run(self) -> Self::Output;
}

/// Runs a loop in the version of this thread's [`level`]: for the loops of other crates.
///
/// ```
/// struct Sum<'a>(&'a [u32]);
/// impl algebra::Loop for Sum<'_> {
///     type Output = u32;
///     #[inline(always)]
///     fn run(self) -> u32 {
///         self.0.iter().sum()
///     }
/// }
/// assert_eq!(algebra::vectorised(Sum(&[1, 2, 3])), 6);
/// ```
pub fn vectorised<L: Loop>(of: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        fn avx2<L: Loop>(of: L) -> L::Output {
            of.run()
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
        fn avx512<L: Loop>(of: L) -> L::Output {
            of.run()
        }
        match level() {
            // SAFETY: `level` is at most what was detected, which includes these features.
            Level::Avx512 => return unsafe { avx512(of) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2(of) },
            Level::Baseline => {}
        }
    }
    of.run()
}

/// Defines functions in a version per [`Level`]; a call takes the version of [`level`].
///
/// The body is a plain loop: the compiler vectorises it once for each set of instructions.
/// Functions that it calls must be `#[inline(always)]`, or they are compiled for the baseline.
macro_rules! dispatched {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $(<$($T:ident: $bound:path),+>)? ($($arg:ident: $ty:ty),* $(,)?)
        $(-> $ret:ty)? $body:block
    )+) => {$(
        $(#[$meta])*
        $vis fn $name $(<$($T: $bound),+>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn plain $(<$($T: $bound),+>)? ($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
                fn avx2 $(<$($T: $bound),+>)? ($($arg: $ty),*) $(-> $ret)? { plain($($arg),*) }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
                fn avx512 $(<$($T: $bound),+>)? ($($arg: $ty),*) $(-> $ret)? { plain($($arg),*) }
                match $crate::level::level() {
                    // SAFETY: `level` is at most what was detected, which includes these features.
                    $crate::level::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::level::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::level::Level::Baseline => {}
                }
            }
            plain($($arg),*)
        }
    )+};
}
pub(crate) use dispatched;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_inside_and_ends() {
        let before = level();
        assert_eq!(with_level(Level::Baseline, level), Level::Baseline);
        assert_eq!(with_level(Level::Avx512, level), detected());
        assert!(std::panic::catch_unwind(|| with_level(Level::Baseline, || panic!())).is_err());
        assert_eq!(level(), before);
        assert_eq!(levels().next(), Some(Level::Baseline));
        assert_eq!(levels().last(), Some(detected()));
    }
}
