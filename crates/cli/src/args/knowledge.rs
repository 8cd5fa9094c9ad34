//! The arguments of `search`, `suggest`, `recent`, `context`, `links` and `graph`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quipu_core::model::MemoryId;
use quipu_knowledge::{BUDGET_TOKENS_DEFAULT, LIMIT_DEFAULT};

use super::PastArguments;

#[derive(Args, Debug)]
pub(crate) struct SearchArguments {
    /// Query: words, "phrases", prefix*, AND, OR, NOT, tag:x, type:x, path:x
    #[arg(value_name = "QUERY")]
    pub(crate) words: Vec<String>,
    /// What the query is compared with (default: words, and meaning where there is a model)
    #[arg(long, value_enum, value_name = "PART")]
    pub(crate) by: Option<SearchIn>,
    /// Kind of results (repeatable)
    #[arg(long = "what", value_enum, value_name = "WHAT")]
    pub(crate) what: Vec<SearchWhat>,
    /// Only in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<String>,
    /// Only notes of this type (repeatable; any of them)
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kinds: Vec<String>,
    /// Only notes with this tag (repeatable; all of them)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Only notes with an observation of this category (repeatable; any of them)
    #[arg(long = "category", value_name = "CATEGORY")]
    pub(crate) categories: Vec<String>,
    /// Only notes whose frontmatter matches, such as `status=open` or `priority>=2` (repeatable)
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) conditions: Vec<String>,
    /// Only memories changed since then: `7d`, `yesterday`, `2026-11-15`
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// Search all stores
    #[arg(long, conflicts_with = "stores")]
    pub(crate) all: bool,
    /// Maximum number of hits
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Number of hits to skip
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) offset: usize,
    /// Show what the score of each hit is made of
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

#[derive(Args, Debug)]
pub(crate) struct SuggestArguments {
    /// Prompt or task; `-` reads it from standard input
    #[arg(value_name = "TEXT", required_unless_present = "file", conflicts_with = "file")]
    pub(crate) words: Vec<String>,
    /// File to suggest memories for
    #[arg(long, short = 'f', value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Maximum number of tokens of the answer, at four bytes each
    #[arg(long, short = 'b', value_name = "TOKENS", default_value_t = BUDGET_TOKENS_DEFAULT)]
    pub(crate) budget: usize,
    /// Maximum number of memories
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = LIMIT_DEFAULT)]
    pub(crate) limit: usize,
    /// Leave out this memory, which is known already (repeatable)
    #[arg(long, value_name = "ID")]
    pub(crate) exclude: Vec<MemoryId>,
    /// Look in all stores
    #[arg(long, conflicts_with = "stores")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SearchIn {
    /// The words of titles, tags, headings and text
    Text,
    /// Titles only
    Title,
    /// Permalinks and paths
    Permalink,
    /// The meaning of passages
    Vector,
    /// Words and meaning
    Hybrid,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SearchWhat {
    /// Whole memories
    Memories,
    /// Individual observations
    Observations,
    /// Individual relations and links
    Relations,
}

#[derive(Args, Debug)]
pub(crate) struct RecentArguments {
    /// Start of the period: `7d`, `yesterday`, `2026-11-15`
    #[arg(default_value = "7d", value_name = "TIME")]
    pub(crate) since: String,
    /// Only notes of this type (repeatable)
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kinds: Vec<String>,
    /// Maximum number of memories
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20)]
    pub(crate) limit: usize,
}

#[derive(Args, Debug)]
pub(crate) struct ContextArguments {
    /// Memory, by path, title, permalink, id or `memory://` URL; or a directory, or a `*` pattern
    pub(crate) memory: String,
    /// Number of links to follow from the memory, at most 5
    #[arg(long, short, value_name = "STEPS", default_value_t = 1)]
    pub(crate) depth: usize,
    /// Only follow relations of this kind (repeatable)
    #[arg(long = "relation", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Only memories changed since then
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// Maximum number of related memories
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) max_related: usize,
    /// Maximum number of memories, if several match
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 10)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

#[derive(Args, Debug)]
pub(crate) struct LinksArguments {
    /// Memory, by path, title, permalink or id
    #[arg(required_unless_present_any = ["unresolved", "orphans"])]
    pub(crate) memory: Option<String>,
    /// List the links that point to the memory instead
    #[arg(long, requires = "memory")]
    pub(crate) back: bool,
    /// List the links of the store whose target does not exist
    #[arg(long, conflicts_with_all = ["memory", "orphans"])]
    pub(crate) unresolved: bool,
    /// List the memories without any links
    #[arg(long, conflicts_with = "memory")]
    pub(crate) orphans: bool,
    /// Maximum number of entries
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 1000)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

#[derive(Args, Debug)]
pub(crate) struct GraphArguments {
    /// Output format
    #[arg(long = "form", value_enum, default_value_t = GraphFormat::Dot, value_name = "FORMAT")]
    pub(crate) format: GraphFormat,
    /// Maximum number of memories
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 500)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Graphviz
    Dot,
    /// An image for any browser
    Svg,
}
