//! Cutting chunks into the pieces of threads.

use std::collections::VecDeque;

use super::division::{Chunk, Piece};
use super::goal::LEAST_PIECE;

/// Pieces one after the other, each with the weight of its bytes, from which threads take theirs.
pub(super) struct Tape<'c> {
    chunks: &'c [Chunk],
    /// Chunks with no more bytes are not cut.
    grain: f64,
    pieces: VecDeque<(Piece, f64)>,
}

impl<'c> Tape<'c> {
    /// An empty one.
    pub(super) fn new(chunks: &'c [Chunk], grain: f64) -> Tape<'c> {
        Tape {
            chunks,
            grain,
            pieces: VecDeque::new(),
        }
    }

    /// Adds pieces at its end.
    pub(super) fn put(&mut self, pieces: impl IntoIterator<Item = Piece>, weight: f64) {
        let weighted = pieces.into_iter().map(|piece| (piece, weight));
        self.pieces.extend(weighted);
    }

    /// The weighted bytes that are left.
    pub(super) fn weighted(&self) -> f64 {
        let one = |(piece, weight): &(Piece, f64)| piece.bytes() as f64 * weight;
        self.pieces.iter().map(one).sum()
    }

    /// Takes pieces from its front with about so many weighted bytes: as near as chunks may be cut.
    pub(super) fn take(&mut self, mut amount: f64) -> Vec<Piece> {
        let mut taken = Vec::new();
        while let Some((piece, weight)) = self.pieces.front_mut() {
            let weighted = piece.bytes() as f64 * *weight;
            // Half a byte: amounts are rounded.
            if weighted <= amount + 0.5 {
                amount -= weighted;
                taken.push(*piece);
                self.pieces.pop_front();
                continue;
            }
            let chunk = &self.chunks[piece.chunk];
            let end = if chunk.bytes as f64 <= self.grain {
                if amount * 2.0 >= weighted {
                    piece.to
                } else {
                    piece.from
                }
            } else {
                cut(chunk, piece, amount / *weight)
            };
            if end > piece.from {
                taken.push(Piece { to: end, ..*piece });
                piece.from = end;
            }
            if piece.from == piece.to {
                self.pieces.pop_front();
            }
            break;
        }
        taken
    }

    /// Takes all that is left.
    pub(super) fn rest(&mut self) -> Vec<Piece> {
        self.pieces.drain(..).map(|(piece, _)| piece).collect()
    }
}

/// The end of a part of a piece with about so many bytes, so that neither part is too small to be worth it.
fn cut(chunk: &Chunk, piece: &Piece, bytes: f64) -> u64 {
    let end = chunk.nearest_cut(piece.from + bytes as u64);
    let end = end.clamp(piece.from, piece.to);
    if end - piece.from < LEAST_PIECE {
        piece.from
    } else if piece.to - end < LEAST_PIECE {
        piece.to
    } else {
        end
    }
}
