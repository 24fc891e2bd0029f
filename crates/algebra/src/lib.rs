//! Vectorised kernels for queries in linear algebra, with SIMD chosen at run time.
//!
//! A table is a set of matrices over blocks of rows:
//!
//! | matrix | holds | here |
//! |---|---|---|
//! | bitmap matrix over a dictionary | an attribute: labels x rows, one 1 per column | `&[u32]`, the label's code of each row |
//! | decimal vector | a measure: 1 x rows | `&[i64]`, `&[i128]` (scaled), `&[f64]` |
//! | filtered bit vector | a selection: 1 x rows | `&[bool]`, or positions `&[u32]` |
//!
//! and a query is a program of these operators on them:
//!
//! | operator | is | module |
//! |---|---|---|
//! | filter | a predicate on a measure, or on labels and then composed with the rows | [`filter`] |
//! | dot | composition: labels of labels, a look-up through a key, the join | [`dot`], [`filter::gather`] |
//! | krao | the Khatri-Rao product: attributes of a row as one index | [`krao`] |
//! | hadamard | element by element "and" of selections | [`filter::and`] |
//! | lift | arithmetic, element by element | [`lift`] |
//! | fold | sums, counts and extremes per index | [`fold`] |
//!
//! [`hash`] hashes keys too sparse for a dense index, [`order`] sorts and selects the top k, as SQL needs. [`encoded`]
//! works on pages of narrow values as they are stored: predicates are evaluated before values are widened. [`bytes`] finds marks in
//! texts.
//!
//! # How kernels are written
//! They work on vectors of at most [`VECTOR_ROWS`] rows (longer ones work too), which stay in the
//! L1 cache between operators. They write into buffers that the caller provides and reuses: an `out`
//! is cleared, grown if needed and filled, each value written once. A kernel is one plain loop
//! without a branch or call per value, compiled for each [`Level`]; where the compiler does not find
//! the instruction that a loop needs, there is a second version in intrinsics.
//!
//! Masks have one byte per row, except those of [`encoded`]. Validity is `Option<&[bool]>`; `None` means that all rows
//! are valid. The values of null rows are ignored unless a kernel says otherwise. Lengths are
//! checked, and so is each position that comes from data: a wrong one panics and is never dereferenced.
//!
//! This crate knows neither Arrow nor pages, does no input or output, and starts no thread.
//!
//! # Example: the core of TPC-H Q6 and of Q1
//! ```
//! use algebra::filter::{self, Op};
//! use algebra::{fold, krao, lift};
//!
//! let discount = [5, 7, 6, 5]; // decimals of two places
//! let price = [100_00, 200_00, 300_00, 400_00];
//! let (flag, status) = ([0, 1, 1, 0], [1, 0, 0, 0]); // codes of two dictionaries
//!
//! // filter, hadamard: discount between 0.05 and 0.06
//! let (mut low, mut high, mut keep, mut valid) = (vec![], vec![], vec![], vec![]);
//! filter::compare_i64_const(Op::Ge, &discount, 5, &mut low);
//! filter::compare_i64_const(Op::Le, &discount, 6, &mut high);
//! filter::and(&low, None, &high, None, &mut keep, &mut valid);
//! assert_eq!(keep, [true, false, true, true]);
//!
//! // lift, sum: price * discount, four places
//! let (mut product, mut sum) = (vec![], [0]);
//! lift::mul_i64(&price, &discount, &mut product);
//! fold::sum_i64(None, &product, Some(&keep), &mut sum);
//! assert_eq!(sum, [(100_00 * 5 + 300_00 * 6 + 400_00 * 5)]);
//!
//! // krao, sum: price per flag (of two) and status (of two)
//! let (mut index, mut groups, mut sums) = (vec![], vec![], [0; 4]);
//! krao::start(&flag, &mut index);
//! krao::combine(&mut index, &status, 2);
//! krao::numbers(&index, &mut groups);
//! fold::sum_i64(Some(&groups), &price, None, &mut sums);
//! assert_eq!(sums, [400_00, 100_00, 500_00, 0]);
//! ```

pub mod bytes;
pub mod copy;
pub mod dot;
pub mod encoded;
mod fill;
pub mod filter;
pub mod fold;
pub mod hash;
pub mod krao;
mod level;
pub mod lift;
pub mod order;
mod prefetch;
mod total;
mod vector;

pub use level::{Level, Loop, level, levels, vectorised, with_level};
pub use prefetch::prefetch;
pub use vector::VECTOR_ROWS;
