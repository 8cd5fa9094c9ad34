//! Resources: memories as `memory://store/path`.

use quipu_core::Error;
use quipu_core::engine::ListQuery;
use quipu_core::model::{Directory, Listing, Memory, MemoryPath, Store, View};
use rmcp::model::{
    ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};

use super::access::Client;
use super::place;

/// The URL of a memory; the path may contain slashes.
pub(super) const TEMPLATE: &str = "memory://{store}/{+path}";
const PAGE: usize = 100;

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(TEMPLATE, "memory")
            .with_title("Memory")
            .with_description("The text of a memory, by its store and path")
            .with_mime_type("text/markdown"),
    ]
}

/// Returns whether a URL may name a memory.
pub(super) fn may_be(url: &str) -> bool {
    url.starts_with("memory://")
}

/// Lists memories, store by store. The cursor names a store and the last path.
pub(super) fn list(client: &Client, cursor: Option<&str>) -> Result<ListResourcesResult, Error> {
    let stores = client.stores()?;
    let (mut index, mut after) = match cursor {
        None => (0, None),
        Some(cursor) => resumed(&stores, cursor)?,
    };
    let mut resources = Vec::new();
    while let Some(store) = stores.get(index) {
        let query = ListQuery {
            directory: Directory::root(),
            depth: None,
            after: after.take(),
            limit: PAGE - resources.len(),
            view: View::Basic,
        };
        let page = client.engine.list(store.id, &query)?;
        let name = client.short_name(store);
        resources.extend(page.items.iter().filter_map(|item| match item {
            Listing::Memory(memory) => Some(resource(&name, memory)),
            Listing::Directory(_) => None,
        }));
        if let Some(next) = page.next {
            let mut result = ListResourcesResult::with_all_items(resources);
            result.next_cursor = Some(format!("{}{next}", store.id));
            return Ok(result);
        }
        index += 1;
        if resources.len() == PAGE && stores.get(index).is_some() {
            let mut result = ListResourcesResult::with_all_items(resources);
            result.next_cursor = stores.get(index).map(|store| store.id.to_string());
            return Ok(result);
        }
    }
    Ok(ListResourcesResult::with_all_items(resources))
}

fn resumed(stores: &[Store], cursor: &str) -> Result<(usize, Option<String>), Error> {
    let (id, after) = cursor.split_at(cursor.find('/').unwrap_or(cursor.len()));
    let index = stores.iter().position(|store| store.id.to_string() == id);
    let index = index.ok_or_else(|| {
        Error::invalid("the cursor is not valid").with_hint("list the resources from the beginning")
    })?;
    Ok((index, (!after.is_empty()).then(|| after.to_owned())))
}

fn resource(store: &str, memory: &Memory) -> Resource {
    Resource::new(place::url_in(store, &memory.path), memory.path.file_name())
        .with_title(format!("{store}{}", memory.path))
        .with_mime_type(mime_type(&memory.path))
        .with_size(memory.size_bytes)
}

/// Returns the text of a memory.
pub(super) fn read(client: &Client, url: &str) -> Result<ReadResourceResult, Error> {
    let (store, path) = place::place(client, url)?;
    let memory = client.engine.memory_at(store.id, &path, View::Full)?;
    let content = memory.content.as_ref().expect("the memory was read with its text");
    let contents = ResourceContents::text(content.as_str(), url).with_mime_type(mime_type(&path));
    Ok(ReadResourceResult::new(vec![contents]))
}

fn mime_type(path: &MemoryPath) -> &'static str {
    let name = path.file_name().to_lowercase();
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("md" | "markdown") => "text/markdown",
        Some("json" | "jsonl") => "application/json",
        Some(_) | None => "text/plain",
    }
}
