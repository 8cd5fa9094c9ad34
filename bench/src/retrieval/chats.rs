//! Generated conversations: a fact is said once, in one short message among thousands.
//!
//! There are two sets, each of sessions in folders of their own with a memory for each message. In `chats` a
//! person talks to an assistant, whose long answers mention the words of every question often and
//! know no fact. In `talks` two people write to each other, with their names before each message.
//! Some facts are said in reply to a question, in words that are not those of the fact.
//!
//! The generator knows a few sentences about each subject of `bench/retrieval/chats.txt`, and the
//! same facts are said of several people. It is a model of why conversations are hard to search, not
//! of what people talk about: parameters that win here and lose on the public collections are fitted
//! to the generator.

use std::collections::{BTreeMap, HashSet};

use super::sets::{Question, Set};

const SUBJECTS: &str = include_str!("../../retrieval/chats.txt");

const SESSIONS: usize = 72;
const SUBJECTS_PER_SESSION: usize = 7;

/// Whose facts are said in chats, and how the questions call them.
const OWNERS: [&str; 9] = [
    "my",
    "our",
    "my sister's",
    "my boss's",
    "my cousin's",
    "my neighbor's",
    "Tom's",
    "my aunt's",
    "Priya's",
];

const PEOPLE: [(&str, &str); 4] =
    [("Nora", "Sam"), ("Ines", "Victor"), ("Malik", "Greta"), ("Yuki", "Paul")];

const OPENINGS: [&str; 9] =
    ["", "", "", "oh, ", "by the way, ", "so, ", "guess what: ", "haha ok, ", "well "];
const ENDINGS: [&str; 8] = ["", "", ".", "!", " :)", ", anyway", " lol", ". How are you?"];
pub(super) const CHATTER: [&str; 12] = [
    "thank you, that helps a lot",
    "I'm not sure about that, what do you think?",
    "ok, let me try and tell you tomorrow",
    "can you make it shorter?",
    "what would you do?",
    "good morning! did you sleep well?",
    "that was a long day for us",
    "you always say that",
    "my head hurts, let's talk about something else",
    "hahaha yes, I did the same",
    "we should meet soon, I miss you",
    "tell me more, please",
];
const OFFERS: [&str; 5] = [
    "Great question! Here is what I would recommend.",
    "Of course, I can help you with that.",
    "That sounds exciting! Let me give you an overview.",
    "Here are some things to keep in mind.",
    "I understand. A few suggestions:",
];

/// What can be said about a subject; `{whose}` and `{v}` are replaced.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) values: Vec<&'static str>,
    pub(super) said: Vec<&'static str>,
    pub(super) asked: Vec<&'static str>,
    pub(super) reply: Vec<&'static str>,
    pub(super) small: Vec<&'static str>,
    pub(super) long: Vec<&'static str>,
}

/// Returns the chats with an assistant.
pub(super) fn chats() -> Set {
    Generator::new(1).set("chats", Style::Assistant)
}

/// Returns the conversations of two people.
pub(super) fn talks() -> Set {
    Generator::new(2).set("talks", Style::Friends)
}

/// Returns the same conversations with a memory for each session.
pub(super) fn sessions() -> Set {
    let talks = talks();
    let session = |path: &str| format!("{}.md", path.rsplit_once('/').map_or(path, |it| it.0));
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (path, text) in &talks.texts {
        texts.entry(session(path)).or_default().push_str(text);
    }
    let questions = talks.questions.into_iter().map(|Question { text, answers, .. }| {
        let answers = answers.iter().map(|path| session(path)).collect();
        Question::new(text, answers)
    });
    let questions = questions.collect();
    Set { name: "sessions".to_owned(), texts: texts.into_iter().collect(), questions }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Assistant,
    Friends,
}

pub(super) struct Generator {
    state: u64,
    subjects: Vec<Subject>,
    set: Set,
    /// The facts that were said: each is said once.
    known: HashSet<(&'static str, String)>,
    /// The folder of the session, and the number of messages in it.
    session: (String, usize),
    /// What each message begins with.
    head: String,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: seed,
            subjects: subjects(),
            set: Set::default(),
            known: HashSet::new(),
            session: (String::new(), 0),
            head: String::new(),
        }
    }

    /// Begins a session in a folder, with the head of its messages.
    pub(super) fn begin(&mut self, folder: String, head: String) {
        self.session = (folder, 0);
        self.head = head;
    }

    pub(super) fn subject(&mut self) -> Subject {
        let place = self.below(self.subjects.len());
        self.subjects.get(place).cloned().unwrap_or_default()
    }

    pub(super) fn into_set(self) -> Set {
        self.set
    }

    fn set(mut self, name: &str, style: Style) -> Set {
        for session in 1..=SESSIONS {
            self.session = (format!("/{name}/session-{session:02}"), 0);
            let people = self.pick(&PEOPLE);
            for _ in 0..SUBJECTS_PER_SESSION {
                let subjects = self.subjects.clone();
                let subject = self.pick(&subjects);
                match style {
                    Style::Assistant => self.chat(&subject),
                    Style::Friends => self.talk(&subject, people),
                }
            }
        }
        Set { name: name.to_owned(), ..self.set }
    }

    /// Adds messages of a person and an assistant about a subject.
    fn chat(&mut self, subject: &Subject) {
        for _ in 0..self.below(4) {
            let (small, chatter) = (self.pick(&subject.small), self.pick(&CHATTER));
            let line = if self.below(3) == 0 { chatter } else { small };
            let line = self.dressed(line);
            self.say("user", &line);
            let text = self.answer(subject);
            self.say("assistant", &text);
        }
        let whose = self.pick(&OWNERS);
        if self.known.insert((subject.name, whose.to_owned())) {
            let value = self.pick(&subject.values);
            let (said, small) = (self.pick(&subject.said), self.pick(&subject.small));
            let mut line = self.dressed(&filled(said, whose, value));
            if self.below(3) == 0 {
                line = format!("{line} {small}. What do you think?");
            }
            let path = self.say("user", &line);
            let asked = self.pick(&subject.asked);
            self.ask(&filled(asked, whose, value), path);
            let text = self.answer(subject);
            self.say("assistant", &text);
        }
        let chatter = self.pick(&CHATTER);
        self.say("user", chatter);
        let text = self.answer(subject);
        self.say("assistant", &text);
    }

    /// Adds messages of two people about a subject.
    fn talk(&mut self, subject: &Subject, (first, second): (&str, &str)) {
        for _ in 0..=self.below(3) {
            let (small, chatter) = (self.pick(&subject.small), self.pick(&CHATTER));
            let (small, chatter) = (self.dressed(small), self.dressed(chatter));
            self.say("m", &format!("{first}: {small}"));
            self.say("m", &format!("{second}: {chatter}"));
        }
        let (speaker, other) = if self.below(2) == 0 { (first, second) } else { (second, first) };
        if self.known.insert((subject.name, speaker.to_owned())) {
            let value = self.pick(&subject.values);
            let asked = self.pick(&subject.asked);
            let text = if self.below(3) == 0 {
                let asked_of = filled(asked, "your", value);
                self.say("m", &format!("{other}: {asked_of}?"));
                let reply = self.pick(&subject.reply);
                self.dressed(&filled(reply, "my", value))
            } else {
                let said = self.pick(&subject.said);
                self.dressed(&filled(said, "my", value))
            };
            let path = self.say("m", &format!("{speaker}: {text}"));
            let asked = self.pick(&subject.asked);
            self.ask(&filled(asked, &format!("{speaker}'s"), value), path);
        }
        let small = self.pick(&subject.small);
        let reaction = self.dressed(small);
        self.say("m", &format!("{other}: {reaction}"));
    }

    /// Returns a long answer of the assistant.
    pub(super) fn answer(&mut self, subject: &Subject) -> String {
        let mut text = format!("{}\n", self.pick(&OFFERS));
        for part in 1..=2 + self.below(4) {
            let heading = self.pick(&subject.long);
            let heading: Vec<_> = heading.split(' ').take(5).collect();
            text.push_str(&format!("\n## {part}. {}\n\n", heading.join(" ")));
            for _ in 0..2 + self.below(4) {
                let (sentence, opening) = (self.pick(&subject.long), self.pick(&OPENINGS));
                text.push_str(&format!("- {opening}{sentence}.\n"));
            }
        }
        text.push_str("\nLet me know if you would like more details!");
        text
    }

    pub(super) fn dressed(&mut self, text: &str) -> String {
        format!("{}{text}{}", self.pick(&OPENINGS), self.pick(&ENDINGS))
    }

    /// Adds a message to the session, and returns its path.
    pub(super) fn say(&mut self, who: &str, text: &str) -> String {
        self.session.1 += 1;
        let path = format!("{}/{:03}-{who}.md", self.session.0, self.session.1);
        self.set.texts.push((path.clone(), format!("{}{text}\n", self.head)));
        path
    }

    fn ask(&mut self, question: &str, answer: String) {
        self.ask_in(None, format!("{question}?"), HashSet::from([answer]));
    }

    pub(super) fn ask_in(
        &mut self,
        category: Option<&'static str>,
        text: String,
        answers: HashSet<String>,
    ) {
        self.set.questions.push(Question { category, ..Question::new(text, answers) });
    }

    pub(super) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        let place = self.below(all.len());
        all.get(place).cloned().expect("it is below the length, which is not zero")
    }

    /// Returns a number below a limit, by `SplitMix64`. The set has to be the same on every machine.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from((mixed ^ (mixed >> 31)) % limit).unwrap_or_default()
    }
}

pub(super) fn filled(text: &str, whose: &str, value: &str) -> String {
    text.replace("{whose}", whose).replace("{v}", value)
}

/// Parses the subjects: each line is a kind of sentences, separated by ` | `.
fn subjects() -> Vec<Subject> {
    let mut subjects: Vec<Subject> = Vec::new();
    for line in SUBJECTS.lines().filter(|line| !line.is_empty()) {
        let (kind, rest) = line.split_once(' ').expect("a line has a kind and sentences");
        if kind == "topic" {
            subjects.push(Subject { name: rest, ..Subject::default() });
            continue;
        }
        let subject = subjects.last_mut().expect("the first line names a topic");
        let sentences = match kind {
            "values" => &mut subject.values,
            "said" => &mut subject.said,
            "asked" => &mut subject.asked,
            "reply" => &mut subject.reply,
            "small" => &mut subject.small,
            _ => &mut subject.long,
        };
        sentences.extend(rest.split(" | "));
    }
    subjects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_the_same_every_time_and_its_answers_exist() {
        for (set, again) in [(chats(), chats()), (talks(), talks())] {
            assert_eq!(set.texts, again.texts);
            assert!(set.texts.len() > 1000 && set.questions.len() > 100, "{}", set.texts.len());
            let paths: HashSet<_> = set.texts.iter().map(|(path, _)| path).collect();
            assert_eq!(paths.len(), set.texts.len());
            assert!(set.questions.iter().flat_map(|it| &it.answers).all(|it| paths.contains(it)));
        }
    }
}
