//! Numbering keys that come in their order: a row's group is that of the row before it, or the next.

/// Numbers the groups of ascending `values`. `keys` are the keys of the groups so far; those that are new in `values`
/// are appended. `numbers[i]` becomes the number of the group of `values[i]`. Returns false, and leaves `keys` as they
/// were, where a value is below the one before it.
///
/// # Panics
/// At 2^32 - 1 groups.
pub fn ascend(values: &[i64], keys: &mut Vec<i64>, numbers: &mut Vec<u32>) -> bool {
    numbers.clear();
    let Some(first) = values.first() else {
        return true;
    };
    let falls = values
        .iter()
        .zip(&values[1..])
        .fold(false, |falls, (a, b)| falls | (a > b));
    if falls || keys.last().is_some_and(|last| first < last) {
        return false;
    }
    // The last group may go on: its key is written again.
    let mut last = keys.pop().unwrap_or(*first);
    let start = keys.len();
    assert!(start + values.len() < u32::MAX as usize, "too many groups");
    keys.reserve(values.len() + 1);
    let room = &mut keys.spare_capacity_mut()[..=values.len()];
    room[0].write(last);
    let mut fresh = 0;
    numbers.extend(values.iter().map(|value| {
        // No branch: how many rows a group has is as good as random.
        fresh += usize::from(*value != last);
        last = *value;
        room[fresh].write(*value);
        (start + fresh) as u32
    }));
    // SAFETY: `room[0]` was written before the loop, and each time `fresh` grew, by one, the loop wrote
    // `room[fresh]`.
    unsafe { keys.set_len(start + fresh + 1) };
    true
}
