//! `quipu ui`: a link that signs in a browser, once.

use std::net::{Ipv4Addr, TcpListener};

use quipu_core::model::{KeyKind, Role};

use crate::server::Server;
use crate::support::{Quipu, run};

/// Returns the secret of the link that a command has printed.
fn secret<'a>(printed: &'a str, url: &str) -> &'a str {
    let link = printed.strip_suffix('\n').expect("one line");
    link.strip_prefix(&format!("{url}/ui/enter?link=")).expect("a link to the server")
}

#[test]
fn the_link_signs_in_once() {
    let quipu = Quipu::with_store();
    let server = Server::start(&quipu);
    let ran = quipu.run(&["ui", "--print", "--url", &format!("{}/", server.url)]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("once, within 60 seconds"), "{ran:?}");
    let engine = quipu.engine(0);
    let link = secret(&ran.out, &server.url);
    assert!(engine.principal(link).expect("it is read").is_none(), "it is no key for requests");
    let redeemed = engine.redeem_key(link, KeyKind::Link).expect("it is answered");
    let redeemed = redeemed.expect("it is valid");
    assert_eq!((redeemed.name.as_str(), redeemed.role), ("ada", Role::Admin));
    assert_eq!((redeemed.parent, redeemed.stores), (None, None));
    assert!(engine.redeem_key(link, KeyKind::Link).expect("it is answered").is_none());
    let listed = quipu.ok(&["key", "list"]);
    assert!(listed.contains("ada  link of the owner"), "{listed}");
}

#[test]
fn the_link_has_the_rights_that_were_asked_for() {
    let quipu = Quipu::with_store();
    let server = Server::start(&quipu);
    let url = server.url.as_str();
    // Without a terminal nothing is opened.
    let printed = quipu.ok(&["ui", "--url", url, "--role", "read_only", "--store", "notes"]);
    let engine = quipu.engine(0);
    let redeemed = engine.redeem_key(secret(&printed, url), KeyKind::Link).expect("it is read");
    let redeemed = redeemed.expect("it is valid");
    assert_eq!(redeemed.role, Role::ReadOnly);
    let notes = engine.find_store(redeemed.workspace, "notes").expect("a store").id;
    assert_eq!(redeemed.stores, Some(vec![notes]));
    let body = quipu.json(&["ui", "--url", url]);
    let link = body["url"].as_str().expect("a link").to_owned() + "\n";
    assert!(engine.redeem_key(secret(&link, url), KeyKind::Link).expect("it is read").is_some());
    assert!(body["expires_at"].is_string(), "{body}");
    assert_eq!(quipu.run(&["ui", "--url", url, "--store", "nowhere"]).code, 3);
}

#[test]
fn the_server_is_found_by_the_settings() {
    let quipu = Quipu::with_store();
    let server = Server::start(&quipu);
    let port = server.address().rsplit(':').next().expect("a port");
    let mut command = quipu.command(&["ui"]);
    command.env("QUIPU_SERVE_LISTEN", format!("0.0.0.0:{port}"));
    let ran = run(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with(&format!("http://127.0.0.1:{port}/ui/enter?link=")), "{ran:?}");
}

#[test]
fn without_a_server_there_is_no_link() {
    let quipu = Quipu::with_store();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let ran = quipu.run(&["ui", "--url", &format!("http://{address}")]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains(&format!("nothing listens on {address}")), "{ran:?}");
    assert!(ran.err.contains("`quipu serve`"), "{ran:?}");
    assert_eq!(quipu.ok(&["key", "list"]), "");
    for malformed in ["127.0.0.1:8420", "ftp://localhost", "http://", "http://a:b:c", "http://x:0x"]
    {
        let ran = quipu.run(&["ui", "--url", malformed]);
        assert_eq!(ran.code, 2, "{malformed}: {ran:?}");
    }
}
