//! Dry runs: what a store would accept of an import.

use std::sync::Mutex;

use quipu_core::backend::Usage;
use quipu_core::engine::Engine;
use quipu_core::model::{Content, Listing, Memory, MemoryPath, SecretPolicy, Store};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};

use super::writing::Credentials;

/// A simulated store, which counts what would be written.
pub(super) struct DryRun {
    policy: SecretPolicy,
    limits: Limits,
    usage: Mutex<Usage>,
}

impl DryRun {
    /// Simulates an existing store, which must accept new text.
    pub(super) fn of(engine: &Engine, store: &Store) -> Result<Self, Error> {
        if store.archived_at.is_some() {
            let message = format!("the store `{}` is archived and takes no new text", store.name);
            return Err(Error::new(ErrorKind::StoreArchived, message)
                .with_hint("import into another store"));
        }
        let (policy, limits) = (store.policy.secrets, engine.limits().clone());
        Ok(Self { policy, limits, usage: Mutex::new(engine.usage(store.id)?) })
    }

    /// Simulates a new store.
    pub(super) fn of_new_store(limits: &Limits) -> Self {
        let policy = SecretPolicy::default();
        Self { policy, limits: limits.clone(), usage: Mutex::default() }
    }

    /// Simulates a write; fails with the reason if the store would refuse it.
    pub(super) fn write(
        &self,
        content: &Content,
        before: Option<&Memory>,
    ) -> Result<Credentials, String> {
        let findings = match self.policy {
            SecretPolicy::Off => Vec::new(),
            SecretPolicy::Warn | SecretPolicy::Redact | SecretPolicy::Reject => {
                quipu_screen::findings(content.as_str())
            }
        };
        let has_credentials = !findings.is_empty();
        if has_credentials && self.policy == SecretPolicy::Reject {
            return Err("the text holds a credential, which this store refuses".to_owned());
        }
        let size_bytes = match self.policy {
            SecretPolicy::Redact => {
                let redacted = quipu_screen::redacted(content.as_str(), &findings);
                u64::try_from(redacted.len()).unwrap_or(u64::MAX)
            }
            SecretPolicy::Off | SecretPolicy::Warn | SecretPolicy::Reject => content.size_bytes(),
        };
        let mut usage = self.usage.lock().expect("no writer panicked");
        let (count_max, size_max) =
            (self.limits.memories_per_store_max, self.limits.store_size_bytes_max);
        let count = usage.memories_count + u64::from(before.is_none());
        if before.is_none() && count > count_max {
            return Err(format!("the store would hold more than {count_max} memories, its limit"));
        }
        let freed = before.map_or(0, |memory| memory.size_bytes);
        let size = usage.size_bytes.saturating_sub(freed) + size_bytes;
        // As in the engine, a write that frees space is accepted even if the store is full.
        if size > size_max && size_bytes > freed {
            return Err(format!("the store would hold more than {size_max} bytes, its limit"));
        }
        *usage = Usage { memories_count: count, size_bytes: size };
        Ok(if has_credentials { Credentials::Found } else { Credentials::None })
    }
}

/// Returns why no memory can be created at an unused path, if so.
pub(super) fn obstacle(
    engine: &Engine,
    store: &Store,
    path: &MemoryPath,
) -> Result<Option<String>, Error> {
    if let Some(Listing::Directory(_)) = engine.entry(store.id, path)? {
        return Ok(Some(format!("memories live below `{path}`, so nothing can live at it")));
    }
    for above in path.ancestors() {
        let Ok(above) = MemoryPath::parse(above) else { continue };
        if let Some(Listing::Memory(_)) = engine.entry(store.id, &above)? {
            return Ok(Some(format!("`{above}` is a memory, so nothing can live below it")));
        }
    }
    Ok(None)
}
