//! Writes cpio archives ("newc"), which the kernel unpacks as its initial file system.

/// An archive under construction.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    /// Adds a directory; its parents must have been added before.
    pub(crate) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, &[]);
    }

    /// Adds a file.
    pub(crate) fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE, content);
    }

    /// Adds a file that can be executed.
    pub(crate) fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, content);
    }

    /// The archive. Several may follow one another.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.pad(512);
        self.bytes
    }

    /// A header of 13 numbers in 8 hexadecimal digits, the name, the content; each padded to 4.
    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        assert!(content.len() < 1 << 31, "{path} is too large for the image");
        self.entries += 1;
        let links = 1;
        let name = path.len() as u32 + 1;
        let numbers = [
            self.entries,
            mode,
            0, // owner
            0, // group
            links,
            0, // time
            content.len() as u32,
            0, // device of the file system, two numbers
            0,
            0, // device that a special file stands for, two numbers
            0,
            name,
            0, // checksum, not used in this variant
        ];
        self.bytes.extend(b"070701");
        for number in numbers {
            self.bytes.extend(format!("{number:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad(4);
        self.bytes.extend(content);
        self.pad(4);
    }

    fn pad(&mut self, to: usize) {
        let length = self.bytes.len().next_multiple_of(to);
        self.bytes.resize(length, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_say_their_size() {
        let mut archive = Archive::default();
        archive.directory("job");
        archive.file("job/cwd", b"/tmp");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 512, 0);
        let text = String::from_utf8(bytes).unwrap();
        let heads: Vec<usize> = text.match_indices("070701").map(|(at, _)| at).collect();
        assert_eq!(heads.len(), 3);
        assert!(heads.iter().all(|at| at % 4 == 0));
        assert_eq!(&text[heads[1] + 54..heads[1] + 62], "00000004");
        assert_eq!(&text[heads[1] + 110..heads[1] + 117], "job/cwd");
        assert_eq!(&text[heads[1] + 120..heads[1] + 124], "/tmp");
    }
}
