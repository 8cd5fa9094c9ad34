//! A generated conversation of two people over a year: thousands of short messages in one store.
//!
//! It is made of what makes such a store hard to search. The same thing is asked and said again in other
//! months, by either of the two, and of their families; the answer to a question does not repeat its words; one of the two
//! likes to give long advice, which mentions every word. Each message has its day in the frontmatter.

use std::collections::{BTreeMap, HashSet};

use super::chats::{CHATTER, Generator, Subject, filled};
use super::sets::{Question, Set};

const SESSIONS: usize = 250;
const SUBJECTS_PER_SESSION: usize = 3;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const PEOPLE: [&str; 2] = ["Mia", "Leo"];

/// Of whom something is said, and what a question calls them after the name of the speaker.
const OWNERS: [(&str, &str); 6] = [
    ("my", ""),
    ("my", ""),
    ("my", ""),
    ("my sister's", " sister's"),
    ("my boss's", " boss's"),
    ("my uncle's", " uncle's"),
];

/// Of whom and what is said: a subject, the number of a person, and the number of an owner.
type Topic = (&'static str, usize, &'static str);

/// Something that was said.
struct Fact {
    asked: String,
    month: usize,
    path: String,
    is_reply: bool,
}

struct Conversation {
    generator: Generator,
    facts: BTreeMap<Topic, Vec<Fact>>,
    advised: HashSet<(&'static str, &'static str)>,
    month: usize,
}

/// Returns the conversation.
pub(super) fn long() -> Set {
    let generator = Generator::new(3);
    let facts = BTreeMap::new();
    let mut all = Conversation { generator, facts, advised: HashSet::new(), month: 0 };
    for session in 0..SESSIONS {
        all.month = session * MONTHS.len() / SESSIONS;
        let first = (all.month * SESSIONS).div_ceil(MONTHS.len());
        let day = format!("2024-{:02}-{:02}", all.month + 1, session - first + 1);
        all.generator.begin(format!("/long/{day}"), format!("---\ndate: {day}\n---\n"));
        for _ in 0..SUBJECTS_PER_SESSION {
            let subject = all.generator.subject();
            all.talk(&subject);
        }
    }
    all.ask();
    Set { name: "long".to_owned(), ..all.generator.into_set() }
}

impl Conversation {
    fn say(&mut self, who: usize, text: &str) -> String {
        let name = PEOPLE.get(who).copied().unwrap_or_default();
        self.generator.say(&name.to_lowercase(), &format!("{name}: {text}"))
    }

    /// Adds some messages about a subject.
    fn talk(&mut self, subject: &Subject) {
        for who in [0, 1] {
            let small = self.generator.pick(&subject.small);
            let chatter = self.generator.pick(&CHATTER);
            let line = if self.generator.below(3) == 0 { chatter } else { small };
            let line = self.generator.dressed(line);
            self.say(who, &line);
        }
        match self.generator.below(4) {
            0 => self.advise(subject),
            1 | 2 => self.state(subject),
            _ => {}
        }
        let small = self.generator.pick(&subject.small);
        self.say(0, small);
        if self.generator.below(3) == 0 {
            let text = self.generator.answer(subject);
            self.say(1, &text);
        }
        let chatter = self.generator.pick(&CHATTER);
        self.say(0, chatter);
    }

    /// Adds a fact, said unasked or in reply to a question.
    fn state(&mut self, subject: &Subject) {
        let generator = &mut self.generator;
        let (whose, asked_of) = generator.pick(&OWNERS);
        let (who, value) = (generator.below(2), generator.pick(&subject.values));
        let asked = generator.pick(&subject.asked);
        let is_reply = generator.below(3) == 0;
        let text = if is_reply {
            let of = format!("your{asked_of}");
            let question = filled(asked, &of, value);
            self.say(1 - who, &format!("{question}?"));
            filled(self.generator.pick(&subject.reply), whose, value)
        } else {
            filled(generator.pick(&subject.said), whose, value)
        };
        let text = self.generator.dressed(&text);
        let path = self.say(who, &text);
        let name = PEOPLE.get(who).copied().unwrap_or_default();
        // Asked for later in words of its own.
        let asked = self.generator.pick(&subject.asked);
        let asked = filled(asked, &format!("{name}'s{asked_of}"), value);
        let fact = Fact { asked, month: self.month, path, is_reply };
        self.facts.entry((subject.name, who, whose)).or_default().push(fact);
    }

    /// Adds a long answer that says something about one thing.
    fn advise(&mut self, subject: &Subject) {
        let value = self.generator.pick(&subject.values);
        let mut text = self.generator.answer(subject);
        let is_new = self.advised.insert((subject.name, value));
        if is_new {
            let sentence = self.generator.pick(&subject.long);
            text.push_str(&format!("\n\nAnd with {value} in mind: {sentence}."));
        }
        let path = self.say(1, &text);
        if is_new {
            let text = format!("what did Leo recommend about the {} with {value}?", subject.name);
            self.generator.ask_in(Some("advice"), text, HashSet::from([path]));
        }
    }

    /// Adds the questions.
    fn ask(&mut self) {
        for facts in std::mem::take(&mut self.facts).into_values() {
            let paths = || facts.iter().map(|fact| fact.path.clone()).collect();
            if let [fact] = facts.as_slice() {
                let category = if fact.is_reply { "said in reply" } else { "said once" };
                self.generator.ask_in(Some(category), format!("{}?", fact.asked), paths());
                continue;
            }
            for fact in &facts {
                let in_month = |it: &&Fact| it.month == fact.month;
                let answers = facts.iter().filter(in_month).map(|it| it.path.clone()).collect();
                let month = MONTHS.get(fact.month).copied().unwrap_or_default();
                let text = format!("{} in {month} 2024?", fact.asked);
                self.generator.ask_in(Some("in a month"), text, answers);
            }
            let Some(first) = facts.first() else { continue };
            self.generator.ask_in(Some("said often"), format!("{}?", first.asked), paths());
        }
    }
}

/// Returns the categories of questions, in order.
pub(super) fn categories(questions: &[Question]) -> Vec<&'static str> {
    let mut categories: Vec<_> = questions.iter().filter_map(|it| it.category).collect();
    categories.sort_unstable();
    categories.dedup();
    categories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conversation_is_the_same_every_time_and_its_answers_exist() {
        let (set, again) = (long(), long());
        assert_eq!(set.texts, again.texts);
        assert!(set.texts.len() > 3500 && set.questions.len() > 200, "{}", set.texts.len());
        let paths: HashSet<_> = set.texts.iter().map(|(path, _)| path).collect();
        assert_eq!(paths.len(), set.texts.len());
        assert!(set.questions.iter().flat_map(|it| &it.answers).all(|it| paths.contains(it)));
        assert_eq!(categories(&set.questions).len(), 5);
    }
}
