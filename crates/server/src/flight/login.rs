//! Who calls: a name and a password, or the token that they were exchanged for.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::Mutex;

use crate::errors;
use crate::flight::call::Headers;
use crate::flight::status::Ended;
use crate::security::basic;
use crate::security::identity::Identity;
use crate::shared::Shared;
use crate::wire::backend::Report;

/// How long a token lasts that nobody uses.
const LASTS: Duration = Duration::from_secs(24 * 3600);

/// Most tokens; the one that was not used for the longest time makes room.
const MOST: usize = 10_000;

/// Who calls whoever has no name: there are no users.
const ANYBODY: &str = "atoll";

#[derive(Debug)]
struct Token {
    who: Identity,
    used: Instant,
}

/// Tokens, and whose they are.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Mutex<HashMap<String, Token>>);

impl Tokens {
    /// A new token for somebody who was let in.
    fn give(&self, who: &Identity) -> Result<String, Ended> {
        let mut bytes = [0; 32];
        scram::fill(&mut bytes).map_err(|reason| Report::error(errors::INTERNAL, reason))?;
        let token = BASE64.encode(bytes);
        let mut all = self.0.lock();
        if all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, token)| token.used);
            if let Some(oldest) = oldest.map(|(text, _)| text.clone()) {
                all.remove(&oldest);
            }
        }
        let (who, used) = (who.clone(), Instant::now());
        all.insert(token.clone(), Token { who, used });
        Ok(token)
    }

    /// Whose token this is.
    fn holder(&self, token: &str) -> Option<Identity> {
        let mut all = self.0.lock();
        let known = all.get_mut(token)?;
        if known.used.elapsed() > LASTS {
            all.remove(token);
            return None;
        }
        known.used = Instant::now();
        Some(known.who.clone())
    }

    /// A token is of no use any more.
    pub(crate) fn forget(&self, headers: &Headers) {
        if let Some(token) = headers.get("authorization").and_then(bearer) {
            self.drop_one(token);
        }
    }

    fn drop_one(&self, token: &str) {
        self.0.lock().remove(token);
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

/// Whose call has these headers.
///
/// # Errors
/// If it may not call.
pub(crate) fn admit(
    shared: &Shared,
    tokens: &Tokens,
    headers: &Headers,
) -> Result<Identity, Ended> {
    let refused = |message: String| Report::error(errors::NOT_LET_IN, message).into();
    let Some(given) = headers.get("authorization") else {
        return if shared.admission.asks(&shared.database)? {
            Err(refused("name a user and the password".into()))
        } else {
            Ok(Identity::unasked(ANYBODY))
        };
    };
    if let Some(token) = bearer(given) {
        let who = tokens.holder(token);
        let who = who.ok_or_else(|| refused("the token is not known: log in again".into()))?;
        // It stands for who was let in then, and not for whoever has that name now.
        let still = shared.admission.check_again(&shared.database, &who);
        still.inspect_err(|_| tokens.drop_one(token))?;
        return Ok(who);
    }
    let Some((name, password)) = basic::read(given) else {
        return Err(refused(
            "name a user and the password: Basic, or Bearer and a token".into(),
        ));
    };
    if !shared.admission.asks(&shared.database)? {
        let nobody = name.is_empty();
        return Ok(Identity::unasked(if nobody {
            ANYBODY
        } else {
            name.as_str()
        }));
    }
    let admitted = shared.admission.admit(&shared.database, &name, &password);
    Ok(admitted.inspect_err(|_| shared.counts.failed_logins.add(1))?)
}

/// The headers of an answer to who has logged in: the token.
///
/// # Errors
/// If there are no random numbers.
pub(crate) fn welcome(tokens: &Tokens, who: &Identity) -> Result<(&'static str, String), Ended> {
    Ok(("authorization", format!("Bearer {}", tokens.give(who)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> Headers {
        Headers::new(vec![(b"authorization".to_vec(), value.as_bytes().to_vec())])
    }

    #[test]
    fn tokens_are_known_until_they_are_forgotten() {
        let tokens = Tokens::default();
        let (ann, bob) = (Identity::unasked("ann"), Identity::unasked("bob"));
        let token = tokens.give(&ann).unwrap();
        let other = tokens.give(&bob).unwrap();
        assert_ne!(token, other);
        assert_eq!(tokens.holder(&token).as_ref(), Some(&ann));
        assert_eq!(tokens.holder("x"), None);
        tokens.forget(&headers(&format!("Bearer {token}")));
        assert_eq!(tokens.holder(&token), None);
        assert_eq!(tokens.holder(&other), Some(bob));
        for _ in 0..MOST + 10 {
            tokens.give(&ann).unwrap();
        }
        assert_eq!(tokens.0.lock().len(), MOST);
    }
}
