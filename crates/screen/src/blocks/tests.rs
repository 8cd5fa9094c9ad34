//! Private keys and what only looks like them.

use crate::tests::{check, sample, secrets_in};

/// Returns armor with a label around a body.
fn armored(label: &str, body: &str) -> String {
    let dashes = "-----";
    format!("{dashes}BEGIN {label}{dashes}\n{body}\n{dashes}END {label}{dashes}")
}

#[test]
fn every_label_of_a_private_key() {
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "DSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let key = armored(label, &sample("{b64}\n{b64}\n{b20}==", 1));
        assert_eq!(secrets_in(&format!("a\n{key}\nb")), [key.as_str()], "{label}");
    }
}

#[test]
fn public_things_in_the_same_armor() {
    for label in [
        "PUBLIC KEY",
        "RSA PUBLIC KEY",
        "CERTIFICATE",
        "CERTIFICATE REQUEST",
        "PGP PUBLIC KEY BLOCK",
        "PGP SIGNATURE",
        "DH PARAMETERS",
        "X509 CRL",
    ] {
        let block = armored(label, &sample("{b64}\n{b64}\n{b20}==", 1));
        assert_eq!(check(&block), [], "{label}");
    }
}

#[test]
fn a_key_without_material_is_a_quotation() {
    for body in ["...", "(key material)", "<base64>", "MII...", "", "your key here", "* * *"] {
        assert_eq!(check(&armored("PRIVATE KEY", body)), [], "{body}");
    }
}

#[test]
fn a_short_made_up_key_counts_if_it_is_closed() {
    let body = sample("{b16}", 2);
    assert_eq!(check(&armored("PRIVATE KEY", &body)), [("private-key", 1)]);
    let open = armored("PRIVATE KEY", &body);
    let open = open.split("-----END").next().unwrap_or_default();
    assert_eq!(check(open), []);
}

#[test]
fn the_last_line_of_another_block_does_not_end_a_key() {
    let body = sample("{b64}\n{b64}", 3);
    let certificate = armored("CERTIFICATE", &sample("{b64}", 4));
    let text = armored("PRIVATE KEY", &format!("{body}\n{certificate}\n{body}"));
    assert_eq!(secrets_in(&text), [text.as_str()]);
}

#[test]
fn several_keys_are_several_findings() {
    let key = |seed| armored("EC PRIVATE KEY", &sample("{b64}\n{b30}==", seed));
    let text = format!("{}\n\n{}\n", key(1), key(2));
    assert_eq!(check(&text), [("private-key", 1), ("private-key", 6)]);
}

#[test]
fn headers_may_precede_the_material() {
    for headers in [
        "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n",
        "Version: GnuPG v2\nComment: x\n\n",
        "Comment: a (b, c)\n",
    ] {
        let key = armored("RSA PRIVATE KEY", &format!("{headers}{}", sample("{b64}\n{b64}", 5)));
        assert_eq!(secrets_in(&key), [key.as_str()], "{headers}");
    }
}
