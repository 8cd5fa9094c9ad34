//! Connection strings of every sort.

use crate::tests::{check, secrets_in};

/// URLs with the password at `⟨⟩`.
const URLS: &[&str] = &[
    "postgres://app:⟨⟩@db.internal:5432/app",
    "postgresql://app:⟨⟩@db/app?sslmode=require",
    "mysql://root:⟨⟩@127.0.0.1/x",
    "mongodb://u:⟨⟩@a,b,c/db?replicaSet=r",
    "mongodb+srv://u:⟨⟩@c0.mongodb.net/",
    "redis://:⟨⟩@cache:6379/0",
    "rediss://default:⟨⟩@cache:6380",
    "amqps://svc:⟨⟩@mq/vhost",
    "https://bot:⟨⟩@git.internal/repo.git",
    "ftp://ada:⟨⟩@files.internal",
    "smtp://user:⟨⟩@mail:587",
    "socks5://u:⟨⟩@proxy:1080",
    "[link](postgres://app:⟨⟩@db/app)",
    "<postgres://app:⟨⟩@db/app>",
    "DATABASE_URL=\"postgres://app:⟨⟩@db/app\"",
    "url: postgres://app:⟨⟩@db/app # prod",
];

/// Lists of settings with the password at `⟨⟩`.
const LISTS: &[&str] = &[
    "Server=db;Database=x;User Id=sa;Password=⟨⟩;",
    "server=db;uid=sa;pwd=⟨⟩",
    "Data Source=db;Password=⟨⟩;Encrypt=True",
    "host=db port=5432 user=app password=⟨⟩ dbname=x",
    "host=db password='⟨⟩' user=app",
    "HOST=db;PWD=⟨⟩;",
    "jdbc:postgresql://db/x?user=app&password=⟨⟩",
    "jdbc:sqlserver://db:1433;user=sa;password=⟨⟩;encrypt=true",
    "jdbc:mysql://db/x?password=⟨⟩&useSSL=true",
];

/// What stands for a password.
const STAND_INS: &[&str] = &[
    "password",
    "PASSWORD",
    "pass",
    "pwd",
    "token",
    "xxxx",
    "xxxxxxxx",
    "changeme",
    "your-password",
    "redacted",
    "...",
    "$PASS",
    "%s",
    "DB_PASS",
    "abc",
    "",
];

#[test]
fn passwords_are_found_even_if_they_are_weak() {
    for template in URLS.iter().chain(LISTS) {
        for password in ["hunter2", "s3cret!x", "Tr0ub4dor", "letmein99", "zQ9kLm2p"] {
            let text = template.replace("⟨⟩", password);
            assert_eq!(check(&text), [("connection-password", 1)], "{text}");
            assert_eq!(secrets_in(&text), [password], "{text}");
        }
    }
}

#[test]
fn what_stands_for_a_password_is_none() {
    for template in URLS.iter().chain(LISTS) {
        for stand_in in STAND_INS {
            let text = template.replace("⟨⟩", stand_in);
            assert_eq!(check(&text), [], "{text}");
        }
    }
}

#[test]
fn encoded_passwords_are_found_whole() {
    for password in ["p%40ss%2Fw0rd", "a%3Ab%40c1", "%21secret9"] {
        let text = format!("postgres://app:{password}@db/app");
        assert_eq!(secrets_in(&text), [password], "{text}");
    }
}

#[test]
fn urls_without_a_password_hold_none() {
    for text in [
        "https://example.com:8080/a:b@c",
        "https://user@example.com",
        "https://example.com/?q=a:b@c",
        "ssh://git@host:22/repo",
        "://user:hunter2@host",
        "mailto:ada@example.com",
        "https://[::1]:8080/",
        "see http://a:b, ask c@d",
        "file:///home/ada/a:b@c",
    ] {
        assert_eq!(check(text), [], "{text}");
    }
}

#[test]
fn the_user_that_is_the_password_is_an_example() {
    for login in ["postgres:postgres", "guest:guest", "admin:admin", "root:root"] {
        assert_eq!(check(&format!("postgres://{login}@db/app")), [], "{login}");
    }
}
