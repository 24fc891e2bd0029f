//! How a server is set up.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// How a [`Server`](crate::Server) is set up.
///
/// ```
/// let mut options = server::Options::default();
/// assert!(options.listen.ip().is_loopback());
/// options.listen.set_port(0);
/// options.max_connections = 10;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Where clients connect; 127.0.0.1:5432 by default. Port 0 takes a free one. Another address than one of this
    /// machine alone needs `users`.
    pub listen: SocketAddr,
    /// The file of users, as [`add_user`](crate::add_user) writes it. Without one, whoever connects is let in.
    pub users: Option<PathBuf>,
    /// Files of a certificate, with those that vouch for it, and of its key, in PEM. Clients on other machines must use
    /// TLS then, those on this one may.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Where Prometheus asks for metrics: an address of this machine alone.
    pub metrics: Option<SocketAddr>,
    /// Where browsers and programs that speak HTTP connect, if anywhere. Another address than one of this machine alone
    /// needs `users` and `tls`.
    pub http: Option<SocketAddr>,
    /// Where clients of Arrow Flight SQL connect, if anywhere. Another address than one of this machine alone needs `users`
    /// and `tls`.
    pub flight: Option<SocketAddr>,
    /// Most sessions at a time; 256 by default. Whoever comes then is told so.
    pub max_connections: usize,
    /// How long a statement may take, unless its session says otherwise; no limit by default.
    pub statement_timeout: Option<Duration>,
    /// How long a transaction or a `copy` may wait for its client, unless its session says otherwise: others that write
    /// wait for it. 5 minutes by default; none or zero for no limit.
    pub idle_in_transaction_timeout: Option<Duration>,
    /// How long statements may take to end once the server is asked to stop; 10 seconds by default.
    pub grace: Duration,
    /// Whether statements of clients may read and write files of the server's machine; not by default.
    pub files: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 5432)),
            users: None,
            tls: None,
            metrics: None,
            http: None,
            flight: None,
            max_connections: 256,
            statement_timeout: None,
            idle_in_transaction_timeout: Some(Duration::from_secs(300)),
            grace: Duration::from_secs(10),
            files: false,
        }
    }
}
