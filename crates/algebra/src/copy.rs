//! Copying runs of bytes that lie at a regular distance: slices of arrays.
//!
//! A run of a known short length is moved by loads and stores of that length, a longer one by a copy of the memory. What
//! is longer still, and will not be read again soon, is stored past the caches: the lines of the target are then not
//! read before they are overwritten, and what was in the caches stays there. Of long runs several are copied at once, a few
//! lines of each in turn, since more of their lines are then on their way from memory than of one.

use std::mem::MaybeUninit;

/// From how many bytes on a run is stored past the caches where runs of the target have gaps between them, and runs are
/// copied several at once: its first and last line are written in part, which is slow. Decisions 64 and 94 have what was
/// measured.
pub const STREAMED_RUN: usize = 2048;

/// From how many bytes on it is stored past the caches where runs of the target lie side by side, so that all lines are
/// written as a whole. An estimate.
pub const GATHERED_RUN: usize = 256;

/// How many runs are copied at once: two lines of each in turn of runs below [`SHORT_RUN`] bytes, four of others.
const STREAMS: usize = 8;
const SHORT_RUN: usize = 4096;

/// Bytes of a line of the caches.
const LINE: usize = 64;

/// Where copies go: bytes that may have no value yet. Nothing can be done to them but to write values, so that bytes that had
/// values before have values after.
#[derive(Debug)]
pub struct Target<'a> {
    bytes: &'a mut [MaybeUninit<u8>],
}

impl<'a> Target<'a> {
    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The same bytes, for a while.
    pub fn reborrow(&mut self) -> Target<'_> {
        Target { bytes: self.bytes }
    }

    /// The bytes from `start` on, so many.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn part(&mut self, start: usize, length: usize) -> Target<'_> {
        Target {
            bytes: &mut self.bytes[start..][..length],
        }
    }

    /// Copies bytes to the first ones.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn copy_from(&mut self, bytes: &[u8]) {
        self.bytes[..bytes.len()].write_copy_of_slice(bytes);
    }
}

impl<'a> From<&'a mut [u8]> for Target<'a> {
    fn from(bytes: &'a mut [u8]) -> Target<'a> {
        let (start, length) = (bytes.as_mut_ptr().cast::<MaybeUninit<u8>>(), bytes.len());
        // SAFETY: both types have one layout, the slice is lent for as long; and what has a value keeps one, since a target
        // is only written to, with values.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start, length) };
        Target { bytes }
    }
}

impl<'a> From<&'a mut [MaybeUninit<u8>]> for Target<'a> {
    fn from(bytes: &'a mut [MaybeUninit<u8>]) -> Target<'a> {
        Target { bytes }
    }
}

/// How far ahead of the run being copied the source is asked for, in runs of a page or less.
const AHEAD: usize = 4;

/// Copies `count` runs of `run` bytes: in the source they begin `source_step` bytes apart, in the target `target_step`.
///
/// # Panics
/// If a slice ends before the last run does, or steps of the target are shorter than a run.
pub fn strided(
    run: usize,
    count: usize,
    source: &[u8],
    source_step: usize,
    target: Target<'_>,
    target_step: usize,
) {
    let target = target.bytes;
    check(run, count, source, source_step, target, target_step);
    runs(run, count, source, source_step, target, target_step);
}

/// Asks for the first runs of a source that is copied next, which begin `source_step` bytes apart from `start` on: as many
/// as a copy asks for ahead of the run that it copies. A hint: nothing else happens.
pub fn expect(source: &[u8], start: usize, source_step: usize) {
    for at in 0..AHEAD {
        ahead(source, start + at * source_step);
    }
}

/// Runs whose ends were checked.
fn runs(
    run: usize,
    count: usize,
    source: &[u8],
    source_step: usize,
    target: &mut [MaybeUninit<u8>],
    target_step: usize,
) {
    match run {
        1 => fixed::<1>(count, source, source_step, target, target_step),
        2 => fixed::<2>(count, source, source_step, target, target_step),
        4 => fixed::<4>(count, source, source_step, target, target_step),
        8 => fixed::<8>(count, source, source_step, target, target_step),
        16 => fixed::<16>(count, source, source_step, target, target_step),
        24 => fixed::<24>(count, source, source_step, target, target_step),
        32 => fixed::<32>(count, source, source_step, target, target_step),
        64 => fixed::<64>(count, source, source_step, target, target_step),
        _ => {
            for at in 0..count {
                ahead(source, (at + AHEAD) * source_step);
                let from = &source[at * source_step..][..run];
                target[at * target_step..][..run].write_copy_of_slice(from);
            }
        }
    }
}

/// Does what [`strided`] does, with stores past the caches where that is faster: for a target that is large, and not read
/// again soon.
///
/// # Panics
/// As [`strided`].
pub fn strided_streaming(
    run: usize,
    count: usize,
    source: &[u8],
    source_step: usize,
    target: Target<'_>,
    target_step: usize,
) {
    let target = target.bytes;
    check(run, count, source, source_step, target, target_step);
    if run >= STREAMED_RUN {
        interleaved(run, count, source, source_step, target, target_step);
        fence();
    } else if run >= GATHERED_RUN && (target_step == run || count == 1) {
        gathered(run, count, source, source_step, &mut target[..run * count]);
        fence();
    } else {
        runs(run, count, source, source_step, target, target_step);
    }
}

fn check<T>(
    run: usize,
    count: usize,
    source: &[u8],
    source_step: usize,
    target: &[T],
    step: usize,
) {
    let end = |step: usize| match count.checked_sub(1) {
        None => Some(0),
        Some(last) => last
            .checked_mul(step)
            .and_then(|start| start.checked_add(run)),
    };
    assert!(
        end(source_step).is_some_and(|end| end <= source.len()),
        "runs of the source end in it"
    );
    assert!(
        end(step).is_some_and(|end| end <= target.len()),
        "runs of the target end in it"
    );
    assert!(
        step >= run || count <= 1,
        "runs of the target do not overlap"
    );
}

/// Runs of `N` bytes.
#[inline(always)]
fn fixed<const N: usize>(
    count: usize,
    source: &[u8],
    source_step: usize,
    target: &mut [MaybeUninit<u8>],
    target_step: usize,
) {
    for at in 0..count {
        let from: &[u8; N] = source[at * source_step..].first_chunk().unwrap_or(&[0; N]);
        target[at * target_step..][..N].write_copy_of_slice(from);
    }
}

/// Asks for the line of the source at `at`, if it has that. The first line of a run is enough: the processor sees the others
/// coming, and asking for them, too, was slower.
#[inline(always)]
fn ahead(source: &[u8], at: usize) {
    if let Some(byte) = source.get(at) {
        crate::prefetch(byte);
    }
}

/// Runs of at least a line that lie side by side in the target: whole lines of it are stored past the caches. It needs a
/// [`fence`] before the target is handed to another thread.
fn gathered(
    run: usize,
    count: usize,
    source: &[u8],
    source_step: usize,
    target: &mut [MaybeUninit<u8>],
) {
    #[cfg(target_arch = "x86_64")]
    match crate::level() {
        crate::Level::Avx512 => {
            // SAFETY: the level says that the processor has AVX-512 F.
            return unsafe { gathered_avx512(run, count, source, source_step, target) };
        }
        crate::Level::Avx2 => {
            // SAFETY: the level says that the processor has AVX2.
            return unsafe { gathered_avx2(run, count, source, source_step, target) };
        }
        crate::Level::Baseline => {}
    }
    gathered_baseline(run, count, source, source_step, target);
}

/// [`gathered`] for one level of instructions. The loop is compiled with them, too: a call for each run was a third of the
/// time of short runs, since fewer of their lines were then on their way at once.
macro_rules! gathered_by {
    ($name:ident, $line:ident $(, $feature:literal)?) => {
        $(#[cfg(target_arch = "x86_64")] #[target_feature(enable = $feature)])?
        fn $name(
            run: usize,
            count: usize,
            source: &[u8],
            source_step: usize,
            target: &mut [MaybeUninit<u8>],
        ) {
            let head = target.as_ptr().align_offset(LINE).min(run);
            if head == 0 && run.is_multiple_of(LINE) {
                for (at, to) in target.chunks_exact_mut(run).take(count).enumerate() {
                    ahead(source, (at + AHEAD) * source_step);
                    let from = source[at * source_step..][..run].as_chunks().0;
                    for (from, to) in from.iter().zip(to.as_chunks_mut().0) {
                        $line(from, to);
                    }
                }
                return;
            }
            // A line may have the end of a run and the beginning of the next.
            let (mut carry, mut carried) = ([0; LINE], 0);
            let mut out = 0;
            for at in 0..count {
                ahead(source, (at + AHEAD) * source_step);
                let mut from = &source[at * source_step..][..run];
                if at == 0 {
                    // Up to where the target's first whole line begins.
                    let (first, rest) = from.split_at(head);
                    target[..head].write_copy_of_slice(first);
                    (from, out) = (rest, head);
                }
                if carried > 0 {
                    let (first, rest) = from.split_at((LINE - carried).min(from.len()));
                    carry[carried..carried + first.len()].copy_from_slice(first);
                    carried += first.len();
                    from = rest;
                    if carried == LINE {
                        for to in target[out..].as_chunks_mut().0.iter_mut().take(1) {
                            $line(&carry, to);
                        }
                        (out, carried) = (out + LINE, 0);
                    }
                }
                let (whole, rest) = from.as_chunks();
                for (from, to) in whole.iter().zip(target[out..].as_chunks_mut().0) {
                    $line(from, to);
                }
                out += whole.len() * LINE;
                if !rest.is_empty() {
                    carry[..rest.len()].copy_from_slice(rest);
                    carried = rest.len();
                }
            }
            target[out..].write_copy_of_slice(&carry[..carried]);
        }
    };
}

gathered_by!(gathered_avx512, line_avx512, "avx512f");
gathered_by!(gathered_avx2, line_avx2, "avx2");
gathered_by!(gathered_baseline, line_baseline);

/// Runs of at least [`STREAMED_RUN`] bytes, [`STREAMS`] of them at once: whole lines of the target are stored past the
/// caches. It needs a [`fence`] before the target is handed to another thread.
fn interleaved(
    run: usize,
    count: usize,
    source: &[u8],
    source_step: usize,
    target: &mut [MaybeUninit<u8>],
    target_step: usize,
) {
    let mut left = count;
    // One run alone may be longer than a step, and the last one may be where the target ends.
    let mut targets = target.chunks_mut(target_step.max(run));
    while left > 0 {
        let batch = left.min(STREAMS);
        let mut streams: [Stream<'_>; STREAMS] = Default::default();
        for (at, (stream, to)) in streams[..batch].iter_mut().zip(&mut targets).enumerate() {
            let from = &source[(count - left + at) * source_step..][..run];
            let head = to.as_ptr().align_offset(LINE).min(run);
            let ((first, from), (head, to)) = (from.split_at(head), to[..run].split_at_mut(head));
            head.write_copy_of_slice(first);
            let ((from, last), (to, tail)) = (from.as_chunks(), to.as_chunks_mut());
            tail.write_copy_of_slice(last);
            *stream = (from, to);
        }
        let block = match batch {
            1 => run,
            _ if run < SHORT_RUN => 2,
            _ => 4,
        };
        copy_streams(&mut streams[..batch], block);
        left -= batch;
    }
}

/// Lines, and where they go.
type Stream<'a> = (&'a [[u8; LINE]], &'a mut [[MaybeUninit<u8>; LINE]]);

/// Copies `block` lines of each stream in turn.
fn copy_streams(streams: &mut [Stream<'_>], block: usize) {
    #[cfg(target_arch = "x86_64")]
    match crate::level() {
        // SAFETY: the level says that the processor has AVX-512 F.
        crate::Level::Avx512 => return unsafe { streams_avx512(streams, block) },
        // SAFETY: the level says that the processor has AVX2.
        crate::Level::Avx2 => return unsafe { streams_avx2(streams, block) },
        crate::Level::Baseline => {}
    }
    streams_baseline(streams, block);
}

/// [`copy_streams`] for one level of instructions.
macro_rules! streams_by {
    ($name:ident, $line:ident $(, $feature:literal)?) => {
        $(#[cfg(target_arch = "x86_64")] #[target_feature(enable = $feature)])?
        fn $name(streams: &mut [Stream<'_>], block: usize) {
            let longest = streams.iter().map(|(from, _)| from.len()).max();
            for start in (0..longest.unwrap_or(0)).step_by(block) {
                for (from, to) in streams.iter_mut() {
                    let end = (start + block).min(from.len());
                    if let (Some(from), Some(to)) = (from.get(start..end), to.get_mut(start..end)) {
                        for (from, to) in from.iter().zip(to) {
                            $line(from, to);
                        }
                    }
                }
            }
        }
    };
}

streams_by!(streams_avx512, line_avx512, "avx512f");
streams_by!(streams_avx2, line_avx2, "avx2");
streams_by!(streams_baseline, line_baseline);

/// Stores a line past the caches.
///
/// # Panics
/// If it is not one: its address is no multiple of 64.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
fn line_avx512(from: &[u8; LINE], to: &mut [MaybeUninit<u8>; LINE]) {
    use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_stream_si512};
    let to = to.as_mut_ptr().cast::<__m512i>();
    assert!(to.is_aligned(), "a whole line");
    // SAFETY: both are 64 bytes long, and the target's address is a multiple of 64.
    unsafe { _mm512_stream_si512(to, _mm512_loadu_si512(from.as_ptr().cast())) }
}

/// Stores a line past the caches.
///
/// # Panics
/// If it is not one: its address is no multiple of 64.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn line_avx2(from: &[u8; LINE], to: &mut [MaybeUninit<u8>; LINE]) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};
    assert!(to.as_ptr().align_offset(LINE) == 0, "a whole line");
    let (from, to) = (
        from.as_ptr().cast::<__m256i>(),
        to.as_mut_ptr().cast::<__m256i>(),
    );
    // SAFETY: both are 64 bytes long, and the target's address is a multiple of 64.
    unsafe {
        let (low, high) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
        _mm256_stream_si256(to, low);
        _mm256_stream_si256(to.add(1), high);
    }
}

/// Stores a line: there is no instruction for it that goes past the caches.
fn line_baseline(from: &[u8; LINE], to: &mut [MaybeUninit<u8>; LINE]) {
    to.write_copy_of_slice(from);
}

/// Makes stores past the caches visible before what is stored after.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an instruction of every x86-64, which only orders stores.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{levels, with_level};

    #[test]
    fn all_lengths_and_levels_copy_the_same() {
        for run in [
            1, 2, 3, 4, 8, 16, 24, 32, 64, 65, 256, 257, 512, 600, 2048, 5000,
        ] {
            for (count, gap, target_gap) in
                [(0, 3, 0), (1, 0, 0), (7, 0, 0), (40, run + 5, 0), (9, 1, 3)]
            {
                let (step, target_step) = (run + gap, run + target_gap);
                let source: Vec<u8> = (0..count * step + run)
                    .map(|at| (at * 7 % 251) as u8)
                    .collect();
                let mut expected = vec![0; count * target_step + run];
                for at in 0..count {
                    let from = &source[at * step..][..run];
                    expected[at * target_step..][..run].copy_from_slice(from);
                }
                // Targets that begin at any address, and what lies around them.
                for (level, shift) in levels().flat_map(|level| [(level, 0), (level, 37)]) {
                    let (mut plain, mut past) = (
                        vec![0; shift + expected.len()],
                        vec![0; shift + expected.len()],
                    );
                    with_level(level, || {
                        strided(
                            run,
                            count,
                            &source,
                            step,
                            (&mut plain[shift..]).into(),
                            target_step,
                        );
                        strided_streaming(
                            run,
                            count,
                            &source,
                            step,
                            (&mut past[shift..]).into(),
                            target_step,
                        );
                    });
                    assert!(plain[shift..] == expected, "{level:?} {run} {count}");
                    assert!(
                        past[shift..] == expected,
                        "{level:?} {run} {count} streaming"
                    );
                    assert!(
                        past[..shift].iter().all(|&of| of == 0),
                        "{level:?} {run} {count} before"
                    );
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "runs of the source end in it")]
    fn a_source_that_is_too_short_is_noticed() {
        let mut target = [0; 16];
        strided(8, 2, &[0; 20], 16, (&mut target[..]).into(), 8);
    }
}
