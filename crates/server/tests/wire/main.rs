//! The server as its clients see it.

mod client;
mod codes;
mod committing;
mod copying;
mod cursors;
mod extended;
mod flight;
mod flight_client;
mod flight_hostile;
mod flight_limits;
mod hostile;
mod http;
mod http_client;
mod limits;
mod locks;
mod origins;
mod panics;
mod plans;
mod roles;
mod security;
mod settings;
mod simple;
mod stopping;
mod user_limits;
