//! HTTP/2 (RFC 9113), the server's side, as far as calls of gRPC need it.
//!
//! A [`connection`](connection::Connection) has a thread that reads and one that writes, so that what the client must be
//! told at once never waits for what it is slow to read. What happens between them is one [`state`] behind a mutex;
//! each call has a thread and a [`Stream`](connection::Stream). [`outgoing`] is what is sent; [`frame`] and [`hpack`] are the bytes, [`duplex`] the
//! socket, with TLS or without.

pub(crate) mod connection;
mod duplex;
mod frame;
mod hpack;
mod huffman;
mod outgoing;
mod state;
