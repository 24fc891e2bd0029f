//! Copying runs of bytes that lie at a regular distance: slices of arrays.
//!
//! A run of a known short length is moved by loads and stores of that length, a longer one by a copy of the memory. What
//! is longer still, and will not be read again soon, is stored past the caches: the lines of the target are then not
//! read before they are overwritten, and what was in the caches stays there.

/// From how many bytes on a run is stored past the caches, one by one. Below, or where runs of the target have gaps
/// between them, parts of lines would be written, which is slower than reading them first (decision 64).
pub const STREAMED_RUN: usize = 2048;

/// Bytes of the staging area through which short runs are gathered into whole lines.
const STAGED: usize = 4096;

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
    target: &mut [u8],
    target_step: usize,
) {
    check(run, count, source, source_step, target, target_step);
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
                target[at * target_step..][..run].copy_from_slice(from);
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
    target: &mut [u8],
    target_step: usize,
) {
    check(run, count, source, source_step, target, target_step);
    if run >= STREAMED_RUN {
        for at in 0..count {
            let from = &source[at * source_step..][..run];
            stream(from, &mut target[at * target_step..][..run]);
        }
        fence();
    } else if target_step == run && run * count >= 2 * STAGED {
        staged(run, count, source, source_step, target);
        fence();
    } else {
        strided(run, count, source, source_step, target, target_step);
    }
}

fn check(run: usize, count: usize, source: &[u8], source_step: usize, target: &[u8], step: usize) {
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
    target: &mut [u8],
    target_step: usize,
) {
    for at in 0..count {
        let from: &[u8; N] = source[at * source_step..].first_chunk().unwrap_or(&[0; N]);
        target[at * target_step..][..N].copy_from_slice(from);
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

/// Runs that lie side by side in the target: gathered in a small area that the first-level cache holds, and stored from
/// there in whole lines.
fn staged(run: usize, count: usize, source: &[u8], source_step: usize, target: &mut [u8]) {
    let target = &mut target[..run * count];
    let per_stage = (STAGED / run).max(1);
    let mut area = [0u8; STAGED];
    let mut at = 0;
    for part in target.chunks_mut(per_stage * run) {
        let runs = part.len() / run;
        let area = &mut area[..part.len()];
        strided(
            run,
            runs,
            &source[at * source_step..],
            source_step,
            area,
            run,
        );
        stream(area, part);
        at += runs;
    }
}

/// Copies past the caches; needs a [`fence`] before the target is handed to another thread.
fn stream(source: &[u8], target: &mut [u8]) {
    assert_eq!(source.len(), target.len(), "as long as each other");
    #[cfg(target_arch = "x86_64")]
    {
        let head = target.as_ptr().align_offset(64).min(target.len());
        let lines = (target.len() - head) / 64;
        let (first, rest) = source.split_at(head);
        let (middle, last) = rest.split_at(lines * 64);
        target[..head].copy_from_slice(first);
        let body = &mut target[head..];
        match crate::level() {
            _ if lines == 0 => {}
            // SAFETY: the level says that the processor has AVX-512 F.
            crate::Level::Avx512 => unsafe { lines_avx512(middle, &mut body[..lines * 64]) },
            // SAFETY: the level says that the processor has AVX2.
            crate::Level::Avx2 => unsafe { lines_avx2(middle, &mut body[..lines * 64]) },
            crate::Level::Baseline => body[..lines * 64].copy_from_slice(middle),
        }
        body[lines * 64..].copy_from_slice(last);
    }
    #[cfg(not(target_arch = "x86_64"))]
    target.copy_from_slice(source);
}

/// Copies whole lines, where the target begins at one, past the caches.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn lines_avx512(source: &[u8], target: &mut [u8]) {
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
fn lines_avx2(source: &[u8], target: &mut [u8]) {
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
        for run in [1, 2, 3, 4, 8, 16, 24, 32, 64, 65, 512, 600, 2048, 5000] {
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
                for level in levels() {
                    let (mut plain, mut past) = (vec![0; expected.len()], vec![0; expected.len()]);
                    with_level(level, || {
                        strided(run, count, &source, step, &mut plain, target_step);
                        strided_streaming(run, count, &source, step, &mut past, target_step);
                    });
                    assert!(plain == expected, "{level:?} {run} {count}");
                    assert!(past == expected, "{level:?} {run} {count} streaming");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "runs of the source end in it")]
    fn a_source_that_is_too_short_is_noticed() {
        strided(8, 2, &[0; 20], 16, &mut [0; 16], 8);
    }
}
