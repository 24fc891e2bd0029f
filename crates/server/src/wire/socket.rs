//! What the standard library does not ask of a socket.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Whether the other end has closed the connection, or is gone. What it has sent before may still be there to read.
pub(crate) fn is_gone(socket: &TcpStream) -> bool {
    let mut asked = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLRDHUP,
        revents: 0,
    };
    // SAFETY: the kernel reads and writes the one entry, which lives on this stack; it does not wait.
    let found = unsafe { libc::poll(&raw mut asked, 1, 0) };
    found > 0 && asked.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0
}

/// Asks the system to look, after a minute of silence, whether the other end is still there.
///
/// # Errors
/// Those of the system.
pub(crate) fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    let set = |level: libc::c_int, name: libc::c_int, value: libc::c_int| {
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the kernel reads one number of the size that is given.
        let done = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                level,
                name,
                (&raw const value).cast(),
                size,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 60)?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10)?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6)
}
