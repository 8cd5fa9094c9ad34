//! The digest of a certificate that a password proves to be known at both ends of a connection.
//!
//! This is `tls-server-end-point` of RFC 5929, which PostgreSQL calls channel binding. The digest is made with
//! the algorithm by which the certificate is signed, except that SHA-256 replaces what is weaker.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// PKCS #1 signatures with RSA end with the number of the digest.
const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ECDSA_WITH_SHA1: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
const ECDSA_WITH_SHA2: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];

/// Returns the digest; `None` if the signature names none, as those with Ed25519.
pub(super) fn digest(certificate: &[u8]) -> Option<Vec<u8>> {
    let (fields, _) = element(certificate, SEQUENCE)?;
    let (_, fields) = element(fields, SEQUENCE)?;
    let (algorithm, _) = element(fields, SEQUENCE)?;
    let (algorithm, _) = element(algorithm, OBJECT_IDENTIFIER)?;
    let sha256 = || Sha256::digest(certificate).to_vec();
    let sha384 = || Sha384::digest(certificate).to_vec();
    let sha512 = || Sha512::digest(certificate).to_vec();
    if let Some(&[number]) = algorithm.strip_prefix(&RSA) {
        return match number {
            4 | 5 | 11 => Some(sha256()),
            12 => Some(sha384()),
            13 => Some(sha512()),
            _ => None,
        };
    }
    if algorithm == ECDSA_WITH_SHA1 {
        return Some(sha256());
    }
    match algorithm.strip_prefix(&ECDSA_WITH_SHA2)? {
        [2] => Some(sha256()),
        [3] => Some(sha384()),
        [4] => Some(sha512()),
        _ => None,
    }
}

/// Returns the content of the first element of DER, which must have this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(length) {
        short @ ..0x80 => (short, rest),
        long => {
            let (bytes, rest) = rest.split_at_checked(long - 0x80)?;
            let add = |length: usize, byte: &u8| {
                length.checked_mul(256).map(|length| length + usize::from(*byte))
            };
            (bytes.iter().try_fold(0, add)?, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    (first == tag).then_some((content, rest))
}
