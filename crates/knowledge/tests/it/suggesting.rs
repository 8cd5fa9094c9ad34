//! Suggestions: the few memories relevant to a text.

use proptest::prelude::*;
use quipu_core::ErrorKind;
use quipu_core::model::StoreId;
use quipu_knowledge::{SuggestRequest, Suggestion, Suggestions, TEXT_SIZE_BYTES_MAX};
use quipu_testkit::knowledge::{Library, new_store};

use crate::shelf::{memory, put, with};

const NOTES: [(&str, &str); 12] = [
    ("/tea.md", "# Green tea\n\nBrew it at 80 °C for two minutes. Never boil it. See [[Kettle]]."),
    ("/kettle.md", "# Kettle\n\nThe copper kettle whistles, and keeps 80 °C for brewing."),
    (
        "/deploy.md",
        "# Deploying the billing service\n\nTag a release, then run the pipeline. Roll \
        back with `billing rollback`. Ask Ines before Friday deployments.",
    ),
    ("/postgres.md", "# Postgres failover\n\nPromote the standby, then point the pooler at it."),
    ("/style.md", "# Code style\n\nWe use tabs in Go files and four spaces in Python."),
    ("/nora.md", "# Nora\n\nNora is vegetarian and allergic to walnuts. Birthday on May 4."),
    ("/trip.md", "# Lisbon trip\n\nThe flight leaves on Monday; the hotel is in Alfama."),
    ("/router.md", "# Router\n\nThe guest network is called `otter`, its password is in the safe."),
    ("/garden.md", "# Garden\n\nTomatoes need sun, and the basil stands beside them."),
    ("/talk.md", "# Talk on databases\n\nSlides about write-ahead logs and group commit."),
    ("/hello.md", "Hello, how are you? I said hello to everybody this morning."),
    ("/car.md", "# Car\n\nThe winter tires are stored in the cellar; change them in November."),
];

fn suggest(library: &Library, request: &SuggestRequest) -> Suggestions {
    let suggestions = library.engine.suggest(request).expect("it suggests");
    let tokens: usize = suggestions.items.iter().map(|item| item.tokens).sum();
    assert!(tokens <= suggestions.tokens && suggestions.tokens <= request.budget_tokens);
    assert!(suggestions.items.len() <= request.limit);
    for item in &suggestions.items {
        assert!(item.text.len().div_ceil(4) <= item.tokens, "{item:?}");
    }
    suggestions
}

fn items(library: &Library, text: &str) -> Vec<Suggestion> {
    suggest(library, &SuggestRequest::new(vec![library.store], text)).items
}

fn paths(items: &[Suggestion]) -> Vec<&str> {
    items.iter().map(|item| item.note.path.as_str()).collect()
}

#[test]
fn a_prompt_brings_up_what_bears_on_it() {
    let library = with(&NOTES);
    for (prompt, wanted) in [
        ("How hot should the water be for green tea?", "/tea.md"),
        ("Please write a script that deploys the billing service on Fridays.", "/deploy.md"),
        ("I'm cooking dinner for Nora tonight, any ideas?", "/nora.md"),
        ("The primary Postgres is down. What do I do about the failover?", "/postgres.md"),
        ("Do we use tabs or spaces in Python? def f(x): return x", "/style.md"),
        ("which hotel do we have in Lisbon", "/trip.md"),
        ("kettle", "/kettle.md"),
    ] {
        let found = items(&library, prompt);
        assert_eq!(paths(&found).first(), Some(&wanted), "{prompt}");
        assert!(!found[0].words.is_empty() && found[0].is_whole, "{prompt}");
    }
}

#[test]
fn an_unrelated_text_brings_up_nothing() {
    let library = with(&NOTES);
    let binary: String = (0..2_000_u32).filter_map(|it| char::from_u32(it * 37 % 0xd800)).collect();
    for prompt in [
        "",
        "   \n\t ",
        "hello, how are you?",
        "Hello! Good morning, thanks for your help.",
        "the of and is to in it",
        "der die das und ist",
        "Please explain the offside rule in soccer to a child of six years.",
        "Summarize the plot of a novel about whales, ships and obsession in three sentences.",
        "Solve x^2 - 5x + 6 = 0 for x",
        "fn main() { println!(\"{}\", (1..=10).sum::<u32>()); }",
        "Wie wird das Wetter in Hamburg?",
        "今天天气怎么样？",
        "!?!?%&/()",
        binary.as_str(),
    ] {
        let found = items(&library, prompt);
        assert_eq!(paths(&found), Vec::<&str>::new(), "{prompt}");
    }
}

#[test]
fn reasons_are_the_words_of_the_prompt_and_the_links() {
    let library = with(&NOTES);
    let found = items(&library, "brewing green tea: which kettle?");
    assert_eq!(paths(&found), ["/tea.md", "/kettle.md"]);
    let mut words = found[0].words.clone();
    words.sort();
    assert_eq!(words, ["brewing", "green", "kettle", "tea"]);
    assert_eq!(
        found[0].links_to.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["/kettle.md"]
    );
    assert!(found[1].links_to.is_empty());
    let tea = memory(&library, "/tea.md");
    assert_eq!((found[0].note.memory, found[0].note.version), (tea.id, tea.version));
}

#[test]
fn a_text_that_is_a_memory_brings_it_up_first() {
    let library = with(&NOTES);
    let repeated = "# Tea\n\nGreen tea, brew, 80 °C, never boil, two minutes, kettle. ".repeat(3);
    library.put("/tea-again.md", &repeated);
    for (path, text) in NOTES {
        if path != "/hello.md" {
            assert_eq!(paths(&items(&library, text)).first(), Some(&path));
        }
    }
    assert_eq!(paths(&items(&library, &repeated)).first(), Some(&"/tea-again.md"));
}

#[test]
fn a_long_text_is_read_by_its_most_telling_words() {
    let library = with(&NOTES);
    let filler = "We had lunch, and the weather was fine. ".repeat(400);
    let text = format!("{filler} Then the postgres failover began: standby, pooler. {filler}");
    assert_eq!(paths(&items(&library, &text)), ["/postgres.md"]);
    let same = "kettle ".repeat(20_000);
    let request = SuggestRequest::new(vec![library.store], same);
    let suggestions = suggest(&library, &request);
    assert!(suggestions.is_text_cut && request.text.len() > TEXT_SIZE_BYTES_MAX);
    assert_eq!(paths(&suggestions.items)[0], "/kettle.md");
}

#[test]
fn code_and_other_languages_are_understood() {
    let library = with(&[
        ("/parser.md", "# parseJsonStream\n\nIt fails on trailing commas; use `JsonReader`."),
        ("/haus.md", "# Häuser\n\nDie Häuser in der Straße werden im Sommer gestrichen."),
        ("/cha.md", "# 绿茶\n\n绿茶要用八十度的水冲泡，不能煮沸。"),
        ("/chai.md", "# Чай\n\nЗелёный чай заваривают при восьмидесяти градусах."),
        ("/cups.md", "# Cups\n\nThe cups are in the cupboard on the left."),
    ]);
    for (text, wanted) in [
        ("let items = parse_json_stream(&mut input)?;", "/parser.md"),
        ("Wann wird mein Haus gestrichen?", "/haus.md"),
        ("绿茶怎么冲泡？", "/cha.md"),
        ("как заваривать зелёного чая", "/chai.md"),
    ] {
        assert_eq!(paths(&items(&library, text)).first(), Some(&wanted), "{text}");
    }
}

#[test]
fn the_budget_holds_and_long_notes_are_excerpted() {
    let library = with(&NOTES);
    for number in 0..8 {
        let filler = "Nothing of interest happened on this day.\n\n".repeat(100);
        let text =
            format!("# Day {number}\n\n{filler}## Kettle\n\nThe copper kettle broke.\n\n{filler}");
        library.put(&format!("/{number}.md"), &text);
    }
    let new = SuggestRequest::new(vec![library.store], "copper kettle");
    let all = suggest(&library, &SuggestRequest { budget_tokens: 5_000, limit: 50, ..new.clone() });
    let excerpts: Vec<_> = all.items.iter().filter(|item| !item.is_whole).collect();
    assert_eq!((all.items.len(), excerpts.len()), (10, 8));
    for item in excerpts {
        assert!(item.text.contains("## Kettle\n\nThe copper kettle broke."), "{}", item.text);
    }
    let counts = [0, 40, 100, 200, 400, 1000].map(|budget_tokens| {
        suggest(&library, &SuggestRequest { budget_tokens, ..new.clone() }).items.len()
    });
    assert!(counts.is_sorted() && counts[0] == 0 && counts[5] >= 2, "{counts:?}");
    assert_eq!(suggest(&library, &SuggestRequest { limit: 1, ..new.clone() }).items.len(), 1);
    assert_eq!(suggest(&library, &SuggestRequest { limit: 0, ..new }).items.len(), 0);
}

#[test]
fn what_is_over_is_left_out_and_its_successor_says_so() {
    let library = with(&[
        (
            "/old.md",
            "---\nsuperseded_by: '[[Plan B]]'\n---\n# Plan A\n\nThe kettle is blue enamel.",
        ),
        ("/b.md", "---\nsuperseded_by: plans/c\n---\n# Plan B\n\nThe kettle is steel, not enamel."),
        ("/plans/c.md", "# Plan C\n\nWe finally took the kettle of blue copper, and some cups."),
        ("/ended.md", "---\nstatus: rejected\n---\nA kettle of blue plastic enamel."),
        ("/draft.md", "---\nstatus: draft\n---\nA blue enamel kettle, perhaps."),
        ("/loop.md", "---\nsuperseded_by: loop\n---\nblue enamel kettle"),
        ("/cups.md", "Cups."),
        ("/plates.md", "Plates."),
    ]);
    let request = SuggestRequest::new(vec![library.store], "Is the blue enamel kettle ours?");
    let found = suggest(&library, &request);
    let mut said: Vec<_> = found.items.iter().map(|it| it.note.path.as_str()).collect();
    said.sort_unstable();
    assert_eq!(said, ["/draft.md", "/plans/c.md"]);
    let item = |path: &str| found.items.iter().find(|it| it.note.path.as_str() == path).unwrap();
    let mut replaced: Vec<_> =
        item("/plans/c.md").replaces.iter().map(ToString::to_string).collect();
    replaced.sort();
    assert_eq!(replaced, ["/b.md", "/old.md"]);
    assert_eq!(item("/draft.md").freshness.as_ref().unwrap().to_string(), "status draft");
    let mut left: Vec<_> = found.left_out.iter().map(|it| it.path.to_string()).collect();
    left.sort();
    assert_eq!(left, ["/b.md", "/ended.md", "/loop.md", "/old.md"]);
    // What the host knows already is not suggested in place of another either.
    let exclude = vec![item("/plans/c.md").note.memory];
    let found = suggest(&library, &SuggestRequest { exclude, ..request });
    assert_eq!(paths(&found.items), ["/draft.md"]);
}

#[test]
fn only_the_named_stores_are_looked_at() {
    let library = with(&NOTES);
    let other = new_store(&library.engine, "other");
    put(&library, other, "/tea.md", "# Green tea\n\nAnother green tea.");
    let found = |stores: Vec<StoreId>| {
        let request = SuggestRequest::new(stores, "green tea");
        let found = suggest(&library, &request).items;
        found.iter().map(|item| item.note.store).collect::<Vec<_>>()
    };
    assert_eq!(found(vec![other, other]), [other]);
    assert!(found(vec![library.store]).iter().all(|store| *store == library.store));
    assert_eq!(found(vec![library.store, other]).len(), 2);
    assert!(found(Vec::new()).is_empty());
    library.engine.delete_store(other).expect("it is deleted");
    let request = SuggestRequest::new(vec![other], "green tea");
    let error = library.engine.suggest(&request).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotFound);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_answered_within_the_budget_and_always_alike(
        text in "([a-z]{1,8} |kettle |green |tea |\\PC){0,60}",
        budget_tokens in 0_usize..600,
        limit in 0_usize..8,
    ) {
        let library = with(&NOTES);
        let new = SuggestRequest::new(vec![library.store], text);
        let request = SuggestRequest { budget_tokens, limit, ..new };
        let (first, second) = (suggest(&library, &request), suggest(&library, &request));
        prop_assert_eq!(paths(&first.items), paths(&second.items));
    }
}
