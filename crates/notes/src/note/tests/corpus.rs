//! Awkward notes, each next to its parsed form.

use super::shown;
use crate::Note;

macro_rules! corpus {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            let text = include_str!(concat!("corpus/", stringify!($name), ".txt"));
            let note = Note::parse(concat!("/corpus/", stringify!($name), ".md"), text);
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "corpus" }, {
                insta::assert_snapshot!(stringify!($name), shown(&note));
            });
        }
    )*};
}

corpus!(
    agent_memory,
    broken_frontmatter,
    code_everywhere,
    crlf_and_bom,
    dataview_vault,
    deep_lists,
    languages,
    markup_in_everything,
    meeting,
    only_frontmatter,
    quotes_and_callouts,
    tables,
    tasks,
    unbalanced,
    web_clip,
);

#[test]
fn the_example_in_the_documentation_is_accurate() {
    let document = include_str!("../../../../../docs/notes.md");
    let example = document.split("```markdown\n").nth(1).and_then(|it| it.split("```").next());
    let note = Note::parse("/example.md", example.unwrap());
    assert_eq!((note.title.as_str(), note.kind.as_str()), ("Deploy pipeline", "runbook"));
    let [first, second] = note.observations.as_slice() else { panic!("{note:#?}") };
    assert_eq!(first.tags, ["policy"]);
    assert_eq!(first.context.as_deref(), Some("agreed in March"));
    assert!(second.text.ends_with("a twentieth of the traffic") && second.times.len() == 1);
    let kinds: Vec<_> = note.relations.iter().map(|relation| relation.kind.as_str()).collect();
    assert_eq!(kinds, ["depends_on", "is blocked by"]);
    assert_eq!(note.links[0].target.store.as_deref(), Some("handbook"));
}
