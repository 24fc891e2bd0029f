//! Copying runs of bytes that lie at a regular distance: slices of arrays.
//!
//! A run of a known short length is moved by loads and stores of that length, a longer one by a copy of the memory. What
//! is longer still, and will not be read again soon, is stored past the caches: the lines of the target are then not
//! read before they are overwritten, and what was in the caches stays there.

use std::mem::MaybeUninit;

/// From how many bytes on a run is stored past the caches where runs of the target have gaps between them: its first and
/// last line are written in part, which is slow. An estimate; decision 64 has what was measured.
pub const STREAMED_RUN: usize = 2048;

/// The same where runs of the target lie side by side, so that all lines are written as a whole. An estimate, too.
pub const GATHERED_RUN: usize = 256;

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
                ahead(source, (at + AHEAD) * source_step, run);
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
    if run >= GATHERED_RUN && (target_step == run || count == 1) {
        gathered(run, count, source, source_step, &mut target[..run * count]);
        fence();
    } else if run >= STREAMED_RUN {
        for at in 0..count {
            let from = &source[at * source_step..][..run];
            gathered(run, 1, from, run, &mut target[at * target_step..][..run]);
        }
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

/// Asks for the source from `at`, if it has that: the first lines, after which the processor goes on by itself.
#[inline(always)]
fn ahead(source: &[u8], at: usize, run: usize) {
    let lines = run.div_ceil(64).min(8);
    for line in 0..lines {
        match source.get(at + line * 64) {
            Some(byte) => crate::prefetch(byte),
            None => return,
        }
    }
}

/// Runs of at least a line that lie side by side in the target: whole lines of it are stored past the caches, of which one may
/// have the end of a run and the beginning of the next.
fn gathered(
    run: usize,
    count: usize,
    source: &[u8],
    source_step: usize,
    target: &mut [MaybeUninit<u8>],
) {
    let lines = store_lines();
    let head = target.as_ptr().align_offset(LINE).min(run);
    let (mut carry, mut carried) = ([0; LINE], 0);
    let mut out = 0;
    for at in 0..count {
        ahead(source, (at + AHEAD) * source_step, run);
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
                lines(&carry, &mut target[out..out + LINE]);
                (out, carried) = (out + LINE, 0);
            }
        }
        let (whole, rest) = from.split_at(from.len() / LINE * LINE);
        lines(whole, &mut target[out..out + whole.len()]);
        out += whole.len();
        if !rest.is_empty() {
            carry[..rest.len()].copy_from_slice(rest);
            carried = rest.len();
        }
    }
    target[out..].write_copy_of_slice(&carry[..carried]);
}

/// What stores whole lines, to addresses that are multiples of a line's length, past the caches. It needs a [`fence`] before
/// the target is handed to another thread.
fn store_lines() -> fn(&[u8], &mut [MaybeUninit<u8>]) {
    #[cfg(target_arch = "x86_64")]
    match crate::level() {
        // SAFETY: the level says that the processor has AVX-512 F.
        crate::Level::Avx512 => return |from, to| unsafe { lines_avx512(from, to) },
        // SAFETY: the level says that the processor has AVX2.
        crate::Level::Avx2 => return |from, to| unsafe { lines_avx2(from, to) },
        crate::Level::Baseline => {}
    }
    |from, to| {
        to.write_copy_of_slice(from);
    }
}

/// Copies whole lines, where the target begins at one, past the caches.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn lines_avx512(source: &[u8], target: &mut [MaybeUninit<u8>]) {
    use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_stream_si512};
    assert!(
        target.as_ptr().cast::<u8>().align_offset(64) == 0,
        "whole lines"
    );
    for (from, to) in source
        .as_chunks::<64>()
        .0
        .iter()
        .zip(target.as_chunks_mut::<64>().0)
    {
        // SAFETY: both are 64 bytes long, and the target's address is a multiple of 64, as it was for the first and
        // they follow each other.
        unsafe {
            let line = _mm512_loadu_si512(from.as_ptr().cast::<__m512i>());
            _mm512_stream_si512(to.as_mut_ptr().cast::<__m512i>(), line);
        }
    }
}

/// Copies whole lines, where the target begins at one, past the caches.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn lines_avx2(source: &[u8], target: &mut [MaybeUninit<u8>]) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};
    assert!(
        target.as_ptr().cast::<u8>().align_offset(64) == 0,
        "whole lines"
    );
    for (from, to) in source
        .as_chunks::<64>()
        .0
        .iter()
        .zip(target.as_chunks_mut::<64>().0)
    {
        // SAFETY: both are 64 bytes long, and the target's address is a multiple of 64, as it was for the first and
        // they follow each other.
        unsafe {
            let from = from.as_ptr().cast::<__m256i>();
            let to = to.as_mut_ptr().cast::<__m256i>();
            let (low, high) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
            _mm256_stream_si256(to, low);
            _mm256_stream_si256(to.add(1), high);
        }
    }
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
