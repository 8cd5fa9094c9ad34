//! Who did it.

use std::fmt;
use std::str::FromStr;

use super::{KeyId, SessionId};

/// Who made a version or a redaction. Recorded once and never changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// An agent, in one of its sessions.
    Session(SessionId),
    /// A program with a key.
    ApiKey(KeyId),
    /// A person, at the command line or in the inspector.
    User(PrincipalName),
    /// A part of Quipu or of the host that acts on its own.
    ServiceAccount(PrincipalName),
}

impl Actor {
    /// Returns the actor that deletes expired memories.
    pub fn expiry() -> Self {
        Self::ServiceAccount(PrincipalName("expiry".to_owned()))
    }

    /// Returns the name of a person who has signed in at a browser with a key, and the key; `None` for
    /// everybody else.
    pub fn signed_in(&self) -> Option<(&str, KeyId)> {
        match self {
            Self::User(PrincipalName(name)) => {
                let (person, key) = name.rsplit_once('@')?;
                Some((person, key.parse().ok()?))
            }
            Self::Session(_) | Self::ApiKey(_) | Self::ServiceAccount(_) => None,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => fmt::Display::fmt(id, f),
            Self::ApiKey(id) => fmt::Display::fmt(id, f),
            Self::User(name) => f.pad(&format!("user_{name}")),
            Self::ServiceAccount(name) => f.pad(&format!("svac_{name}")),
        }
    }
}

/// The error for a text that is not an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseActorError;

impl fmt::Display for ParseActorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an actor is an id that begins with `sesn_`, `apikey_`, `user_` or `svac_`")
    }
}

impl std::error::Error for ParseActorError {}

impl FromStr for Actor {
    type Err = ParseActorError;

    /// Reads what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, ParseActorError> {
        let named = |prefix: &str| {
            text.strip_prefix(prefix).and_then(|name| PrincipalName::parse(name).ok())
        };
        let session = || text.parse().ok().map(Self::Session);
        let key = || text.parse().ok().map(Self::ApiKey);
        let user = || named("user_").map(Self::User);
        let service = || named("svac_").map(Self::ServiceAccount);
        session().or_else(key).or_else(user).or_else(service).ok_or(ParseActorError)
    }
}

/// The name of a person or a service, the part after `user_` or `svac_`.
///
/// Quipu has no user accounts, so the name comes from the host, such as a login name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalName(String);

const PRINCIPAL_NAME_SIZE_BYTES_MAX: usize = 64;

impl PrincipalName {
    /// Returns the text as a name if it is 1 to 64 ASCII letters, digits, `.`, `_`, `@` or `-`.
    pub fn parse(text: &str) -> Result<Self, PrincipalNameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._@-".contains(&byte);
        if text.is_empty()
            || text.len() > PRINCIPAL_NAME_SIZE_BYTES_MAX
            || !text.bytes().all(allowed)
        {
            return Err(PrincipalNameError);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the closest valid name to any text: other characters become `-`.
    pub fn from_host(text: &str) -> Self {
        let name: String = text
            .chars()
            .take(PRINCIPAL_NAME_SIZE_BYTES_MAX)
            .map(|character| match character {
                '.' | '_' | '@' => character,
                _ if character.is_ascii_alphanumeric() => character,
                _ => '-',
            })
            .collect();
        Self(if name.is_empty() { "local".to_owned() } else { name })
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PrincipalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The error for a text that is not a valid name of a person or a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrincipalNameError;

impl fmt::Display for PrincipalNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a user or service name has 1 to {PRINCIPAL_NAME_SIZE_BYTES_MAX} ASCII letters, \
             digits, `.`, `_`, `@` or `-`"
        )
    }
}

impl std::error::Error for PrincipalNameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_read_as_their_ids() {
        assert_eq!(Actor::User(PrincipalName::from_host("ada")).to_string(), "user_ada");
        assert_eq!(Actor::expiry().to_string(), "svac_expiry");
    }

    #[test]
    fn actors_are_read_back_from_their_text() {
        use super::super::Id as _;
        let actors = [
            Actor::Session(SessionId::from_bits(1)),
            Actor::ApiKey(KeyId::from_bits(2)),
            Actor::User(PrincipalName::from_host("ada")),
            Actor::expiry(),
        ];
        for actor in actors {
            assert_eq!(actor.to_string().parse(), Ok(actor));
        }
        assert_eq!("ada".parse::<Actor>(), Err(ParseActorError));
    }

    #[test]
    fn host_names_become_valid_names() {
        for text in ["", "DOMAIN\\ada", "josé", &"x".repeat(100)] {
            let name = PrincipalName::from_host(text);
            assert_eq!(PrincipalName::parse(name.as_str()), Ok(name));
        }
    }
}
