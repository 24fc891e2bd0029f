//! A server that speaks PostgreSQL's protocol, HTTP and Arrow Flight SQL, so that `psql` and the drivers of any language
//! reach a database.
//!
//! ```
//! use std::io::{Read, Write};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("reef.atoll");
//! let database = atoll::Database::create(&path, &atoll::Options::default())?;
//! let mut options = server::Options::default();
//! options.listen.set_port(0);
//! let server = server::Server::start(database, options)?;
//!
//! // What every client says first: the version of the protocol, its length before it, and who it is.
//! let mut client = std::net::TcpStream::connect(server.address())?;
//! client.write_all(b"\0\0\0\x12\0\x03\0\0user\0ann\0\0")?;
//! let mut answer = [0; 1];
//! client.read_exact(&mut answer)?;
//! assert_eq!(answer, *b"R", "it is let in");
//! server.stop();
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! Each client has a session of the database and a thread, which waits for messages, and for batches of rows from the
//! workers, which it writes to the socket as it gets them. So a client that reads slowly holds its own statement back and
//! nobody else: 64 KiB wait for it, and the few batches of its statement's queue. Computing is the workers' affair; there is
//! no second asynchronous runtime.
//!
//! One more thread watches all sessions: it finds clients that have gone while their statement runs, statements and idle
//! transactions that take too long, and interrupts again what was asked to stop and has not. A client's request to
//! cancel comes by a connection of its own and takes effect at once.
//!
//! # Layers
//!
//! ```text
//! listen      listening, stopping
//! http        statements as JSON, and a page for a browser
//! flight      Arrow Flight SQL
//! client      one client: login, queries, prepared statements, copy, settings
//! metrics, accept
//! shared      what clients share
//! seen        what somebody may know of
//! guests      connections by which nobody was let in yet   files  whether those of the store are there
//! admission   who is let in            limits  what they may have
//! sessions    who is there, what they do, how they are asked to stop
//! errors      PostgreSQL's codes
//! security    users, SCRAM, TLS          values   between Arrow and the protocol
//! wire        messages as bytes           http2    streams over a connection
//! options, error, weight
//! ```

mod accept;
mod admission;
mod client;
mod error;
mod errors;
mod files;
mod flight;
mod guests;
mod http;
mod http2;
mod limits;
mod listen;
mod metrics;
mod options;
mod outcome;
mod security;
mod seen;
mod sessions;
mod shared;
mod values;
mod weight;
mod wire;

pub use error::{Error, Result};
pub use listen::Server;
pub use options::Options;
pub use security::users::add_user;
