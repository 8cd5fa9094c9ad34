//! Explanations: what the score of a hit is made of.

use quipu_knowledge::{
    Explanation, ScorePart, ScoreReason, ScoredField, SearchHit, SearchMode, SearchRequest,
    SearchTarget, WordScore,
};
use quipu_testkit::knowledge::Library;

use crate::shelf::with;

fn explained(library: &Library, text: &str, mode: SearchMode) -> Vec<SearchHit> {
    let new = SearchRequest::new(vec![library.store], text);
    let request = SearchRequest { explain: true, mode, ..new };
    let hits = library.engine.search(&request).expect("it searches").hits;
    for hit in &hits {
        let explained = explanation(hit).score();
        assert!((explained - hit.score).abs() < 1e-9, "{text}: {explained} {}", hit.score);
    }
    hits
}

fn explanation(hit: &SearchHit) -> &Explanation {
    hit.explanation.as_ref().expect("it was asked for")
}

fn words(hit: &SearchHit) -> Vec<&WordScore> {
    let parts = explanation(hit).parts.iter();
    let word = parts.filter_map(|part| match &part.reason {
        ScoreReason::Word(word) => Some(word),
        ScoreReason::Coverage(_)
        | ScoreReason::Date(_)
        | ScoreReason::Nearness(_)
        | ScoreReason::Neighbors
        | ScoreReason::Surroundings(_)
        | ScoreReason::Directory(_)
        | ScoreReason::Freshness(_)
        | ScoreReason::Partial
        | ScoreReason::Similar(_)
        | ScoreReason::SimilarSurroundings(_)
        | ScoreReason::Name => None,
    });
    word.collect()
}

#[test]
fn a_score_is_explained_by_words_fields_and_bonuses() {
    let library = with(&[
        ("/a.md", "---\ntags: tea\n---\n# Green tea\n\n## Tea\n\nBrew the tea."),
        ("/b/b.md", "A kettle for tea."),
    ]);
    let hits = explained(&library, "tea kettles", SearchMode::Text);
    let first = hits.iter().find(|hit| hit.note.path.as_str() == "/a.md").expect("it is found");
    let [tea] = words(first)[..] else { panic!("{first:?}") };
    assert_eq!((tea.term.as_str(), tea.document_frequency, tea.length), ("tea", 2, 6));
    let frequencies: Vec<_> = tea.fields.iter().map(|it| (it.field, it.frequency)).collect();
    assert_eq!(
        frequencies,
        [
            (ScoredField::Title, 1.0),
            (ScoredField::Tag, 1.0),
            (ScoredField::Body, 3.0),
            (ScoredField::Other, 1.0),
        ]
    );
    let share = |hit: &SearchHit| {
        let parts = explanation(hit).parts.iter();
        let share = |part: &ScorePart| {
            if let ScoreReason::Coverage(share) = part.reason { Some(share) } else { None }
        };
        { parts }.find_map(share).expect("each has some of the words")
    };
    assert!(share(first) > 0.0 && share(first) < 1.0);
    let second = hits.iter().find(|hit| hit.note.path.as_str() == "/b/b.md").expect("it is found");
    let terms: Vec<_> = words(second).iter().map(|word| word.term.as_str()).collect();
    assert_eq!((terms, share(second)), (vec!["tea", "kettl"], 1.0));
}

#[test]
fn prefixes_phrases_and_names_are_explained() {
    let library = with(&[("/corn.md", "corn"), ("/cord.md", "cords of quipus, cord by cord")]);
    let hits = explained(&library, "cor*", SearchMode::Text);
    assert_eq!((hits.len(), words(&hits[0])[0].term.as_str()), (2, "cor*"));
    let hits = explained(&library, "quip", SearchMode::Text);
    let last = explanation(&hits[0]).parts.last().expect("a part");
    assert_eq!((hits.len(), &last.reason), (1, &ScoreReason::Partial));
    assert!(last.score < 0.0);
    let hits = explained(&library, "\"cord by cord\"", SearchMode::Text);
    assert_eq!(words(&hits[0])[0].term, "cord by cord");
    let hits = explained(&library, "corn", SearchMode::Permalink);
    assert_eq!(explanation(&hits[0]).parts[0].reason, ScoreReason::Name);
}

#[test]
fn parts_of_memories_are_explained() {
    let library = with(&[("/a.md", "# Kettle\n\n- [rule] Never boil tea\n- needs [[Tea cups]]")]);
    let targets = vec![SearchTarget::Observations, SearchTarget::Relations];
    let new = SearchRequest::new(vec![library.store], "tea");
    let request = SearchRequest { explain: true, targets, ..new };
    let hits = library.engine.search(&request).expect("it searches").hits;
    assert_eq!(hits.len(), 2);
    for hit in &hits {
        assert!((explanation(hit).score() - hit.score).abs() < 1e-9);
        assert_eq!(words(hit)[0].term, "tea");
    }
}

#[test]
fn nothing_is_explained_unless_asked_for() {
    let library = with(&[("/a.md", "tea")]);
    let request = SearchRequest::new(vec![library.store], "tea");
    let hits = library.engine.search(&request).expect("it searches").hits;
    assert!(hits[0].explanation.is_none());
}

#[test]
fn a_hit_has_the_same_explanation_on_every_page() {
    let notes: Vec<_> = (0..30)
        .map(|number| {
            let word = ["tea", "teapot", "green tea", "kettle"][number % 4];
            let state = if number % 5 == 0 { "status: draft" } else { "tags: brew" };
            (format!("/{number}.md"), format!("---\n{state}\n---\n{word} {number} brewing"))
        })
        .collect();
    let notes: Vec<_> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let library = crate::vectors::embedded(&notes);
    for (mode, text) in [
        (SearchMode::Text, "green tea brews"),
        (SearchMode::Text, "tea"),
        (SearchMode::Text, "te* \"green tea\""),
        (SearchMode::Hybrid, "green tea today"),
        (SearchMode::Vector, "green tea"),
        (SearchMode::Permalink, "1*"),
    ] {
        let new = SearchRequest::new(vec![library.store], text);
        let request = SearchRequest { explain: true, mode, ..new };
        let all = SearchRequest { limit: 100, ..request.clone() };
        let all = library.engine.search(&all).expect("it searches").hits;
        assert!(all.len() > 3, "{mode:?} {text}");
        for (place, hit) in all.iter().enumerate() {
            let page = SearchRequest { offset: place, limit: 1, ..request.clone() };
            let page = library.engine.search(&page).expect("it searches").hits;
            assert_eq!(page[0].note.path, hit.note.path, "{mode:?} {text}");
            assert_eq!(page[0].explanation, hit.explanation, "{mode:?} {text}");
            let explained = explanation(hit).score();
            assert!((explained - hit.score).abs() < 1e-9, "{mode:?} {text}");
        }
    }
}
