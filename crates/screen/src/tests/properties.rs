//! What holds for every text.

use proptest::prelude::*;

use super::{ALNUM, BASE64, DIGITS, Dice, HEX, UPPER, WORD, check, findings, sample};
use crate::anchors::ANCHORS;
use crate::redacted;
use crate::tokens::FAMILIES;

/// The size limit of a memory.
const TEXT_SIZE_BYTES: usize = 100 * 1024;

/// What announces a credential, apart from the prefixes of tokens.
const MARKS: &str = "-----BEGIN PRIVATE KEY-----|-----END PRIVATE KEY-----|-----BEGIN X-----\
    |;base64,|://|postgres://u:|Server=|host=|;Password=| pwd=|Bearer |Basic |&sig=|12345678:A\
    |/bot123456789:AA|eyJhbGciOiJIUzI1NiJ9.eyJzdWIi|secret|Token|PASSWORD|pwd|credential|auth|pass\
    |api_key|apiKey|private key|Authorization|Proc-Type: 4\n";

/// What stands between the parts of texts.
const SEPARATORS: &str = " ¦=¦:¦ = ¦: ¦\"¦'¦`¦\n¦\\n¦-¦_¦.¦/¦@¦[¦]¦(¦)¦{¦}¦<¦>¦|¦,¦;¦&¦?¦%3D¦%¦$\
    ¦*¦é¦字¦--¦==¦:=¦ => ¦\\¦+¦~¦#¦[redacted: github-token]¦is ¦, \"¦\t";

/// Pieces of texts that come close to credentials.
fn piece() -> impl Strategy<Value = String> {
    let prefixes: Vec<_> = FAMILIES.iter().flat_map(|family| family.prefixes).copied().collect();
    let alphabets = prop::sample::select(vec![DIGITS, HEX, UPPER, ALNUM, WORD, BASE64]);
    let sizes = prop::sample::select(vec![4, 8, 16, 20, 22, 24, 32, 35, 36, 40, 43, 58, 64, 86]);
    let bodies = (alphabets, sizes, any::<u64>());
    let listed = |list: &'static str, by| prop::sample::select(list.split(by).collect::<Vec<_>>());
    prop_oneof![
        2 => prop::sample::select(prefixes).prop_map(str::to_owned),
        2 => listed(MARKS, '|').prop_map(str::to_owned),
        3 => listed(SEPARATORS, '¦').prop_map(str::to_owned),
        3 => bodies.prop_map(|(alphabet, size, seed)| Dice::new(seed).text(alphabet, size)),
    ]
}

fn close_to_credentials() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..16).prop_map(|pieces| pieces.concat())
}

/// Fails unless the findings are in order, on character boundaries and gone after redaction, and
/// everything between them is kept.
fn hold_together(text: &str) -> Result<(), TestCaseError> {
    let findings = findings(text);
    let clean = redacted(text, &findings);
    let (mut rest, mut end) = (clean.as_str(), 0);
    for finding in &findings {
        prop_assert!(end <= finding.span.start && finding.span.start < finding.span.end);
        prop_assert!(text.get(finding.span.clone()).is_some());
        let kept = text.get(end..finding.span.start).unwrap_or_default();
        let marker = format!("[redacted: {}]", finding.kind.as_str());
        let after = rest.strip_prefix(kept).and_then(|rest| rest.strip_prefix(&marker));
        prop_assert!(after.is_some());
        rest = after.unwrap_or_default();
        end = finding.span.end;
        let before = text.get(..finding.span.start).unwrap_or_default();
        prop_assert_eq!(finding.line, 1 + before.matches('\n').count());
    }
    prop_assert_eq!(Some(rest), text.get(end..));
    prop_assert_eq!(check(&clean), []);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn texts_close_to_credentials_hold_together(text in close_to_credentials()) {
        hold_together(&text)?;
    }
}

proptest! {
    #[test]
    fn arbitrary_texts_hold_together(text in any::<String>()) {
        hold_together(&text)?;
    }

    #[test]
    fn every_anchor_is_seen(text in close_to_credentials()) {
        let seen: Vec<_> = ANCHORS.in_text(text.as_bytes()).map(|(place, _)| place).collect();
        for prefix in FAMILIES.iter().flat_map(|family| family.prefixes) {
            for (start, _) in text.match_indices(prefix) {
                prop_assert!(seen.contains(&(start..start + prefix.len())));
            }
        }
    }
}

#[test]
fn random_images_are_no_secrets() {
    let mut dice = Dice::new(1);
    for _ in 0..2000 {
        let image = dice.text(BASE64, 2048);
        let text = format!("![chart](data:image/png;base64,{image}==)");
        assert_eq!(check(&text), [], "{text}");
    }
}

#[test]
fn random_hashes_and_ids_are_no_secrets() {
    for seed in 0..2000 {
        let text = sample(
            "fixed in {h40} ({h7}), sha256:{h64}, md5 {h32}; request {h8}-{h4}-{h4}-{h4}-{h12}, \
             content_sha256: {h64}, blob `{h64}`, memstore_01{u24}, mem_01{u24}, id={a22}",
            seed,
        );
        assert_eq!(check(&text), [], "{text}");
    }
}

#[test]
fn random_base64_in_lines_is_no_secret() {
    let mut dice = Dice::new(2);
    for _ in 0..500 {
        let lines: Vec<_> = (0..30).map(|_| dice.text(BASE64, 76)).collect();
        let text = format!("Content-Transfer-Encoding: base64\n\n{}\n", lines.join("\n"));
        assert_eq!(check(&text), [], "{text}");
    }
}

/// Nothing is measured here: these are the texts on which a rule that reads on and on would not
/// return in any reasonable time.
#[test]
fn hostile_texts_of_the_largest_size_are_read() {
    let units = [
        "a",
        "sk-",
        "token",
        "token_",
        "token=",
        "token: ",
        "--token ",
        "api_key: a[b] | c",
        "://",
        "a://b:c",
        "x://u:p@",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nA: b\n",
        "eyJ.",
        "eyJ.eyJ.eyJ ",
        "AccountKey=",
        "=ABSK",
        "/glc_",
        "12345678:A",
        ":A",
        "Server=",
        "Server=a;",
        "Server=a;x=",
        "host=a b=c ",
        "Bearer ",
        "Basic QUFB",
        ";base64,",
        "&sig=AAAA",
        "MT.",
        " ghp_",
        ":-sk-",
        "\\nsk-ant-",
        "%3Dsk-ant-",
        "é",
        "[redacted: ",
        "password='\"",
    ];
    for unit in units {
        let text = unit.repeat(TEXT_SIZE_BYTES / unit.len());
        assert_eq!(check(&text), [], "{unit}");
    }
}
