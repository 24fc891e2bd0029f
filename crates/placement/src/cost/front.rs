//! The Pareto front of speed and energy.

use super::model::Cost;

/// The places of those costs that no other one is better than in both time and energy, the quickest first. Of two alike the first
/// stays.
pub fn front(costs: &[Cost]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&costs[*a], &costs[*b]);
        let by_time = a.seconds.total_cmp(&b.seconds);
        by_time.then(a.joules().total_cmp(&b.joules()))
    });
    let mut least = f64::INFINITY;
    order.retain(|at| {
        let joules = costs[*at].joules();
        let is_better = joules < least;
        least = least.min(joules);
        is_better
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Limit;

    #[test]
    fn what_is_worse_in_both_is_left_out() {
        let cost = |seconds, joules| Cost {
            seconds,
            core_joules: joules,
            memory_joules: 0.0,
            link_joules: 0.0,
            limit: Limit::Threads(0),
        };
        let costs = [
            cost(2.0, 5.0),
            cost(1.0, 9.0),
            cost(1.5, 9.0),
            cost(3.0, 5.0),
            cost(4.0, 1.0),
            cost(1.0, 9.0),
        ];
        assert_eq!(front(&costs), [1, 0, 4]);
        assert!(front(&[]).is_empty());
    }
}
