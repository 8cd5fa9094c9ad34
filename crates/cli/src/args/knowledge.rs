//! The arguments of `search`, `recent`, `context`, `links` and `graph`.

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
pub(crate) struct SearchArguments {
    /// What to look for: words, "phrases", word*, AND, OR, NOT, tag:x, type:x, path:x
    #[arg(value_name = "QUERY")]
    pub(crate) words: Vec<String>,
    /// What the words are compared with
    #[arg(long, value_enum, default_value_t = SearchIn::Text, value_name = "PART")]
    pub(crate) by: SearchIn,
    /// What to search and list (may be repeated)
    #[arg(long = "what", value_enum, value_name = "WHAT")]
    pub(crate) what: Vec<SearchWhat>,
    /// Only in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<String>,
    /// Only notes of this type (may be repeated; one must fit)
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kinds: Vec<String>,
    /// Only notes with this tag (may be repeated; all must fit)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Only notes with an observation of this category (may be repeated; one must fit)
    #[arg(long = "category", value_name = "CATEGORY")]
    pub(crate) categories: Vec<String>,
    /// Only notes whose frontmatter fits, such as `status=open` or `priority>=2` (may be repeated)
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) conditions: Vec<String>,
    /// Only what changed since then: `7d`, `yesterday`, `2026-11-15`
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// Search all stores
    #[arg(long, conflicts_with = "stores")]
    pub(crate) all: bool,
    /// How many hits at most
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 10)]
    pub(crate) limit: usize,
    /// How many hits to leave out at the beginning
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) offset: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SearchIn {
    /// Titles, tags, headings and texts
    Text,
    /// Titles only
    Title,
    /// Permalinks and paths
    Permalink,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SearchWhat {
    /// Whole memories
    Memories,
    /// Single observations
    Observations,
    /// Single relations and links
    Relations,
}

#[derive(Args, Debug)]
pub(crate) struct RecentArguments {
    /// Since when: `7d`, `yesterday`, `2026-11-15`
    #[arg(default_value = "7d", value_name = "TIME")]
    pub(crate) since: String,
    /// Only notes of this type (may be repeated)
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kinds: Vec<String>,
    /// How many memories at most
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20)]
    pub(crate) limit: usize,
}

#[derive(Args, Debug)]
pub(crate) struct ContextArguments {
    /// The memory: its path, title, permalink, id or `memory://` URL; a directory or a pattern with `*`
    pub(crate) memory: String,
    /// How many steps along links to go, 5 at most
    #[arg(long, short, value_name = "STEPS", default_value_t = 1)]
    pub(crate) depth: usize,
    /// Only along this kind of relation (may be repeated)
    #[arg(long = "relation", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Only to memories that changed since then
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// How many related memories at most
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) max_related: usize,
    /// How many memories at most, if several are meant
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 10)]
    pub(crate) limit: usize,
}

#[derive(Args, Debug)]
pub(crate) struct LinksArguments {
    /// The memory: its path, title, permalink or id
    #[arg(required_unless_present_any = ["unresolved", "orphans"])]
    pub(crate) memory: Option<String>,
    /// The links that lead to the memory instead
    #[arg(long, requires = "memory")]
    pub(crate) back: bool,
    /// The links of the whole store that mean nothing
    #[arg(long, conflicts_with_all = ["memory", "orphans"])]
    pub(crate) unresolved: bool,
    /// The memories that no link leads to or from
    #[arg(long, conflicts_with = "memory")]
    pub(crate) orphans: bool,
    /// How many at most
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 1000)]
    pub(crate) limit: usize,
}

#[derive(Args, Debug)]
pub(crate) struct GraphArguments {
    /// The form of the drawing
    #[arg(long, value_enum, default_value_t = GraphForm::Dot, value_name = "FORM")]
    pub(crate) form: GraphForm,
    /// How many memories at most
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 500)]
    pub(crate) limit: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GraphForm {
    /// For Graphviz
    Dot,
    /// A drawing that every browser shows
    Svg,
}
