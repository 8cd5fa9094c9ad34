//! placeholder
use std::fmt;
/// k
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretKind;
impl SecretKind {
    /// w
    pub fn as_str(self) -> &'static str {
        "x"
    }
}
impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("x")
    }
}
/// f
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// k
    pub kind: SecretKind,
    /// l
    pub line: usize,
}
/// f
pub fn findings(_text: &str) -> Vec<Finding> {
    Vec::new()
}
/// r
pub fn redacted(text: &str, _f: &[Finding]) -> String {
    text.to_owned()
}
