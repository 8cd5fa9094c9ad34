//! Completions for the arguments of prompts and of the resource template.

use quipu_core::engine::ListQuery;
use quipu_core::model::{Directory, Listing, View};
use quipu_core::{Error, ErrorKind};
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};

use super::access::Client;
use super::prompts;

const TIMEFRAMES: [&str; 8] =
    ["today", "yesterday", "1d", "3d", "7d", "2 weeks", "1 month", "3 months"];

/// Returns values that an argument may have, given its beginning.
pub(super) fn complete(
    client: &Client,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, Error> {
    let begun = request.argument.value.to_lowercase();
    let argument = request.argument.name.as_str();
    let values = match &request.r#ref {
        Reference::Resource(_) => match argument {
            "store" | "project" => stores(client)?,
            "path" => {
                let context = request.context.as_ref();
                let store = context.and_then(|context| context.get_argument("store"));
                known(paths(client, store.map(String::as_str)))?
            }
            _ => Vec::new(),
        },
        Reference::Prompt(prompt) if prompts::takes(&prompt.name, argument) => match argument {
            "timeframe" => TIMEFRAMES.map(str::to_owned).to_vec(),
            _ => names(client)?,
        },
        Reference::Prompt(_) | _ => Vec::new(),
    };
    let mut fitting: Vec<_> =
        values.into_iter().filter(|value| value.to_lowercase().contains(&begun)).collect();
    fitting.sort_by_key(|value| !value.to_lowercase().starts_with(&begun));
    let total = u32::try_from(fitting.len()).unwrap_or(u32::MAX);
    let has_more = fitting.len() > CompletionInfo::MAX_VALUES;
    fitting.truncate(CompletionInfo::MAX_VALUES);
    let info = CompletionInfo::with_pagination(fitting, Some(total), has_more);
    Ok(CompleteResult::new(info.unwrap_or_default()))
}

/// There is nothing to complete in a store that does not exist.
fn known(paths: Result<Vec<String>, Error>) -> Result<Vec<String>, Error> {
    match paths {
        Err(error) if *error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        paths => paths,
    }
}

fn stores(client: &Client) -> Result<Vec<String>, Error> {
    Ok(client.stores()?.iter().map(|store| client.short_name(store)).collect())
}

fn paths(client: &Client, store: Option<&str>) -> Result<Vec<String>, Error> {
    let mut paths = Vec::new();
    for store in client.stores_to_read(store)? {
        let query = ListQuery {
            directory: Directory::root(),
            depth: None,
            after: None,
            limit: usize::MAX,
            view: View::Basic,
        };
        let items = client.engine.list(store.id, &query)?.items;
        paths.extend(items.into_iter().filter_map(|item| match item {
            Listing::Memory(memory) => {
                Some(memory.path.as_str().trim_start_matches('/').to_owned())
            }
            Listing::Directory(_) => None,
        }));
    }
    Ok(paths)
}

/// Returns the names of notes, without directory and extension.
fn names(client: &Client) -> Result<Vec<String>, Error> {
    let name = |path: String| {
        let file = path.rsplit_once('/').map_or(path.as_str(), |(_, file)| file);
        file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned()
    };
    Ok(paths(client, None)?.into_iter().map(name).collect())
}
