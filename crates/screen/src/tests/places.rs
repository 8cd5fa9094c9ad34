//! The syntax that credentials are written in: files of settings, code, logs and notes.

use super::{check, sample, secrets_in};

/// How often each example is tried, with other random characters each time.
const SEEDS: std::ops::Range<u64> = 0..20;

/// Assignments as they stand in files, by the kind of file. The value is at `⟨⟩`.
const ASSIGNMENTS: &[(&str, &[&str])] = &[
    (
        "shell",
        &[
            "export API_TOKEN=⟨⟩",
            "export API_TOKEN='⟨⟩'",
            "API_TOKEN=\"⟨⟩\" ./run.sh",
            "set -x DB_PASSWORD ⟨⟩; echo",
            "mycli login --password ⟨⟩",
            "mycli login --api-key=⟨⟩ --verbose",
            "docker run -e DB_PASSWORD=⟨⟩ app",
            "curl -H \"X-Api-Key: ⟨⟩\" https://api.internal",
            "${API_TOKEN:-⟨⟩}",
        ],
    ),
    (
        "dotenv",
        &[
            "API_KEY=⟨⟩",
            "API_KEY = ⟨⟩",
            "API_KEY=\"⟨⟩\"",
            "# old\nAPI_KEY=⟨⟩\n# new",
            "STRIPE_WEBHOOK_SECRET=⟨⟩",
            "JWT_SECRET=⟨⟩",
        ],
    ),
    (
        "YAML",
        &[
            "password: ⟨⟩",
            "password: \"⟨⟩\"",
            "password: '⟨⟩' # rotate",
            "db:\n  host: x\n  password: ⟨⟩\n  port: 1",
            "- name: API_TOKEN\n  token: ⟨⟩",
            "stringData:\n  client-secret: ⟨⟩",
        ],
    ),
    (
        "JSON",
        &[
            "{\"password\": \"⟨⟩\"}",
            "{\"password\":\"⟨⟩\"}",
            "{\n  \"apiKey\" : \"⟨⟩\",\n  \"x\": 1\n}",
            "\"{\\\"token\\\": \\\"⟨⟩\\\"}\"",
            "{\"auth_token\": \"⟨⟩\"}",
        ],
    ),
    (
        "TOML and INI",
        &[
            "[db]\npassword = \"⟨⟩\"",
            "password=⟨⟩",
            "secret_key = '⟨⟩'",
            "aws.secret = ⟨⟩",
            "spring.datasource.password=⟨⟩",
        ],
    ),
    (
        "code",
        &[
            "const token = \"⟨⟩\";",
            "let api_key: &str = \"⟨⟩\";",
            "self.password = '⟨⟩'",
            "token := \"⟨⟩\"",
            "private static final String API_KEY = \"⟨⟩\";",
            "$password = \"⟨⟩\";",
            "'password' => '⟨⟩',",
            ":secret_key_base => \"⟨⟩\"",
            "os.getenv(\"API_TOKEN\", \"⟨⟩\")",
            "client = Client(api_key=\"⟨⟩\")",
            "new Client({ apiKey: '⟨⟩' })",
            "config[\"password\"] = \"⟨⟩\"",
        ],
    ),
    ("XML", &["<password>⟨⟩</password>", "<apiKey>⟨⟩</apiKey>", "<x token=\"⟨⟩\"/>"]),
    ("Terraform", &["password = \"⟨⟩\"", "variable \"db_password\" {\n  password = \"⟨⟩\"\n}"]),
    (
        "notes",
        &[
            "- password: ⟨⟩",
            "* **Password:** ⟨⟩",
            "| password | ⟨⟩ |\n\nThe token is ⟨⟩.",
            "> token: `⟨⟩`",
            "The API key is ⟨⟩",
            "password: ⟨⟩ (changed in March)",
        ],
    ),
    (
        "logs",
        &[
            "2026-11-18T10:00:00Z INFO login token=⟨⟩ user=ada",
            "GET /v1?api_key=⟨⟩&page=2 200",
            "level=debug msg=connect password=\"⟨⟩\"",
        ],
    ),
];

/// Values that stand behind such names without being secret.
const HARMLESS: &[&str] = &[
    "changeme",
    "password",
    "secret",
    "hunter2",
    "********",
    "xxxxxxxxxxxxxxxxxxxxxxxx",
    "your-api-key-goes-here",
    "<your-password>",
    "${DB_PASSWORD}",
    "$DB_PASSWORD",
    "{{ password }}",
    "%(password)s",
    "os.environ",
    "null",
    "true",
    "",
    "1234567890123456",
    "aaaaaaaaaaaaaaaaaaaa",
    "abcdefghijklmnopqrst",
    "correct-horse-battery-staple",
    "REPLACE_ME_BEFORE_DEPLOY",
    "example-token-1234567890",
    "dummy_value_for_tests_42",
    "00000000-0000-0000-0000-000000000000",
    "7d444840-9dc0-11d1-b245-5ffdce74fad2",
];

fn each_assignment(mut work: impl FnMut(&str, &str)) {
    for (syntax, templates) in ASSIGNMENTS {
        templates.iter().for_each(|template| work(syntax, template));
    }
}

#[test]
fn random_values_are_found_in_every_syntax() {
    each_assignment(|syntax, template| {
        // One word of shell sets a variable without an operator, which is no assignment.
        if template.starts_with("set -x") || template.starts_with("| password") {
            return;
        }
        let found = SEEDS.filter(|seed| {
            let value = sample("{a24}", *seed);
            let text = template.replace("⟨⟩", &value);
            secrets_in(&text) == [value.as_str()]
        });
        // Now and then a random value looks like words, or has no digit.
        assert!(found.count() * 10 >= 9 * SEEDS.count(), "{syntax}: {template}");
    });
}

#[test]
fn harmless_values_are_found_in_no_syntax() {
    each_assignment(|syntax, template| {
        for value in HARMLESS {
            let text = template.replace("⟨⟩", value);
            assert_eq!(check(&text), [], "{syntax}: {text}");
        }
    });
}

#[test]
fn tokens_of_providers_are_found_in_every_syntax() {
    each_assignment(|syntax, template| {
        let token = sample("ghp_{a36}", 7);
        let text = template.replace("⟨⟩", &token);
        let found = secrets_in(&text);
        assert!(!found.is_empty(), "{syntax}: {text}");
        assert!(found.iter().all(|secret| *secret == token), "{syntax}: {text}");
    });
}

#[test]
fn names_that_are_about_a_credential_hold_none() {
    for name in [
        "token_id",
        "token_type",
        "token_url",
        "token_expires_at",
        "token_count",
        "max_token_length",
        "password_hash",
        "password_policy",
        "password_file",
        "secret_name",
        "secret_ref",
        "secret_arn",
        "secret_version",
        "public_key",
        "primary_key",
        "foreign_key",
        "cache_key",
        "sort_key",
        "csrf_token",
        "page_token",
        "next_cursor_token",
        "idempotency_key",
        "auth_endpoint",
        "credential_path",
        "api_key_id",
        "encrypted_password",
    ] {
        for seed in SEEDS {
            let text = sample(&format!("{name} = \"{{a24}}\""), seed);
            assert_eq!(check(&text), [], "{text}");
        }
    }
}

#[test]
fn names_that_hold_a_credential() {
    for name in [
        "token",
        "TOKEN",
        "accessToken",
        "refresh_token",
        "password",
        "dbPassword",
        "MYSQL_ROOT_PASSWORD",
        "passwd",
        "pwd",
        "secret",
        "clientSecret",
        "app_secret_key",
        "api_key",
        "apiKey",
        "API-KEY",
        "access_key",
        "private_key",
        "signing_key",
        "encryption_key",
        "service_role_key",
        "credential",
        "credentials",
        "auth",
        "SMTP_PASS",
        "x-auth-token",
    ] {
        let found = SEEDS.filter(|seed| {
            let text = sample(&format!("{name} = \"{{a24}}\""), *seed);
            check(&text) == [("assigned-secret", 1)]
        });
        assert!(found.count() * 10 >= 9 * SEEDS.count(), "{name}");
    }
}

#[test]
fn words_that_only_begin_or_end_like_a_name_do_not_count() {
    for name in ["tokenizer", "tokenize", "secretary", "passage", "compass", "author", "authority"]
    {
        for seed in SEEDS {
            let text = sample(&format!("{name} = \"{{a24}}\""), seed);
            assert_eq!(check(&text), [], "{text}");
        }
    }
}
