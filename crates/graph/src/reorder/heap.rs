//! Vertices by a score that goes up and down by one (the unit heap of Gorder).
//!
//! The vertices of each score are a list, so that one more moves a vertex to the list above. One
//! less is only noted, and settled when the vertex comes to the top: most are cancelled by a later
//! gain before.

/// No vertex.
const NONE: u32 = u32::MAX;
/// Set in the score of a vertex that was taken.
const TAKEN: u32 = u32::MAX;

/// Vertices that were not taken yet. 16 bytes for each.
#[derive(Debug)]
pub(crate) struct Heap {
    before: Vec<u32>,
    after: Vec<u32>,
    score: Vec<u32>,
    /// Losses that are not in the score yet.
    losses: Vec<u32>,
    heads: Vec<u32>,
    top: usize,
}

impl Heap {
    /// Vertices of score 0, the first to be taken first.
    pub fn new(sequence: &[u32]) -> Heap {
        let mut heap = Heap {
            before: vec![NONE; sequence.len()],
            after: vec![NONE; sequence.len()],
            score: vec![0; sequence.len()],
            losses: vec![0; sequence.len()],
            heads: vec![NONE],
            top: 0,
        };
        for &vertex in sequence.iter().rev() {
            heap.link(vertex);
        }
        heap
    }

    /// Puts a vertex at the head of the list of its score.
    #[inline]
    fn link(&mut self, vertex: u32) {
        let score = self.score[vertex as usize] as usize;
        if score >= self.heads.len() {
            self.heads.resize(score + 1, NONE);
        }
        let next = std::mem::replace(&mut self.heads[score], vertex);
        self.before[vertex as usize] = NONE;
        self.after[vertex as usize] = next;
        if next != NONE {
            self.before[next as usize] = vertex;
        }
        self.top = self.top.max(score);
    }

    #[inline]
    fn unlink(&mut self, vertex: u32) {
        let (before, after) = (self.before[vertex as usize], self.after[vertex as usize]);
        match before {
            NONE => self.heads[self.score[vertex as usize] as usize] = after,
            before => self.after[before as usize] = after,
        }
        if after != NONE {
            self.before[after as usize] = before;
        }
    }

    /// One more for a vertex, unless it was taken.
    #[inline]
    pub fn gain(&mut self, vertex: u32) {
        let at = vertex as usize;
        if self.score[at] == TAKEN {
            return;
        }
        if self.losses[at] > 0 {
            self.losses[at] -= 1;
            return;
        }
        self.unlink(vertex);
        self.score[at] += 1;
        self.link(vertex);
    }

    /// One less for a vertex that had as many gains at least.
    #[inline]
    pub fn lose(&mut self, vertex: u32) {
        if self.score[vertex as usize] != TAKEN {
            self.losses[vertex as usize] += 1;
        }
    }

    /// Takes a vertex that no other has a higher score than.
    pub fn take(&mut self) -> Option<u32> {
        loop {
            let vertex = self.heads[self.top];
            if vertex == NONE {
                self.top = self.top.checked_sub(1)?;
                continue;
            }
            self.unlink(vertex);
            let losses = std::mem::take(&mut self.losses[vertex as usize]);
            if losses == 0 {
                self.score[vertex as usize] = TAKEN;
                return Some(vertex);
            }
            self.score[vertex as usize] -= losses.min(self.score[vertex as usize]);
            self.link(vertex);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_highest_score_is_taken(steps in prop::collection::vec((0..3_u8, 0..20_u32), 1..400)) {
            let sequence: Vec<u32> = (0..20).collect();
            let mut heap = Heap::new(&sequence);
            let mut scores = [Some(0_u32); 20];
            for (step, vertex) in steps {
                let score = &mut scores[vertex as usize];
                match step {
                    0 => {
                        heap.gain(vertex);
                        *score = score.map(|score| score + 1);
                    }
                    1 if *score > Some(0) => {
                        heap.lose(vertex);
                        *score = score.map(|score| score - 1);
                    }
                    1 => {}
                    _ => {
                        let taken = heap.take();
                        let best = scores.iter().flatten().max().copied();
                        prop_assert_eq!(taken.and_then(|taken| scores[taken as usize].take()), best);
                    }
                }
            }
        }
    }

    #[test]
    fn of_the_same_score_the_first_is_taken_first() {
        let mut heap = Heap::new(&[2, 0, 1]);
        let taken: Vec<_> = std::iter::from_fn(|| heap.take()).collect();
        assert_eq!(taken, [2, 0, 1]);
    }
}
