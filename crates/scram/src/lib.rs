//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side: the client proves that it knows a password of which the server
//! has only a verifier, and the server that it has the verifier.
//!
//! ```
//! use scram::Verifier;
//!
//! # fn main() -> Result<(), String> {
//! let kept = Verifier::new("reef")?.text();
//! assert!(!kept.contains("reef"));
//! let verifier = Verifier::read(&kept).ok_or("it is one")?;
//! assert!(verifier.fits("reef") && !verifier.fits("Reef"));
//! # Ok(())
//! # }
//! ```

use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};

/// The only mechanism.
pub const MECHANISM: &str = "SCRAM-SHA-256";

/// Rounds of hashing for new verifiers: what PostgreSQL takes.
const ROUNDS: u32 = 4096;

/// Most rounds that a client is asked for.
const MOST_ROUNDS: u32 = 10_000_000;

const KEY: usize = digest::SHA256_OUTPUT_LEN;

/// What is kept of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    rounds: u32,
    salt: Vec<u8>,
    stored: [u8; KEY],
    server: [u8; KEY],
}

/// Why a client is not let in. It is told no more than that.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not know the password.
    Password,
    /// It does not speak SCRAM.
    Protocol(&'static str),
}

impl Verifier {
    /// A verifier of `password`, with a new salt.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(password: &str) -> Result<Verifier, String> {
        let mut salt = [0; 16];
        fill(&mut salt)?;
        Ok(Verifier::with(password, &salt, ROUNDS))
    }

    fn with(password: &str, salt: &[u8], rounds: u32) -> Verifier {
        let salted = salted(password, salt, rounds);
        let stored = digest::digest(&digest::SHA256, &mac(&salted, &[b"Client Key"]));
        let mut verifier = Verifier {
            rounds,
            salt: salt.to_vec(),
            stored: [0; KEY],
            server: mac(&salted, &[b"Server Key"]),
        };
        verifier.stored.copy_from_slice(stored.as_ref());
        verifier
    }

    /// Whether it was made of `password`. It takes as long whether it was or not.
    pub fn fits(&self, password: &str) -> bool {
        let salted = salted(password, &self.salt, self.rounds);
        let stored = digest::digest(&digest::SHA256, &mac(&salted, &[b"Client Key"]));
        same(stored.as_ref(), &self.stored)
    }

    /// A verifier of no password for a name that nobody has: whoever tries it learns nothing, not even that. It is the
    /// same whenever `secret` is.
    pub fn of_nobody(secret: &[u8; KEY], name: &str) -> Verifier {
        Verifier {
            rounds: ROUNDS,
            salt: mac(secret, &[b"salt", name.as_bytes()])[..16].to_vec(),
            stored: mac(secret, &[b"stored", name.as_bytes()]),
            server: mac(secret, &[b"server", name.as_bytes()]),
        }
    }

    /// The verifier that `text` is: `SCRAM-SHA-256$rounds:salt$stored:server`, as PostgreSQL writes it.
    pub fn read(text: &str) -> Option<Verifier> {
        let rest = text.strip_prefix("SCRAM-SHA-256$")?;
        let (first, second) = rest.split_once('$')?;
        let (rounds, salt) = first.split_once(':')?;
        let (stored, server) = second.split_once(':')?;
        let rounds = rounds
            .parse()
            .ok()
            .filter(|n| (1..=MOST_ROUNDS).contains(n))?;
        let key = |text: &str| BASE64.decode(text).ok()?.try_into().ok();
        Some(Verifier {
            rounds,
            salt: BASE64.decode(salt).ok().filter(|salt| !salt.is_empty())?,
            stored: key(stored)?,
            server: key(server)?,
        })
    }

    /// The text from which [`read`](Verifier::read) makes it again.
    pub fn text(&self) -> String {
        format!(
            "SCRAM-SHA-256${}:{}${}:{}",
            self.rounds,
            BASE64.encode(&self.salt),
            BASE64.encode(self.stored),
            BASE64.encode(self.server)
        )
    }
}

/// A login under way.
#[derive(Debug)]
pub struct Login {
    verifier: Verifier,
    /// What the client said about binding, which it must repeat.
    binding: String,
    nonce: String,
    /// The first messages of both, as they are signed.
    signed: String,
}

impl Login {
    /// The server's answer to the client's first message.
    ///
    /// # Errors
    /// If it is none.
    pub fn begin(verifier: Verifier, first: &str) -> Result<(Login, String), Refused> {
        let mut nonce = [0; 18];
        fill(&mut nonce).map_err(|_| Refused::Protocol("no random numbers"))?;
        Login::with_nonce(verifier, first, &BASE64.encode(nonce))
    }

    fn with_nonce(verifier: Verifier, first: &str, own: &str) -> Result<(Login, String), Refused> {
        let malformed = Refused::Protocol("malformed SCRAM message");
        let (flag, rest) = first.split_once(',').ok_or(malformed)?;
        // `y`: the client could bind, and believes that the server cannot, which is so.
        if !matches!(flag, "n" | "y") {
            return Err(Refused::Protocol("channel binding is not supported"));
        }
        let malformed = || Refused::Protocol("malformed SCRAM message");
        let (authority, bare) = rest.split_once(',').ok_or_else(malformed)?;
        if !authority.is_empty() {
            return Err(Refused::Protocol("authorization identity is not supported"));
        }
        let mut parts = bare.split(',');
        let name = parts.next().filter(|part| part.starts_with("n="));
        let theirs = parts.next().and_then(|part| part.strip_prefix("r="));
        let (Some(_), Some(theirs)) = (name, theirs) else {
            return Err(malformed());
        };
        if theirs.is_empty() || !theirs.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(malformed());
        }
        let nonce = format!("{theirs}{own}");
        let salt = BASE64.encode(&verifier.salt);
        let answer = format!("r={nonce},s={salt},i={}", verifier.rounds);
        let login = Login {
            verifier,
            binding: BASE64.encode(format!("{flag},,")),
            signed: format!("{bare},{answer}"),
            nonce,
        };
        Ok((login, answer))
    }

    /// The server's answer to the client's proof.
    ///
    /// # Errors
    /// [`Refused::Password`] if it proves nothing.
    pub fn finish(self, last: &str) -> Result<String, Refused> {
        let malformed = || Refused::Protocol("malformed SCRAM message");
        let (unproved, proof) = last.rsplit_once(",p=").ok_or_else(malformed)?;
        let mut parts = unproved.split(',');
        let binding = parts.next().and_then(|part| part.strip_prefix("c="));
        let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
        if binding != Some(self.binding.as_str()) {
            return Err(Refused::Protocol("channel binding does not match"));
        }
        if nonce != Some(self.nonce.as_str()) {
            return Err(Refused::Protocol("nonce does not match"));
        }
        let proof: [u8; KEY] = BASE64
            .decode(proof)
            .ok()
            .and_then(|proof| proof.try_into().ok())
            .ok_or_else(malformed)?;
        let message = format!("{},{unproved}", self.signed);
        let signature = mac(&self.verifier.stored, &[message.as_bytes()]);
        let mut key = [0; KEY];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = proof[at] ^ signature[at];
        }
        let stored = digest::digest(&digest::SHA256, &key);
        if !same(stored.as_ref(), &self.verifier.stored) {
            return Err(Refused::Password);
        }
        let signature = mac(&self.verifier.server, &[message.as_bytes()]);
        Ok(format!("v={}", BASE64.encode(signature)))
    }
}

fn salted(password: &str, salt: &[u8], rounds: u32) -> [u8; KEY] {
    let mut salted = [0; KEY];
    let rounds = NonZeroU32::new(rounds).unwrap_or(NonZeroU32::MIN);
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, rounds, salt, password.as_bytes(), &mut salted);
    salted
}

/// The secret from which [verifiers of nobody](Verifier::of_nobody) are made where `kept` is what is kept for good and told
/// to nobody: an unknown user has the same salt after a restart, as a known one has.
pub fn secret_of(kept: &[u8]) -> [u8; KEY] {
    mac(kept, &[b"verifiers of nobody"])
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; KEY] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in parts {
        context.update(part);
    }
    let mut tag = [0; KEY];
    tag.copy_from_slice(context.sign().as_ref());
    tag
}

/// Whether two secrets are the same. How long it takes tells only whether their lengths are.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    let differs = a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differs) == 0
}

/// Fills `bytes` with random ones.
///
/// # Errors
/// If the system has none.
pub fn fill(bytes: &mut [u8]) -> Result<(), String> {
    SystemRandom::new()
        .fill(bytes)
        .map_err(|_| "the system gives no random numbers".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client that knows `password` answers.
    fn proof(password: &str, first: &str, answer: &str) -> String {
        let part = |key: &str| {
            let mut parts = answer.split(',');
            parts
                .find_map(|part| part.strip_prefix(key))
                .unwrap()
                .to_string()
        };
        let salt = BASE64.decode(part("s=")).unwrap();
        let salted = salted(password, &salt, part("i=").parse().unwrap());
        let key = mac(&salted, &[b"Client Key"]);
        let stored = digest::digest(&digest::SHA256, &key);
        let unproved = format!("c=biws,r={}", part("r="));
        let bare = first.strip_prefix("n,,").unwrap();
        let message = format!("{bare},{answer},{unproved}");
        let signature = mac(stored.as_ref(), &[message.as_bytes()]);
        let proof: Vec<u8> = key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        format!("{unproved},p={}", BASE64.encode(proof))
    }

    /// The example of RFC 7677.
    #[test]
    fn the_example_of_the_standard() {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::with("pencil", &salt, 4096);
        let first = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let own = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let (login, answer) = Login::with_nonce(verifier, first, own).unwrap();
        assert_eq!(
            answer,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(
            login.finish(last).unwrap(),
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
    }

    #[test]
    fn only_who_knows_the_password_gets_in() {
        let verifier = Verifier::new("reef").unwrap();
        let first = "n,,n=,r=abc";
        for (password, lets_in) in [("reef", true), ("Reef", false), ("", false)] {
            let (login, answer) = Login::begin(verifier.clone(), first).unwrap();
            let finished = login.finish(&proof(password, first, &answer));
            assert_eq!(finished.is_ok(), lets_in, "{password}: {finished:?}");
        }
        let (login, answer) = Login::begin(Verifier::of_nobody(&[7; 32], "x"), first).unwrap();
        assert_eq!(
            login.finish(&proof("", first, &answer)),
            Err(Refused::Password)
        );
    }

    #[test]
    fn malformed_messages_are_refused() {
        let verifier = Verifier::new("reef").unwrap();
        for first in [
            "",
            "n",
            "n,,",
            "n,,n=x",
            "n,,r=x,n=",
            "n,a=b,n=,r=x",
            "p=tls-unique,,n=,r=x",
            "n,,n=,r=",
        ] {
            let begun = Login::begin(verifier.clone(), first);
            assert!(matches!(begun, Err(Refused::Protocol(_))), "{first}");
        }
        for last in [
            "",
            "c=biws",
            "c=biws,r=abc,p=x",
            "c=eSws,r=abc,p=AAAA",
            ",p=",
        ] {
            let (login, _) = Login::begin(verifier.clone(), "n,,n=,r=abc").unwrap();
            assert!(login.finish(last).is_err(), "{last}");
        }
    }

    #[test]
    fn verifiers_are_read_as_they_are_written() {
        let verifier = Verifier::new("reef").unwrap();
        assert_eq!(Verifier::read(&verifier.text()), Some(verifier.clone()));
        assert!(!verifier.text().contains("reef"));
        for wrong in [
            "",
            "reef",
            "md5abc",
            "SCRAM-SHA-256$0:AAAA$AAAA:AAAA",
            "SCRAM-SHA-256$1:$:",
        ] {
            assert_eq!(Verifier::read(wrong), None, "{wrong}");
        }
    }
}
