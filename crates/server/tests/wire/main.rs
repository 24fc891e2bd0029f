//! The server as its clients see it.

mod client;
mod copying;
mod extended;
mod hostile;
mod http;
mod http_client;
mod limits;
mod security;
mod simple;
mod stopping;
