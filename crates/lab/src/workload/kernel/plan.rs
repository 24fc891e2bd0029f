//! A plan: data of known size, and what each thread does with it.

use serde::{Deserialize, Serialize};

/// The size of a cache line in bytes: what a step goes through at a time.
pub const LINE: usize = 64;

/// One piece of data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Its size: whole pages of 4 KiB.
    pub bytes: usize,
    /// The thread that writes it first, and thereby says where it lies.
    pub loader: usize,
}

/// What a thread does next. Places are shares of the piece's lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Reads every line of a piece, `times` times, each time from `from` (0 to 1) to its end and
    /// on from its start.
    Scan {
        /// The piece.
        piece: usize,
        /// Where it starts.
        from: f64,
        /// How often.
        times: usize,
    },
    /// Reads so many lines of a piece, each as likely as another.
    Gather {
        /// The piece.
        piece: usize,
        /// How many.
        lines: usize,
        /// The same seed gives the same lines.
        seed: u64,
    },
    /// Writes every line of a piece.
    Write {
        /// The piece.
        piece: usize,
    },
}

impl Step {
    /// The piece it goes through.
    pub fn piece(&self) -> usize {
        match self {
            Step::Scan { piece, .. } | Step::Gather { piece, .. } | Step::Write { piece } => *piece,
        }
    }
}

/// Data, and what each thread does with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The data.
    pub pieces: Vec<Piece>,
    /// The steps of each thread.
    pub threads: Vec<Vec<Step>>,
}

impl Plan {
    /// Lines that the steps touch, counting each as often as it is touched.
    pub fn touches(&self) -> usize {
        let lines = |piece: usize| self.pieces.get(piece).map_or(0, |piece| piece.bytes / LINE);
        let touches = |step: &Step| match step {
            Step::Scan { piece, times, .. } => lines(*piece) * times,
            Step::Gather { lines, .. } => *lines,
            Step::Write { piece } => lines(*piece),
        };
        self.threads.iter().flatten().map(touches).sum()
    }

    /// Bytes of all pieces.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }
}

/// A plan, and the placements to carry it out under: for each placement the cpus of each thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What to do.
    pub plan: Plan,
    /// Where.
    pub placements: Vec<Vec<Vec<u32>>>,
}
