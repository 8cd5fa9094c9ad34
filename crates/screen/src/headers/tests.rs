//! Headers, signatures and tokens of requests.

use crate::tests::{check, encoded, sample, secrets_in};

#[test]
fn bearer_tokens_in_every_spelling() {
    for template in [
        "Authorization: Bearer ⟨⟩",
        "authorization: bearer ⟨⟩",
        "AUTHORIZATION: BEARER ⟨⟩",
        "-H 'Authorization: Bearer ⟨⟩'",
        "headers = {\"Authorization\": \"Bearer ⟨⟩\"}",
        "`Bearer ⟨⟩`",
        "Bearer ⟨⟩.",
    ] {
        let token = sample("{a40}", 3);
        let text = template.replace("⟨⟩", &token);
        assert_eq!(
            secrets_in(&text).first().map(|it| it.trim_end_matches('.')),
            Some(&*token),
            "{text}"
        );
    }
    for text in [
        "Bearer of bad news",
        "Authorization: Bearer token",
        "Authorization: Bearer <your-token>",
        "Authorization: Bearer {{token}}",
        "forbearer aB3dE5gH7jK9mN1pQ3rS5tU7",
    ] {
        assert_eq!(check(text), [], "{text}");
    }
}

#[test]
fn basic_authentication_needs_a_user_and_a_password() {
    let header = |login: &str| format!("Authorization: Basic {}", encoded(login));
    for login in ["ada:hunter22", "svc-deploy:Tr0ub4dor&3", ":onlypassword9"] {
        assert_eq!(check(&header(login)), [("authorization-header", 1)], "{login}");
    }
    for login in
        ["ada:password", "ada:", "ada", "user:pass", "a:b", "ada:xxxxxxxx", "\u{1}:hunter22"]
    {
        assert_eq!(check(&header(login)), [], "{login:?}");
    }
}

#[test]
fn json_web_tokens_are_signed_and_name_an_algorithm() {
    let payload = encoded(r#"{"sub":"1"}"#);
    let signature = sample("{w43}", 2);
    for (header, is_found) in [
        (r#"{"alg":"HS256"}"#, true),
        (r#"{"typ":"JWT","alg":"RS256","kid":"1"}"#, true),
        (r#"{"kid":"1","alg":"none"}"#, true),
        (r#"{"typ":"JWT"}"#, false),
        (r#"{"alq":"HS256"}"#, false),
    ] {
        let token = format!("{}.{payload}.{signature}", encoded(header));
        let expected: &[(&str, usize)] = if is_found { &[("json-web-token", 1)] } else { &[] };
        assert_eq!(check(&token), expected, "{header}");
    }
    let header = encoded(r#"{"alg":"HS256"}"#);
    for text in [
        format!("{header}.{payload}"),
        format!("{header}.{payload}."),
        format!("{header}.{payload}.short"),
        format!("{header}.{signature}.{signature}"),
        format!("x{header}.{payload}.{signature}"),
        format!("a.{header}.{payload}.{signature}"),
    ] {
        assert_eq!(check(&text), [], "{text}");
    }
}

#[test]
fn signatures_of_shared_access_urls_have_their_size() {
    let url =
        |signature: &str| format!("https://a.blob.core.windows.net/c?sv=1&sig={signature}&se=2026");
    for pattern in ["{a43}%3D", "{a43}=", "{a20}%2F{a22}%3D", "{a10}%2b{a32}%3d"] {
        let signature = sample(pattern, 4);
        assert_eq!(check(&url(&signature)), [("azure-sas-signature", 1)], "{signature}");
        assert_eq!(secrets_in(&url(&signature)), [signature.as_str()]);
    }
    for pattern in ["{a42}%3D", "{a44}%3D", "{a43}", "{a20}%20{a22}%3D", "..."] {
        let signature = sample(pattern, 4);
        assert_eq!(check(&url(&signature)), [], "{signature}");
    }
    assert_eq!(check(&sample("xsig={a43}%3D", 4)), []);
}

#[test]
fn tokens_of_telegram_bots_are_an_id_and_a_secret() {
    for (pattern, is_found) in [
        ("{d9}:AA{w33}", true),
        ("1{d11}:AA{w33}", true),
        ("https://api.telegram.org/bot7{d9}:AA{w33}/getMe", true),
        ("token={d9}:AA{w33}", true),
        ("{d7}:AA{w33}", false),
        ("1{d12}:AA{w33}", false),
        ("{d9}:AA{w32}", false),
        ("{d9}:AA{w34}", false),
        ("x{d9}:AA{w33}", false),
        ("{d9}:BB{w33}", false),
    ] {
        let text = sample(pattern, 5);
        assert_eq!(!check(&text).is_empty(), is_found, "{text}");
    }
}
