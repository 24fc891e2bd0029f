//! The protocol of the guest's first process (init): frames of a kind, a length and that many bytes.

/// The longest frame that the first process sends is 32 KiB.
const LONGEST: usize = 1 << 20;

/// A frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The command is about to be run.
    Booted,
    /// Bytes of the command's standard output.
    Out(Vec<u8>),
    /// Bytes of the command's standard error.
    Err(Vec<u8>),
    /// The command has ended with this status.
    Exit(i32),
    /// Why the command could not be run.
    Failed(String),
}

/// Collects bytes until they make frames.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Takes bytes as they come; returns the frames that are complete.
    ///
    /// # Errors
    ///
    /// What is wrong with them, in half a sentence.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, String> {
        self.bytes.extend(bytes);
        let mut frames = Vec::new();
        let mut at = 0;
        while let Some([kind, a, b, c, d]) = self.bytes.get(at..at + 5) {
            let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            if length > LONGEST {
                return Err("its first process sent something that is not understood".to_owned());
            }
            let Some(content) = self.bytes.get(at + 5..at + 5 + length) else {
                break;
            };
            frames.push(frame(*kind, content)?);
            at += 5 + length;
        }
        self.bytes.drain(..at);
        Ok(frames)
    }
}

fn frame(kind: u8, content: &[u8]) -> Result<Frame, String> {
    let text = || String::from_utf8_lossy(content).into_owned();
    match kind {
        b'b' => Ok(Frame::Booted),
        b'o' => Ok(Frame::Out(content.to_vec())),
        b'e' => Ok(Frame::Err(content.to_vec())),
        b'm' => Ok(Frame::Failed(text())),
        b'x' => match text().parse() {
            Ok(status) => Ok(Frame::Exit(status)),
            Err(_) => Err(format!(
                "its first process sent '{}' as exit status",
                text()
            )),
        },
        _ => Err("its first process sent something that is not understood".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(frames: &[(u8, &[u8])]) -> Vec<u8> {
        let mut all = Vec::new();
        for (kind, content) in frames {
            all.push(*kind);
            all.extend((content.len() as u32).to_le_bytes());
            all.extend(*content);
        }
        all
    }

    proptest! {
        #[test]
        fn frames_do_not_depend_on_how_the_bytes_are_cut(
            cuts in proptest::collection::vec(1usize..9, 0..40),
        ) {
            let all = bytes(&[(b'b', b"1.5"), (b'o', b"hello"), (b'e', b""), (b'x', b"139")]);
            let mut decoder = Decoder::default();
            let mut frames = Vec::new();
            let mut rest = &all[..];
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                frames.extend(decoder.take(now).unwrap());
                rest = later;
            }
            frames.extend(decoder.take(rest).unwrap());
            prop_assert_eq!(frames, [
                Frame::Booted,
                Frame::Out(b"hello".to_vec()),
                Frame::Err(Vec::new()),
                Frame::Exit(139),
            ]);
        }

        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Decoder::default().take(&bytes);
        }
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for wrong in [
            bytes(&[(b'?', b"")]),
            bytes(&[(b'x', b"one")]),
            vec![b'o', 0, 0, 0, 255],
        ] {
            assert!(Decoder::default().take(&wrong).is_err(), "{wrong:?}");
        }
    }
}
