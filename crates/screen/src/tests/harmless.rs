//! What must not be found.

use super::{check, sample};

/// Texts as agents and people write them.
const TEXTS: &[&str] = &[
    // Prose and notes.
    "",
    "The quick brown fox jumps over the lazy dog.",
    "# Deploy\n\n1. Ask Ada for the token.\n2. Put it in `.env` as `API_KEY`.\n3. Never commit it.",
    "The password policy requires 16 characters with upper case, digits and symbols.",
    "password: hunter2",
    "Password is in 1Password, vault `Infra`, item `prod-db-2024`.",
    "the secret: it's in the sauce (2 spoons of fish sauce, 1 lime)",
    "Token budget: 200000 tokens, max_tokens = 4096, tokens_used: 18_734",
    "Her secret: patience. His token: a silver coin, ca. 1884-1887.",
    "Basic authentication is disabled; Bearer tokens only, see RFC6750section2.1",
    "The author's authority on authentication is authentic.",
    "a file that begins with `-----BEGIN RSA PRIVATE KEY-----` must never be committed",
    "grep -r 'BEGIN OPENSSH PRIVATE KEY' . && echo found",
    "We use sketch-based sampling; the task-force-one-two meets at desk-4711-b2c3d4e5f6.",
    "risk-adjusted-return-on-capital and disk-utilization-alerts-v2 in ask-me-anything-2024q3",
    "sk-learn and sk-SK locales; .sk-cube-grid .sk-cube1 { animation-delay: 0.2s }",
    "sk-internationalization-of-everything-is-hard",
    "密码：请查看保险库。令牌 token：由管理员发放，有效期 30 天。",
    "Пароль: хранится в сейфе. 비밀번호는 금고에.\nパスワードは金庫にあります。",
    "Call +49 30 1234567890 or 1-800-555-0199, ext. 12345678:30",
    "Standup 09:30, build 12345678:ALL green, ratio 16:9, 20240131:Annual review",
    "| Token | Count | Cost |\n|-------|-------|------|\n| input | 18734 | $0.05 |",
    "| key | value |\n|---|---|\n| password | ask Bob |\n| api key | in vault |",
    "> [!NOTE]\n> Rotate every API key: quarterly, owner: platform-team-2",
    // Placeholders and documented examples.
    "SECRET_KEY = \"your-secret-key-here\"",
    "api_key: <YOUR_API_KEY>",
    "OPENAI_API_KEY=sk-...",
    "ANTHROPIC_API_KEY=sk-ant-xxxx",
    "ANTHROPIC_API_KEY=sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ANTHROPIC_API_KEY=sk-ant-your-api-key-goes-here-please",
    "GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "xoxb-your-slack-bot-token-goes-here",
    "glpat-your-gitlab-token-here-ok",
    "aws_session_token=\"FwoGZXIvYXdzEBYaDH...\"",
    "token: 0123456789abcdef0123456789abcdef",
    "token: abcdefghijklmnopqrstuvwxyz0123456789",
    "password: ************************",
    "password: CHANGEME_BEFORE_DEPLOY_2024",
    "api_key = \"REPLACE_WITH_YOUR_KEY_1234\"",
    "secret = \"this-is-a-fake-secret-for-tests-1\"",
    "auth_token: deadbeefdeadbeefdeadbeefdeadbeef",
    "[redacted: github-token] and password = [redacted: assigned-secret]",
    "jdbc:postgresql://db/x?user=app&password=${DB_PASSWORD}&ssl=true",
    "jdbc:h2:mem:test;user=sa;password=;mode=x and jdbc:mysql://db/x?password=password",
    "sk-proj-your-project-key-goes-here-please",
    // Code.
    "token = get_token()",
    "token = await self.auth_provider2.get_access_token(scope)",
    "api_key: str",
    "def connect(api_key: str, password: Optional[str] = None, token: str = \"\") -> Client:",
    "password = os.environ[\"DB_PASSWORD\"]",
    "password = os.environ.get(\"DB_PASSWORD\", \"\")",
    "const token = process.env.GITHUB_TOKEN_V2_PRODUCTION;",
    "let secret: SecretString = config.secret_for_region_eu1.clone();",
    "secret: !vault |",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password: \"{{ .Values.database.password2 }}\"",
    "PASSWORD=$(cat /run/secrets/db_password_2024)",
    "export TOKEN=$GITHUB_TOKEN_FOR_CI_2",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <token>",
    "Authorization: Bearer ${ACCESS_TOKEN_2024}",
    "secretName: wildcard-tls-cert-2024-eu1",
    "secretKeyRef:\n  name: db-credentials-v2\n  key: password",
    "token_url: https://login.internal/oauth2/v2.0/token",
    "passwordFile: /run/secrets/postgres-password-2024.txt",
    "credentials: /home/ada/.config/gcloud/application_default_credentials2.json",
    "use crate::auth::token::{Token, TokenKind};",
    "impl TokenStream for TokenBuffer2 { type Item = TokenTree; }",
    "pub const TOKEN_KIND: TOKEN_KIND_TYPE_32 = 7;",
    "if token == expected_token_v2 { return Err(AuthError::InvalidToken42) }",
    "assert_eq!(secret, other.secret_with_index_1234);",
    "<input type=\"password\" name=\"password\" autocomplete=\"current-password\">",
    "@media print { .token.punctuation { color: #999; } } :root { --token-color: #a1b2c3d4; }",
    "a{color:#fff}b{color:#0a0b0c;background:#deadbe}i{color:#123456}",
    "!function(e,t){var n=t.key,r=t.token;n&&(e.auth=r?n(r):null)}(window,{key:1,token:2});",
    "CREATE TABLE users (id uuid, password_hash varchar(255), api_key_id bigint, token text);",
    "graph TD; A[Client] -->|token| B{Auth?}; B -->|yes| C[API key: valid]; B -->|no| D[401]",
    "sequenceDiagram\n  A->>Auth: password grant\n  Auth-->>A: access_token, expires_in=3600",
    "fn parse_key(key: &str) -> Result<Key, KeyError> { KEY_MAP.get(key).copied() }",
    "std::collections::HashMap::<String, crate::screen::tokens::Family>::new()",
    // Hashes, ids and versions.
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "content_sha256 = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
    "token_sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "secret_id: 7d444840-9dc0-11d1-b245-5ffdce74fad2",
    "token: 7d444840-9dc0-11d1-b245-5ffdce74fad2",
    "idempotency_token = 01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "see memstore_01HZX3V9K2M4N6P8Q0R2S4T6V8 and mem_01HZX3V9K2M4N6P8Q0R2S4T6V9",
    "password_hash: $argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub",
    "token: 0x6B175474E89094C44Da98b954EedeAC495271d0F",
    "bitcoin:1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa and QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPU5r",
    "node v22.11.0, rustc 1.95.0 (59807616e 2026-04-14), tokenizers==0.21.0rc1.post20241119",
    "api-key-service:2024.11.3-rc1.build.4711",
    "\"integrity\": \"sha512-9WXzBYN2a3v0oOC8L3TrWzyN3Nk8Q0cqjUZ6e5q9lFPLqLZ8zpD1n9bX==\"",
    "checksum = \"c982642fa9e8606056828ee9a8505737230110bb1099153c79efe865c59d12ba\"",
    "X-Amz-Request-Id: 4442587FB7D0A2F9, etag: \"686897696a7c876b7e\"",
    // URLs.
    "https://example.com/watch?v=dQw4w9WgXcQ&list=PLx0sYbCqOb8TBPRdmBHs5Iftvv9TPboYG&index=3",
    "https://docs.internal/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit#gid=0",
    "postgres://user:password@localhost:5432/db",
    "postgres://postgres:postgres@db/app, redis://localhost:6379, amqp://guest:guest@mq",
    "mysql://user:<password>@host, mysql://user:${PASS}@host, mysql://user:$PASS@host",
    "mysql://user:***@host mysql://user:xxx@host mysql://user:xxxxxxxx@host mysql://u:%s@h",
    "mysql://user:{{pass}}@host mysql://user:{pass}@host mysql://user:[password]@host",
    "mongodb://DB_USER:DB_PASS@host, http://a:b@c",
    "ssh://git@github.com:22/quipu/quipu.git git@github.com:quipu/quipu.git",
    "http://localhost:8080/login?user=ada@internal https://host:443, ask ops@internal",
    "https://medium.com/@ada:notes https://[::1]:8080/x@y",
    "Server=localhost;Database=app;Trusted_Connection=True;Password=;",
    "Server=db;User Id=sa;Password=<password>; host=db user=app password=$PGPASSWORD",
    "https://a.blob.core.windows.net/c?sig=...&se=2026-01-01",
];

/// Texts with random parts.
const PATTERNS: &[&str] = &[
    "ssh-rsa AAAAB3NzaC1yc2E{b300} ada@laptop",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} deploy-key",
    "-----BEGIN CERTIFICATE-----\n{b64}\n{b64}\n{b20}==\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n{b64}\n{b64}\n-----END PUBLIC KEY-----",
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{b64}\n-----END PGP PUBLIC KEY BLOCK-----",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\nsha256 {h64}",
    "<img src=\"data:image/png;base64,{b200}/AKIA{u16}/{b200}\">",
    "url(data:font/woff2;base64,{b100}+hf_)",
    "\"integrity\": \"sha512-{b86}==\"",
    "token integrity: sha512-{b86}==",
    "tree {h40}\nparent {h40}\n\n    auth: keep the token",
    "file {h64}  tokens.md",
    "see https://cdn.internal/{h32}/{a22}/token.js?v={h8}",
    "trace {h32}-{h16}-01 span {h16}",
    "public_key: {a44}",
    "publishable key pk_live_{a24}",
    "next_page_token: {a40}",
    "primary_key = {a24}",
    "| {a16} | Using bearer auth | `{a20}` | rotation |",
    "AC{h32}",
    "x{a30}AKIA{u16}",
    "AKIA{u16}{u4}",
    "task-{a40}",
    "{d9}:{a35}",
    "hashed_password: {h64}",
    "{a20}\t{a20}\t{a20}",
];

#[test]
fn ordinary_texts_hold_no_secrets() {
    assert!(TEXTS.len() >= 60);
    for text in TEXTS {
        assert_eq!(check(text), [], "{text}");
    }
    assert_eq!(check(&TEXTS.join("\n\n")), []);
}

#[test]
fn texts_with_random_parts_hold_no_secrets() {
    for pattern in PATTERNS {
        for seed in 0..50 {
            let text = sample(pattern, seed);
            assert_eq!(check(&text), [], "{text}");
        }
    }
}

#[test]
fn a_webhook_with_blanks_is_no_secret() {
    let webhook = ["https://hooks.slack.com/services", "T00000000/B00000000", &"X".repeat(24)];
    assert_eq!(check(&webhook.join("/")), []);
}
