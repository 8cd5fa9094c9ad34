//! What must be found.

use std::collections::BTreeSet;

use super::{check, encoded, findings, sample, secrets_in};
use crate::SecretKind;
use crate::tokens::FAMILIES;

/// How often each example is tried, with other random characters each time.
const SEEDS: std::ops::Range<u64> = 0..40;

/// Tokens that are secret as a whole.
const TOKENS: &[(&str, &str)] = &[
    ("quipu-key", "sk-quipu-{h64}"),
    ("age-secret-key", "AGE-SECRET-KEY-1{u58}"),
    ("aws-access-key", "AKIA{u16}"),
    ("aws-access-key", "ASIA{u16}"),
    ("aws-access-key", "ABSK{b128}=="),
    ("google-api-key", "AIza{w35}"),
    ("google-oauth-token", "ya29.a0A{w160}"),
    ("google-oauth-token", "1//0{w99}"),
    ("google-oauth-token", "GOCSPX-{w28}"),
    ("digitalocean-token", "dop_v1_{h64}"),
    ("cloudflare-token", "cfut_{a48}"),
    ("cloudflare-token", "v1.0-{h24}-{h146}"),
    ("heroku-key", "HRKU-AA{w58}"),
    ("fly-token", "fo1_{w43}"),
    ("fly-token", "fm2_{b300}="),
    ("vercel-token", "vcp_{a56}"),
    ("supabase-key", "sbp_{h40}"),
    ("supabase-key", "sb_secret_{w31}"),
    ("planetscale-token", "pscale_tkn_{w43}"),
    ("databricks-token", "dapi{h32}"),
    ("databricks-token", "dapi{h32}-2"),
    ("github-token", "ghp_{a36}"),
    ("github-token", "gho_{a36}"),
    ("github-token", "ghu_{a36}"),
    ("github-token", "ghs_{a36}"),
    ("github-token", "ghr_{a76}"),
    ("github-token", "github_pat_{a22}_{a59}"),
    ("gitlab-token", "glpat-{w20}"),
    ("gitlab-token", "glpat-{w40}.01.{h9}"),
    ("gitlab-token", "gldt-{w20}"),
    ("gitlab-token", "glrt-{w20}"),
    ("gitlab-token", "glcbt-64_{w20}"),
    ("atlassian-token", "ATBB{a32}"),
    ("atlassian-token", "ATATT3{w186}"),
    ("npm-token", "npm_{a36}"),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc{w150}"),
    ("crates-io-token", "cio{a32}"),
    ("rubygems-token", "rubygems_{h48}"),
    ("docker-token", "dckr_pat_{w27}"),
    ("hugging-face-token", "hf_{a34}"),
    ("slack-token", "xoxb-{d12}-{d13}-{a24}"),
    ("slack-token", "xoxp-{d12}-{d12}-{d13}-{h32}"),
    ("slack-token", "xapp-1-A{u10}-{d13}-{h64}"),
    ("discord-token", "MT{a24}.{w6}.{w38}"),
    ("telegram-token", "7{d9}:AA{w33}"),
    ("stripe-key", "sk_live_{a24}"),
    ("stripe-key", "rk_live_{a99}"),
    ("stripe-key", "sk_test_{a99}"),
    ("stripe-key", "whsec_{a32}"),
    ("square-token", "sq0atp-{w22}"),
    ("square-token", "EAAAE{w59}"),
    ("braintree-token", "access_token$production${a16}${h32}"),
    ("shopify-token", "shpat_{h32}"),
    ("shopify-token", "shpss_{h32}"),
    ("anthropic-key", "sk-ant-api03-{w93}AA"),
    ("anthropic-key", "sk-ant-oat01-{w93}AA"),
    ("openrouter-key", "sk-or-v1-{h64}"),
    ("openai-key", "sk-{a48}"),
    ("openai-key", "sk-{h32}"),
    ("openai-key", "sk-proj-{w156}"),
    ("openai-key", "sk-proj-{a32}"),
    ("openai-key", "sk-svcacct-{w120}"),
    ("groq-key", "gsk_{a52}"),
    ("xai-key", "xai-{a80}"),
    ("replicate-token", "r8_{a37}"),
    ("perplexity-key", "pplx-{a48}"),
    ("sendgrid-key", "SG.{w22}.{w43}"),
    ("twilio-key", "SK{h32}"),
    ("mailgun-key", "key-{h32}"),
    ("sentry-token", "sntrys_{b120}=_{b43}"),
    ("sentry-token", "sntryu_{h64}"),
    ("linear-key", "lin_api_{a40}"),
    ("notion-token", "secret_{a43}"),
    ("notion-token", "ntn_{d11}{a35}"),
    ("vault-token", "hvs.{w95}"),
    ("doppler-token", "dp.pt.{a43}"),
    ("doppler-token", "dp.st.prd.{a43}"),
    ("1password-token", "ops_eyJ{b400}="),
    ("grafana-token", "glsa_{a32}_{h8}"),
    ("grafana-token", "glc_{b120}="),
    ("new-relic-key", "NRAK-{u27}"),
    ("postman-key", "PMAK-{h24}-{h34}"),
    ("service-key", "nvapi-{w64}"),
    ("service-key", "lsv2_pt_{h32}_{h10}"),
];

/// Texts with a secret between `«` and `»`.
const CARRIED: &[(&str, &str)] = &[
    (
        "azure-key",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=«{b86}==»;EndpointSuffix=x",
    ),
    ("azure-key", "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKey=«{b43}=»"),
    (
        "azure-sas-signature",
        "https://a.blob.core.windows.net/c?sv=2024-05-04&sig=«{a43}%3D»&se=2026",
    ),
    ("azure-sas-signature", "https://a.blob.core.windows.net/c?sig=«{a20}%2B{a21}%2F=»"),
    ("slack-webhook", "https://hooks.slack.com/services/«T{u10}/B{u10}/{a24}»"),
    ("discord-webhook", "https://discord.com/api/webhooks/«{d19}/{w68}»"),
    ("telegram-token", "curl https://api.telegram.org/bot«7{d9}:AA{w33}»/getMe"),
    ("aws-secret-key", "aws_secret_access_key = «{b40}»"),
    ("aws-secret-key", "AWS_SECRET_ACCESS_KEY=«{b40}»"),
    ("aws-secret-key", "\"SecretAccessKey\": \"«{b40}»\","),
    ("connection-password", "postgres://app:«{a9}»@db.internal:5432/app"),
    ("connection-password", "DATABASE_URL=mysql://root:«{a5}!{a5}»@127.0.0.1/x?ssl=1"),
    ("connection-password", "redis://:«{a16}»@cache:6379/0"),
    ("connection-password", "mongodb+srv://u:«p%40{a8}»@c0.mongodb.net/?retryWrites=true"),
    ("connection-password", "amqp://u:«{a4}@{a4}»@broker"),
    ("connection-password", "git clone https://bot:«{a12}»@git.internal/repo.git"),
    ("connection-password", "Server=tcp:db,1433;User ID=sa;Password=«{a8}!»;Encrypt=True"),
    ("connection-password", "SERVER=PRODDB;UID=sa;PWD=«{a8}»;"),
    ("connection-password", "Data Source=db;Initial Catalog=x;pwd=«{a9}»"),
    ("connection-password", "host=db port=5432 user=app password='«{a9}»' dbname=x"),
    ("connection-password", "jdbc:postgresql://db/x?user=app&password=«{a9}»&ssl=true"),
    ("connection-password", "url=jdbc:sqlserver://db:1433;user=sa;Password=«{a8}!»;encrypt=true"),
    ("authorization-header", "curl -H 'Authorization: Bearer «{a40}»' https://api.internal"),
    ("authorization-header", "authorization: bearer «{w20}.{w30}»"),
    ("assigned-secret", "API_KEY=«{a32}»"),
    ("assigned-secret", "export MISTRAL_API_KEY=\"«{a32}»\""),
    ("assigned-secret", "api-key: «{h32}»"),
    ("assigned-secret", "const apiKey = '«{a24}»';"),
    ("assigned-secret", "\"client_secret\": \"«{w40}»\","),
    ("assigned-secret", "let token: &str = \"«{a32}»\";"),
    ("assigned-secret", "password: str = '«{a20}»'"),
    ("assigned-secret", "token := `«{h40}»`"),
    ("assigned-secret", ":password => \"«{a20}»\""),
    ("assigned-secret", "config[\"secret_key\"] = b'«{b32}»'"),
    ("assigned-secret", "PGPASSWORD=«{a18}» psql"),
    ("assigned-secret", "//registry.internal/:_authToken=«{a36}»"),
    ("assigned-secret", "<accessToken>«{a30}»</accessToken>"),
    ("assigned-secret", "**API key:** «{a32}»"),
    ("assigned-secret", "- **Token**: `«{a32}»`"),
    ("assigned-secret", "The admin password is «{a20}»."),
    ("assigned-secret", "deploy --token «{a30}» --verbose"),
    ("assigned-secret", "os.environ.get(\"API_TOKEN\", \"«{a32}»\")"),
    ("assigned-secret", "https://api.internal/v1?access_token=«{a32}»&page=2"),
    ("assigned-secret", "\\\"secret\\\": \\\"«{a32}»\\\","),
    ("assigned-secret", "X-Auth-Token: «{h32}»"),
    ("assigned-secret", "Authorization: Token «{h40}»"),
    ("assigned-secret", "SMTP_PASS=«{a20}»"),
    ("assigned-secret", "ключ, password：нет, password=«{a20}»。"),
];

#[test]
fn tokens_of_every_provider_are_found_whole() {
    for (kind, pattern) in TOKENS {
        for seed in SEEDS {
            let token = sample(pattern, seed);
            assert_eq!(check(&token), [(*kind, 1)], "{pattern} with seed {seed}: {token}");
            assert_eq!(secrets_in(&token), [token.as_str()], "{pattern} with seed {seed}");
        }
    }
}

#[test]
fn tokens_are_found_wherever_people_put_them() {
    let places = [
        "use ⟨⟩ for now",
        "token: ⟨⟩",
        "TOKEN=⟨⟩",
        "\"token\": \"⟨⟩\",",
        "`⟨⟩`",
        "(⟨⟩)",
        "<⟨⟩>",
        "| prod | ⟨⟩ |",
        "the token is ⟨⟩.",
        "令牌是⟨⟩。",
        "{\"text\": \"first\\n⟨⟩\\nsecond\"}",
        "?next=x&t=⟨⟩&u=y",
        "url%3D⟨⟩%26",
        "${TOKEN:-⟨⟩}",
        "https://x-access-token:⟨⟩@git.internal/a.git",
        "-H 'Authorization: Bearer ⟨⟩'",
    ];
    for (kind, pattern) in
        [("github-token", "ghp_{a36}"), ("anthropic-key", "sk-ant-api03-{w93}AA")]
    {
        for (place, seed) in places.iter().zip(0..) {
            let token = sample(pattern, seed);
            let text = place.replace("⟨⟩", &token);
            assert_eq!(check(&text), [(kind, 1)], "{text}");
            assert_eq!(secrets_in(&text), [token.as_str()]);
        }
    }
}

#[test]
fn secrets_that_others_announce_are_found_alone() {
    for (kind, pattern) in CARRIED {
        let found = SEEDS.filter(|seed| {
            let marked = sample(pattern, *seed);
            let (_, rest) = marked.split_once('«').expect("the secret is marked");
            let (secret, _) = rest.split_once('»').expect("the secret is marked");
            let text = marked.replace(['«', '»'], "");
            check(&text) == [(*kind, 1)] && secrets_in(&text) == [secret]
        });
        // Now and then a random value looks like words, or has no digit.
        assert!(found.count() * 10 >= 9 * SEEDS.count(), "{pattern}");
    }
}

#[test]
fn every_kind_has_a_name_of_its_own() {
    let words: BTreeSet<_> = TOKENS.iter().chain(CARRIED).map(|(kind, _)| *kind).collect();
    let of_families: BTreeSet<_> = FAMILIES.iter().map(|family| family.kind.as_str()).collect();
    assert!(of_families.is_subset(&words), "{:?}", of_families.difference(&words));
    for word in of_families {
        assert!(word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')));
    }
    assert_eq!(SecretKind::AwsAccessKey.to_string(), "AWS access key");
    assert_eq!(SecretKind::ConnectionPassword.to_string(), "password in a connection string");
}

#[test]
fn private_keys_are_found_from_their_first_line_to_their_last() {
    for label in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let body = sample("{b64}\n{b64}\n{b30}==", 7);
        let (begin, end) = ("-----BEGIN ", "-----END ");
        let key = format!("{begin}{label}PRIVATE KEY-----\n{body}\n{end}{label}PRIVATE KEY-----");
        let text = format!("# Key\n\n{key}\n\nThe end.");
        assert_eq!(check(&text), [("private-key", 3)]);
        assert_eq!(secrets_in(&text), [key.as_str()]);
    }
}

#[test]
fn private_keys_are_found_in_every_dress() {
    let dresses = [
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{b64}\n\
         -----END PGP PRIVATE KEY BLOCK-----",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{h32}\n\n\
         {b64}\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\\n{b64}\\n{b64}\\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n> {b64}\n> {b64}\n> -----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\\n\" +\n  \"{b64}\\n\" +\n  \"-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\r\n    {b64}\r\n    -----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----{b64}-----END PRIVATE KEY-----",
    ];
    for dress in dresses {
        let key = sample(dress, 3);
        let text = format!("{{\"key\": \"{key}\"}}");
        assert_eq!(secrets_in(&text), [key.as_str()], "{text}");
    }
}

#[test]
fn a_private_key_without_an_end_reaches_to_the_end_of_the_text() {
    let text = sample("a\nb\n-----BEGIN EC PRIVATE KEY-----\n{b64}\nand ghp_{a36} more", 1);
    assert_eq!(check(&text), [("private-key", 3)]);
    assert_eq!(findings(&text)[0].span.end, text.len());
}

#[test]
fn json_web_tokens_are_found_if_their_header_names_an_algorithm() {
    let payload = encoded(r#"{"sub":"42","name":"Ada"}"#);
    let signature = sample("{w43}", 1);
    let signed = format!("{}.{payload}.{signature}", encoded(r#"{"typ":"JWT","alg":"HS256"}"#));
    assert_eq!(check(&format!("jwt {signed}, fine")), [("json-web-token", 1)]);
    assert_eq!(secrets_in(&format!("session={signed}")), [signed.as_str()]);

    let unsigned = format!("{}.{payload}.", encoded(r#"{"typ":"JWT","alg":"none"}"#));
    assert_eq!(check(&unsigned), []);
    let other = format!("{}.{payload}.{signature}", encoded(r#"{"typ":"JWT","kid":"1234"}"#));
    assert_eq!(check(&other), []);
}

#[test]
fn basic_authentication_is_found_if_it_holds_a_password() {
    let login = encoded(&format!("ada:{}", sample("{a11}", 1)));
    assert_eq!(check(&format!("Authorization: Basic {login}")), [("authorization-header", 1)]);
    assert_eq!(check(&format!("Authorization: Basic {}", encoded("user:password"))), []);
    assert_eq!(check(&format!("Authorization: Basic {}", encoded("no colon here"))), []);
    assert_eq!(check("Basic understanding of authentication"), []);
}

#[test]
fn lines_are_counted_from_one() {
    let text = sample("AKIA{u16}\n\nAKIA{u16} AKIA{u16}\r\n\n  AKIA{u16}", 1);
    let lines: Vec<_> = findings(&text).iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [1, 3, 3, 5]);
}

#[test]
fn a_token_is_recognized_whatever_surrounds_it() {
    let text = sample("postgres://ghp_{a36}:AKIA{u16}@h password=npm_{a36}", 1);
    let kinds: Vec<_> = check(&text).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["github-token", "aws-access-key", "npm-token"]);
}

#[test]
fn findings_do_not_hold_the_secret() {
    let secret = sample("{a36}", 1);
    let findings = findings(&format!("ghp_{secret}"));
    assert!(!format!("{findings:?}").contains(secret.get(..8).expect("it is longer")));
}

#[test]
fn made_up_credentials_of_a_telling_shape_are_found() {
    let id = ["AKIAIOSFODNN7", "EXAMPLE"].concat();
    let key = ["wJalrXUtnFEMI/K7MDENG/", "bPxRfiCYEXAMPLEKEY"].concat();
    let found = check(&format!("aws_access_key_id = {id}\naws_secret_access_key = {key}"));
    assert_eq!(found, [("aws-access-key", 1), ("aws-secret-key", 2)]);
    for body in ["a".repeat(36), "abcdefghijklmnopqrstuvwxyz0123456789".to_owned()] {
        assert_eq!(check(&["ghp_", &body].concat()), [("github-token", 1)]);
    }
}

#[test]
fn weak_passwords_in_connection_strings_are_found() {
    for password in ["hunter2", "secret", "1234", "S3cretPassw0rd"] {
        let url = format!("postgres://app:{password}@db.example.com:5432/prod");
        assert_eq!(check(&url), [("connection-password", 1)], "{url}");
    }
}
