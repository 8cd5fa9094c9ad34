//! Test sets: texts, questions, and the texts that answer each question.
//!
//! Public collections are read as they are distributed. None of them is part of this repository.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A set of texts and questions.
#[derive(Debug, Default)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) texts: Vec<(String, String)>,
    pub(super) questions: Vec<Question>,
}

/// A question and the paths that answer it.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) answers: HashSet<String>,
    /// The kind of question, in sets that tell several apart.
    pub(super) category: Option<&'static str>,
}

impl Question {
    pub(super) fn new(text: String, answers: HashSet<String>) -> Self {
        Self { text, answers, category: None }
    }
}

/// Reads the set in a directory, which is told apart by its files:
///
/// - `notes/` and `questions.jsonl`: notes, and on each line a question with the paths of its answers;
/// - `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`: the BEIR format;
/// - `*.all`, `*.qry` and `*.rel`: the SMART format of Cranfield, CACM and CISI.
pub(super) fn read(directory: &Path) -> Set {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let set = if directory.join("notes").is_dir() {
        of_notes(directory)
    } else if directory.join("corpus.jsonl").is_file() {
        beir(directory)
    } else {
        smart(directory)
    };
    Set { name, ..set }
}

/// Writes a set as `notes/` and `questions.jsonl` into a directory, for other programs to read.
pub(super) fn write(set: &Set, directory: &Path) {
    let save = |file: &Path, text: &str| {
        fs::create_dir_all(file.parent().unwrap_or(directory)).expect("a directory");
        fs::write(file, text).expect("it is written");
    };
    for (path, text) in &set.texts {
        save(&directory.join("notes").join(path.trim_start_matches('/')), text);
    }
    let questions = set.questions.iter().map(|Question { text, answers, category }| {
        let mut answers: Vec<_> = answers.iter().collect();
        answers.sort();
        format!("{}\n", json!({ "question": text, "answers": answers, "category": category }))
    });
    save(&directory.join("questions.jsonl"), &questions.collect::<String>());
}

fn of_notes(directory: &Path) -> Set {
    let folder = directory.join("notes");
    let mut texts = Vec::new();
    let mut waiting = vec![folder.clone()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("the folder can be read") {
            let file = entry.expect("an entry").path();
            if file.is_dir() {
                waiting.push(file);
                continue;
            }
            let place = file.strip_prefix(&folder).expect("it is below the folder");
            texts.push((format!("/{}", place.display()), text_of(&file)));
        }
    }
    texts.sort();
    let questions = lines(&directory.join("questions.jsonl"), |line| {
        let rooted = |path: &str| format!("/{}", path.trim_start_matches('/'));
        let paths = line.get("answers")?.as_array()?.iter();
        let answers = paths.filter_map(Value::as_str).map(rooted).collect();
        Some(Question::new(line.get("question")?.as_str()?.to_owned(), answers))
    });
    Set { texts, questions, ..Set::default() }
}

fn beir(directory: &Path) -> Set {
    let field = |line: &Value, key: &str| Some(line.get(key)?.as_str()?.to_owned());
    let texts = lines(&directory.join("corpus.jsonl"), |line| {
        let title = field(line, "title").unwrap_or_default();
        Some((path(&field(line, "_id")?), note(&title, &field(line, "text")?)))
    });
    let mut judged: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for line in text_of(&directory.join("qrels/test.tsv")).lines().skip(1) {
        let cells: Vec<_> = line.split('\t').collect();
        let [question, document, grade] = cells.as_slice() else { continue };
        if *grade != "0" {
            judged.entry((*question).to_owned()).or_default().insert(path(document));
        }
    }
    let questions: Vec<_> = lines(&directory.join("queries.jsonl"), |line| {
        Some((field(line, "_id")?, field(line, "text")?))
    });
    let questions = questions.into_iter().filter_map(|(id, text)| {
        let answers = judged.remove(&id)?;
        Some(Question::new(text, answers))
    });
    Set { questions: questions.collect(), texts, ..Set::default() }
}

fn smart(directory: &Path) -> Set {
    let file = |extension: &str| -> PathBuf {
        let entries = fs::read_dir(directory).expect("the directory of a set can be read");
        let mut files = entries.map(|entry| entry.expect("an entry").path());
        let found = files.find(|file| file.extension().is_some_and(|it| it == extension));
        found.expect("a set has `notes/`, `corpus.jsonl`, or files `.all`, `.qry` and `.rel`")
    };
    let documents = smart_records(&text_of(&file("all")));
    let texts = documents.iter().map(|(id, fields)| {
        let field = |key: char| fields.get(&key).map(String::as_str).unwrap_or_default();
        (path(id), note(field('T'), field('W')))
    });
    let mut judged: BTreeMap<usize, HashSet<String>> = BTreeMap::new();
    for line in text_of(&file("rel")).lines() {
        let cells: Vec<_> = line.split_whitespace().collect();
        // The format of TREC has a column of zeros before the document, and grades.
        let (question, document) = match cells.as_slice() {
            [_, "0", _, grade] if grade.starts_with(['0', '-']) => continue,
            [question, "0", document, ..] | [question, document, ..] => (question, document),
            _ => continue,
        };
        let question = question.parse().expect("the number of a question");
        judged.entry(question).or_default().insert(path(document.trim_start_matches('0')));
    }
    // The questions of Cranfield have other numbers than its judgments, which count them from one.
    let questions = smart_records(&text_of(&file("qry"))).into_iter().zip(1..);
    let questions = questions.filter_map(|((_, fields), number)| {
        let text = fields.get(&'W')?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Question::new(text, judged.remove(&number)?))
    });
    Set { texts: texts.collect(), questions: questions.collect(), ..Set::default() }
}

/// Returns the records of a file with their numbers. A record begins with `.I 1`, and each of its
/// fields with a line such as `.T`.
fn smart_records(text: &str) -> Vec<(String, BTreeMap<char, String>)> {
    let mut records: Vec<(String, BTreeMap<char, String>)> = Vec::new();
    let mut field = ' ';
    for line in text.lines() {
        if let Some(number) = line.strip_prefix(".I ") {
            records.push((number.trim().trim_start_matches('0').to_owned(), BTreeMap::new()));
            field = ' ';
        } else if let Some(key) = line.trim_end().strip_prefix('.').filter(|key| key.len() == 1) {
            field = key.chars().next().unwrap_or(' ');
        } else if let Some((_, fields)) = records.last_mut() {
            let value = fields.entry(field).or_default();
            value.push_str(line);
            value.push('\n');
        }
    }
    records
}

fn path(id: &str) -> String {
    format!("/{id}.md")
}

fn note(title: &str, text: &str) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let head = if title.is_empty() { String::new() } else { format!("# {title}\n\n") };
    format!("{head}{text}\n")
}

fn text_of(file: &Path) -> String {
    let bytes = fs::read(file).unwrap_or_else(|error| fail(file, &error.to_string()));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn lines<T>(file: &Path, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    let text = text_of(file);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let parse = |line: &str| read(&serde_json::from_str(line).ok()?);
    lines.map(|line| parse(line).unwrap_or_else(|| fail(file, line))).collect()
}

#[expect(clippy::panic, reason = "a benchmark with wrong input says so and ends")]
fn fail<T>(file: &Path, what: &str) -> T {
    panic!("{}: {what}", file.display())
}
