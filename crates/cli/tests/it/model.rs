//! Models: installed from directories and addresses, chosen, checked, removed.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;
use tempfile::TempDir;

use crate::model_fixture::{write_bert, write_table};
use crate::support::{Quipu, Ran};

fn table() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    write_table(directory.path());
    directory
}

fn install(quipu: &Quipu, source: &str, rest: &[&str]) -> Ran {
    quipu.run(&[&["model", "install", source, "--name", "tiny"], rest].concat())
}

/// Asserts that nothing was installed, and that nothing is left of the attempt.
fn check_refused(quipu: &Quipu, ran: &Ran, expected: &str) {
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains(expected), "{}", ran.err);
    let left = fs::read_dir(quipu.data().join("models"));
    assert_eq!(left.map_or(0, Iterator::count), 0, "{}", ran.err);
}

fn digest(file: &Path) -> String {
    let mut file = fs::File::open(file).expect("a file");
    quipu_vectors::sha256(&mut file).expect("it is readable")
}

fn path(directory: &TempDir) -> &str {
    directory.path().to_str().expect("UTF-8")
}

#[test]
fn a_model_is_installed_chosen_checked_and_removed() {
    let (quipu, from) = (Quipu::with_store(), table());
    let out = quipu.ok(&["model", "install", path(&from), "--name", "tiny"]);
    assert!(out.contains("installed tiny (model2vec, 4 dimensions"), "{out}");
    assert!(quipu.ok(&["model", "list"]).contains("  tiny"));
    assert!(quipu.ok(&["model", "use", "tiny"]).contains("vectors of tiny"));
    assert!(quipu.ok(&["model", "list"]).contains("* tiny"));
    let checked = quipu.json(&["model", "check"]);
    assert_eq!(checked["dimensions"], 4);
    assert!(checked["identity"].as_str().unwrap().starts_with("model2vec:"), "{checked}");

    let used = quipu.run(&["model", "remove", "tiny"]);
    assert!(used.err.contains("in use"), "{}", used.err);
    quipu.ok(&["model", "use", "none"]);
    quipu.ok(&["model", "remove", "tiny"]);
    assert!(!quipu.data().join("models/tiny").exists());
    assert_eq!(quipu.run(&["model", "check", "tiny"]).code, 3);
    assert_eq!(quipu.run(&["model", "check"]).code, 2);
}

#[test]
fn a_transformer_is_installed_as_its_authors_lay_it_out() {
    let (quipu, from) = (Quipu::empty(), tempfile::tempdir().unwrap());
    write_bert(from.path());
    fs::create_dir(from.path().join("1_Pooling")).unwrap();
    let pooling = r#"{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}"#;
    fs::write(from.path().join("1_Pooling/config.json"), pooling).unwrap();
    let installed = quipu.json(&["model", "install", path(&from), "--name", "tiny"]);
    let files = installed["manifest"]["files"].as_array().unwrap();
    let names: Vec<_> = files.iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["config.json", "model.safetensors", "pooling.json", "tokenizer.json"]);
    assert_eq!(quipu.json(&["model", "check", "tiny"])["dimensions"], 8);
}

#[test]
fn a_model_has_the_prefixes_that_it_was_trained_with() {
    let (quipu, from) = (Quipu::empty(), tempfile::tempdir().unwrap());
    let directory = from.path().join("e5-tiny");
    fs::create_dir(&directory).unwrap();
    write_table(&directory);
    let install = |name: &str, rest: &[&str]| {
        let source = directory.to_str().expect("UTF-8");
        let arguments = [&["model", "install", source, "--name", name], rest].concat();
        quipu.json(&arguments)["manifest"].clone()
    };
    let of = |manifest: &Value| {
        [&manifest["question_prefix"], &manifest["passage_prefix"]]
            .map(|it| it.as_str().map(str::to_owned))
    };
    let both =
        |question: &str, passage: &str| [Some(question.to_owned()), Some(passage.to_owned())];
    let family = install("family", &[]);
    assert_eq!(of(&family), both("query: ", "passage: "));
    let given = install("given", &["--question-prefix", "ask ", "--passage-prefix", ""]);
    assert_eq!(of(&given), [Some("ask ".to_owned()), None]);
    let prompts =
        r#"{"prompts": {"query": "q: ", "document": "d: "}, "default_prompt_name": null}"#;
    fs::write(directory.join("config_sentence_transformers.json"), prompts).unwrap();
    assert_eq!(of(&install("said", &[])), both("q: ", "d: "));

    let identity = |name: &str| quipu.json(&["model", "check", name])["identity"].clone();
    assert_ne!(identity("family"), identity("given"));
    let out = quipu.ok(&["model", "install", directory.to_str().unwrap(), "--name", "shown"]);
    assert!(out.contains("questions begin with \"q: \"\npassages begin with \"d: \""), "{out}");
}

/// A directory of the same name would be installed under it without being compared with the digests.
#[test]
fn a_known_name_is_never_a_directory() {
    let (quipu, working) = (Quipu::empty(), tempfile::tempdir().unwrap());
    let directory = working.path().join("all-MiniLM-L6-v2");
    fs::create_dir(&directory).unwrap();
    write_table(&directory);
    let run = |source: &str| {
        let mut command = quipu.command(&["model", "install", source]);
        // Nothing is downloaded: nobody listens there.
        command.env("HTTPS_PROXY", "http://127.0.0.1:9").current_dir(working.path());
        let output = command.output().expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_installed, error) = run("all-MiniLM-L6-v2");
    assert!(!is_installed && error.contains("huggingface.co"), "{error}");
    let (is_installed, error) = run("./all-MiniLM-L6-v2");
    assert!(is_installed, "{error}");
}

#[test]
fn weights_and_tokenizers_are_found_in_folders_of_their_own() {
    let (quipu, from, files) = (Quipu::empty(), tempfile::tempdir().unwrap(), table());
    for (folder, old, new) in [
        ("weights", "model.safetensors", "small_256.safetensors"),
        ("tokenizers", "tokenizer.json", "small_tokenizer_config.json"),
    ] {
        fs::create_dir(from.path().join(folder)).unwrap();
        fs::copy(files.path().join(old), from.path().join(folder).join(new)).unwrap();
    }
    quipu.ok(&["model", "install", path(&from), "--name", "whole"]);
    let weights = from.path().join("weights/small_256.safetensors");
    quipu.ok(&["model", "install", weights.to_str().unwrap(), "--name", "file"]);
    fs::write(from.path().join("weights/other.safetensors"), "").unwrap();
    assert_ne!(install(&quipu, path(&from), &[]).code, 0);
}

#[test]
fn what_a_killed_installation_has_left_is_removed_by_a_later_one() {
    let (quipu, from) = (Quipu::with_store(), table());
    let [old, new] =
        [".install-old", ".install-new"].map(|name| quipu.data().join("models").join(name));
    for directory in [&old, &new] {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("model.safetensors"), "half of it").unwrap();
    }
    fs::File::open(&old).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(install(&quipu, path(&from), &[]).code, 0);
    // Another one may still be running.
    assert!(!old.exists() && new.exists());
}

/// A sparse file has any size and takes no room.
#[test]
fn files_that_are_too_large_are_not_copied() {
    let (quipu, from) = (Quipu::empty(), table());
    for (name, size) in [("tokenizer.json", 64 << 20), ("model.safetensors", 2 << 30)] {
        let file = fs::OpenOptions::new().write(true).open(from.path().join(name)).unwrap();
        file.set_len(size + 1).unwrap();
        check_refused(&quipu, &install(&quipu, path(&from), &[]), "is larger than");
        file.set_len(size).unwrap();
    }
}

#[test]
fn the_digest_is_compared_before_anything_is_installed() {
    let (quipu, from) = (Quipu::empty(), table());
    let ran = install(&quipu, path(&from), &["--sha256", &"0".repeat(64)]);
    check_refused(&quipu, &ran, "has the SHA-256");
    let right = digest(&from.path().join("model.safetensors")).to_uppercase();
    assert_eq!(install(&quipu, path(&from), &["--sha256", &right]).code, 0);
}

#[test]
fn broken_models_are_refused() {
    let (quipu, from) = (Quipu::empty(), table());
    let weights = from.path().join("model.safetensors");
    let whole = fs::read(&weights).unwrap();
    fs::write(&weights, &whole[..whole.len() - 1]).unwrap();
    check_refused(&quipu, &install(&quipu, path(&from), &[]), "incomplete");
    fs::remove_file(&weights).unwrap();
    check_refused(&quipu, &install(&quipu, path(&from), &[]), "there is no model.safetensors");
    fs::write(&weights, &whole).unwrap();
    fs::write(from.path().join("tokenizer.json"), "{}").unwrap();
    check_refused(&quipu, &install(&quipu, path(&from), &[]), "tokenizer");
    check_refused(&quipu, &install(&quipu, "no-such-model", &[]), "neither a directory nor");
}

#[test]
fn names_are_checked_and_never_reused() {
    let (quipu, from) = (Quipu::empty(), table());
    let ran = quipu.run(&["model", "install", path(&from), "--name", "../evil"]);
    check_refused(&quipu, &ran, "cannot be the name");
    quipu.ok(&["model", "install", path(&from), "--name", "tiny"]);
    assert!(install(&quipu, path(&from), &[]).err.contains("installed already"));
    let ran = quipu.run(&["model", "use", "other"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("not installed"), "{}", ran.err);
}

#[test]
fn a_changed_file_is_found_by_the_check() {
    let (quipu, from) = (Quipu::empty(), table());
    quipu.ok(&["model", "install", path(&from), "--name", "tiny"]);
    let weights = quipu.data().join("models/tiny/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, &bytes).unwrap();
    let ran = quipu.run(&["model", "check", "tiny"]);
    assert!(ran.err.contains("changed since it was installed: model.safetensors"), "{}", ran.err);
}

#[test]
fn a_model_that_cannot_be_used_is_noted_once_and_search_goes_on() {
    let quipu = Quipu::with_store();
    quipu.put("/tea.md", "green tea");
    let search = |settings: &str| {
        fs::write(quipu.data().join("quipu.toml"), format!("[vectors]\n{settings}\n")).unwrap();
        let ran = quipu.run(&["search", "tea"]);
        assert!(ran.code == 0 && ran.out.contains("/tea.md"), "{ran:?}");
        ran.err
    };
    let cases = [
        ("model = 'missing'", "the model `missing` is not installed"),
        ("model = '../../etc'", "cannot be the name"),
        ("endpoint = 'http://localhost:9/v1'", "endpoint_model"),
        ("endpoint = 'localhost'\nendpoint_model = 'x'", "must begin with `http://`"),
        (
            "endpoint = 'http://localhost:9'\nendpoint_model = 'x'\nendpoint_key_file = '/none'",
            "endpoint_key_file",
        ),
    ];
    for (settings, expected) in cases {
        let err = search(settings);
        assert!(err.contains(expected), "{err}");
        assert_eq!(err.matches("searching without vectors").count(), 1, "{err}");
        // Whoever searches for nothing needs no model.
        for arguments in [&["ls"][..], &["cat", "/tea.md"], &["store", "list"], &["log"]] {
            let ran = quipu.run(arguments);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}");
        }
    }
    let models = quipu.data().join("models/broken");
    fs::create_dir_all(&models).unwrap();
    fs::write(models.join("manifest.json"), "{").unwrap();
    assert!(search("model = 'broken'").contains("manifest.json"));
    assert_eq!(search("model = 'none'\nendpoint = 'nonsense'"), "");
}

/// What a server has for a path.
#[derive(Clone)]
enum Answer {
    File(PathBuf),
    Redirect(String),
    /// A whole answer, as it is sent.
    Raw(Vec<u8>),
}

/// Serves answers by path, and nothing else; returns its address.
fn serve(answers: Vec<(&'static str, Answer)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a server on this host");
    let url = format!("http://{}", listener.local_addr().expect("a server on this host"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a server on this host");
            let mut head =
                BufReader::new(stream.try_clone().expect("a server on this host")).lines();
            let request =
                head.next().expect("a server on this host").expect("a server on this host");
            while head.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let wanted = request.split(' ').nth(1).expect("a server on this host");
            let answer = answers.iter().find(|(path, _)| wanted == *path);
            let bytes = match answer.map(|(_, answer)| answer.clone()) {
                Some(Answer::File(file)) => {
                    let body = fs::read(file).expect("a server on this host");
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", body.len());
                    [format!("{head}connection: close\r\n\r\n").into_bytes(), body].concat()
                }
                Some(Answer::Redirect(location)) => format!(
                    "HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
                )
                .into_bytes(),
                Some(Answer::Raw(bytes)) => bytes,
                None => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(),
            };
            // A client that has seen enough closes the connection.
            drop(stream.write_all(&bytes));
        }
    });
    url
}

fn files(from: &TempDir, weights: Answer) -> Vec<(&'static str, Answer)> {
    let tokenizer = Answer::File(from.path().join("tokenizer.json"));
    vec![("/m/tokenizer.json", tokenizer), ("/m/model.safetensors", weights)]
}

#[test]
fn a_model_is_installed_from_an_address() {
    let (quipu, from) = (Quipu::empty(), table());
    let weights = from.path().join("model.safetensors");
    let mut answers = files(&from, Answer::Redirect("/elsewhere".to_owned()));
    answers.push(("/elsewhere", Answer::File(weights.clone())));
    let url = format!("{}/m/", serve(answers));
    let ran = quipu.run(&["model", "install", &url]);
    assert!(ran.err.contains("--name"), "{}", ran.err);
    let ran = install(&quipu, &url, &["--sha256", &"0".repeat(64)]);
    check_refused(&quipu, &ran, "has the SHA-256");
    let ran = install(&quipu, &url, &["--sha256", &digest(&weights)]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(quipu.json(&["model", "check", "tiny"])["dimensions"], 4);
}

#[test]
fn downloads_that_go_wrong_install_nothing() {
    let (quipu, from) = (Quipu::empty(), table());
    let check = |weights: Answer, expected: &str| {
        let url = format!("{}/m", serve(files(&from, weights)));
        check_refused(&quipu, &install(&quipu, &url, &[]), expected);
    };
    let whole = fs::read(from.path().join("model.safetensors")).unwrap();
    let raw = |head: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n");
        Answer::Raw([head.as_bytes(), body].concat())
    };
    let length = format!("content-length: {}\r\n", whole.len());
    check(raw(&length, &whole[..100]), "cannot download");
    // Without a length, only the content tells that the end is missing.
    check(raw("", &whole[..whole.len() - 1]), "incomplete");
    check(raw("content-length: 3000000000\r\n", b""), "larger than 2.0 GiB");
    check(raw("", b"<html>not a model</html>"), "broken");
    check(Answer::Redirect("file:///etc/passwd".to_owned()), "not followed");
    check(Answer::Redirect("/m/model.safetensors".to_owned()), "redirects too often");
    check(Answer::Raw(b"HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n".to_vec()), "answered 500");
    check(Answer::Raw(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n".to_vec()), "there is no http");
}

#[test]
fn an_endpoint_is_checked_with_its_key_in_no_output() {
    let quipu = Quipu::with_store();
    let body = r#"{"data": [{"index": 0, "embedding": [3.0, 4.0]}]}"#;
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let answer = Answer::Raw((head + body).into_bytes());
    let url = serve(vec![("/v1/embeddings", answer)]);
    let key_file = quipu.home.path().join("key");
    fs::write(&key_file, "sk-secret\n").unwrap();
    let settings = format!(
        "[vectors]\nendpoint = '{url}/v1'\nendpoint_model = 'tiny'\nendpoint_key_file = '{}'\n",
        key_file.display()
    );
    fs::write(quipu.data().join("quipu.toml"), settings).unwrap();
    let checked = quipu.json(&["model", "check"]);
    assert_eq!(checked["dimensions"], 2);
    assert_eq!(checked["identity"], Value::from(format!("endpoint:{url}/v1 tiny")));

    let mut command = quipu.command(&["model", "check"]);
    command.env("QUIPU_VECTORS_ENDPOINT", "http://127.0.0.1:9/v1");
    command.env("QUIPU_VECTORS_ENDPOINT_KEY", "sk-secret");
    let ran = crate::support::run(command, b"");
    assert!(ran.code == 1 && ran.err.contains("127.0.0.1:9"), "{ran:?}");
    assert!(!ran.err.contains("sk-secret"), "{ran:?}");
}
