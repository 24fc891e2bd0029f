//! What is typed and must not be seen.

/// Shows again what is typed when it is dropped.
#[must_use]
pub struct Hidden(Option<libc::termios>);

/// Has the terminal not show what is typed, if standard input is one.
pub fn hide() -> Hidden {
    // SAFETY: all bits zero are a value of this struct, which the kernel then fills in.
    let mut before: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one termios, which lives on this stack; 0 is standard input.
    if unsafe { libc::tcgetattr(0, &raw mut before) } != 0 {
        return Hidden(None);
    }
    let mut hidden = before;
    hidden.c_lflag &= !libc::ECHO;
    // SAFETY: the kernel reads one termios.
    unsafe { libc::tcsetattr(0, libc::TCSANOW, &raw const hidden) };
    Hidden(Some(before))
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: the kernel reads one termios.
            unsafe { libc::tcsetattr(0, libc::TCSANOW, before) };
        }
    }
}
