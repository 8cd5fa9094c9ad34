//! Awkward notes, each beside what is read out of it.

use super::{path, shown};
use crate::note::Note;

macro_rules! corpus {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            let text = include_str!(concat!("corpus/", stringify!($name), ".txt"));
            let note = Note::parse(&path(concat!("/corpus/", stringify!($name), ".md")), text);
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
