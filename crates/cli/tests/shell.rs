//! The interactive shell, on a terminal of its own.

mod atoll;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::time::{Duration, Instant};

use atoll::Folder;

/// The shell and the other end of its terminal.
struct Shell {
    child: Child,
    terminal: File,
    seen: String,
}

impl Shell {
    fn start(folder: &Folder) -> Shell {
        let (mut ours, mut theirs) = (0, 0);
        use std::ptr::{null, null_mut};
        // SAFETY: the two numbers are valid for writing; the other arguments may be null.
        let opened = unsafe { libc::openpty(&mut ours, &mut theirs, null_mut(), null(), null()) };
        assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: both were just opened and are owned by nobody else.
        let (terminal, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        let mut command = folder.command(&["sql", "s.atoll"]);
        command
            .env("TERM", "xterm")
            .stdin(theirs.try_clone().unwrap());
        command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
        // SAFETY: between fork and exec only two system calls are made, both async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        Shell {
            child: command.spawn().unwrap(),
            terminal,
            seen: String::new(),
        }
    }

    fn send(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the terminal has shown `text` since the last wait.
    #[track_caller]
    fn until(&mut self, text: &str) {
        let (started, mut buffer) = (Instant::now(), [0; 4096]);
        while !self.seen.contains(text) {
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "no {text:?} in {:?}",
                self.seen
            );
            let read = self.terminal.read(&mut buffer).unwrap_or(0);
            assert!(
                read > 0,
                "the shell ended without {text:?}: {:?}",
                self.seen
            );
            self.seen
                .push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        self.seen.clear();
    }
}

#[test]
fn the_shell_completes_spans_lines_and_cancels() {
    let folder = Folder::new();
    let mut shell = Shell::start(&folder);
    shell.until("atoll> ");
    shell.send("create table coral (depth int);\r");
    shell.until("done");
    shell.send("insert into coral values\r(3), (4);\r");
    shell.until("2 rows changed");
    shell.send("\\d coral\r");
    shell.until("depth  int");
    // Tables and columns are completed.
    shell.send("select sum(dep\t) + 1000 from cor\t;\r");
    shell.until("1007");
    shell.send("select nothing;\r");
    shell.until("no column \"nothing\"");
    shell.send("\\i none.sql\r");
    shell.until("cannot read");
    // Ctrl-C ends the statement, not the shell.
    shell.send("with recursive n as (select 1 as a union all select a + 1 from n) select count(*) from n;\r");
    std::thread::sleep(Duration::from_millis(1500));
    shell.send("\x03");
    shell.until("cancelled");
    shell.send("select 40 + 2;\r");
    shell.until("42");
    shell.send("\\q\r");
    assert_eq!(shell.child.wait().unwrap().code(), Some(0));
    let history = std::fs::read_to_string(folder.path(".local/state/atoll/history")).unwrap();
    assert!(history.contains("select 40 + 2;"), "{history}");
}
