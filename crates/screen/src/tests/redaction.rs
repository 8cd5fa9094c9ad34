//! What is left when the findings are taken out.

use super::{check, findings, sample};
use crate::redacted;

fn clean(text: &str) -> String {
    redacted(text, &findings(text))
}

#[test]
fn redaction_says_what_was_there_and_keeps_the_rest() {
    let text = sample("# Deploy\r\n\n* key `AKIA{u16}`,\n* url postgres://ü:{a9}@db/x\n", 1);
    assert_eq!(
        clean(&text),
        "# Deploy\r\n\n* key `[redacted: aws-access-key]`,\n\
         * url postgres://ü:[redacted: connection-password]@db/x\n"
    );
}

#[test]
fn text_without_secrets_stays_as_it_is() {
    let text = "nothing to hide — 何もない\0\u{feff}\r\n";
    assert_eq!(clean(text), text);
    assert_eq!(clean(""), "");
}

#[test]
fn nothing_is_found_in_redacted_text() {
    let texts = [
        "password=\"{a20}\" token: {a32}, Bearer {a40}",
        "postgres://u:{a12}@h/x?token={a30}",
        "Server=a;Password={a12};Pwd={a12};Host=b;Pwd={a12}",
        "AKIA{u16} AKIA{u16},AKIA{u16};AKIA{u16}",
        "secret = ghp_{a36} = {a36}",
        "token: ghp_{a36} = \"{a36}\"",
        "whsec_{b30}/ghp_{a36}",
        "glc_{b40}=AccountKey={a30}",
        "-----BEGIN PRIVATE KEY-----\n{b64}\n-----END PRIVATE KEY-----sk-ant-{w40}",
        "-----BEGIN PRIVATE KEY-----\n{a20}: ghp_{a36}\n{b64}",
        "data:image/png;base64,{b40} ghp_{a36}",
    ];
    for (text, seed) in texts.iter().zip(0..) {
        let clean = clean(&sample(text, seed));
        assert_eq!(check(&clean), [], "{clean}");
    }
}

#[test]
fn overlapping_findings_are_redacted_as_one() {
    let text = sample("x://u:{a8}.ghp_{a36}.{a8}@h", 1);
    assert_eq!(clean(&text), "x://u:[redacted: github-token]@h");
}
