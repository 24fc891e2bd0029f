//! Sorting a permutation of rows by columns of words.

/// Runs of equal words up to this length are sorted by comparing rows.
const SHORT: usize = 16;

/// Sorts permutations of rows. Its buffers are kept from one call to the next.
#[derive(Clone, Debug, Default)]
pub struct Sorter {
    /// A word above the place of its row in the permutation.
    pairs: Vec<u128>,
    rows: Vec<u32>,
}

impl Sorter {
    /// A sorter that has allocated nothing yet.
    pub fn new() -> Sorter {
        Sorter::default()
    }

    /// Sorts `rows` by the words that the columns `keys` have at them, the first column being
    /// the most significant. Equal rows keep their order.
    ///
    /// # Panics
    /// When a row lies behind a column.
    pub fn sort(&mut self, keys: &[&[u64]], rows: &mut [u32]) {
        assert!(
            u32::try_from(rows.len()).is_ok(),
            "more rows than positions"
        );
        let Some((first, rest)) = keys.split_first() else {
            return;
        };
        if rows.len() <= SHORT {
            return by_comparing(keys, rows);
        }
        self.by_word(first, rows);
        if !rest.is_empty() {
            let mut begin = 0;
            while begin < rows.len() {
                let word = first[rows[begin] as usize];
                let run = rows[begin..]
                    .iter()
                    .take_while(|r| first[**r as usize] == word)
                    .count();
                if run > 1 {
                    self.sort(rest, &mut rows[begin..begin + run]);
                }
                begin += run;
            }
        }
    }

    /// Sorts by one column.
    fn by_word(&mut self, words: &[u64], rows: &mut [u32]) {
        if rows.is_sorted_by_key(|row| words[*row as usize]) {
            return;
        }
        self.pairs.clear();
        let word = |row: &u32| u128::from(words[*row as usize]) << 32;
        self.pairs.extend(
            rows.iter()
                .enumerate()
                .map(|(place, row)| word(row) | place as u128),
        );
        self.pairs.sort_unstable();
        self.rows.clear();
        self.rows
            .extend(self.pairs.iter().map(|pair| rows[*pair as u32 as usize]));
        rows.copy_from_slice(&self.rows);
    }
}

/// Insertion sort; stable.
fn by_comparing(keys: &[&[u64]], rows: &mut [u32]) {
    for end in 1..rows.len() {
        let row = rows[end];
        let mut at = end;
        while at > 0 && less(keys, row, rows[at - 1]) {
            rows[at] = rows[at - 1];
            at -= 1;
        }
        rows[at] = row;
    }
}

/// Whether the words at `a` come before those at `b`.
fn less(keys: &[&[u64]], a: u32, b: u32) -> bool {
    for words in keys {
        let (a, b) = (words[a as usize], words[b as usize]);
        if a != b {
            return a < b;
        }
    }
    false
}
