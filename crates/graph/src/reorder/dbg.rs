//! Degree-based grouping (Faldu, Diamond and Grot, IISWC 2019): vertices of like degree come
//! together, the high degrees first, and within a group they stay as they were. So the vertices that
//! many lists name share few pages, and what locality the old order had is mostly kept.

use crate::error::Result;
use crate::job::Job;
use crate::reorder::neighbours::Neighbours;

/// The vertices in their new order.
pub(crate) async fn sequence(lists: &mut Neighbours<'_>, job: &mut Job<'_>) -> Result<Vec<u32>> {
    let degrees = lists.degrees(job).await?;
    Ok(grouped(&degrees))
}

fn grouped(degrees: &[u32]) -> Vec<u32> {
    let sum: u64 = degrees.iter().map(|&degree| u64::from(degree)).sum();
    let vertices = degrees.len() as u64;
    // The groups begin at 32, 16, ..., 1 and 1/2 times the mean degree, and at 0.
    let group = |degree: u32| {
        let twice = 2 * u128::from(degree) * u128::from(vertices);
        (0..7)
            .position(|group| twice >= u128::from(sum) << (6 - group))
            .unwrap_or(7)
    };
    let mut starts = [0_usize; 9];
    for &degree in degrees {
        starts[group(degree) + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut sequence = vec![0; degrees.len()];
    for (vertex, &degree) in degrees.iter().enumerate() {
        let place = &mut starts[group(degree)];
        sequence[*place] = vertex as u32;
        *place += 1;
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_powers_of_two_of_the_mean() {
        // The mean is 4: the groups begin at 128, 64, 32, 16, 8, 4, 2 and 0.
        let mut degrees = vec![1, 2, 4, 8, 3, 17];
        let rest = 4 * 100 - degrees.iter().sum::<u32>();
        degrees.resize(99, 3);
        let last = rest - 93 * 3;
        degrees.push(last);
        assert_eq!((last, degrees.len()), (86, 100));
        let sequence = grouped(&degrees);
        assert_eq!(sequence[..5], [99, 5, 3, 2, 1]);
        assert_eq!(sequence[5..8], [4, 6, 7]);
        assert_eq!(sequence[99], 0);
        assert_eq!(grouped(&[0, 0]), [0, 1]);
    }
}
