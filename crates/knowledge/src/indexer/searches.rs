//! When the stores of an index on demand were last searched.
//!
//! Several processes of a host share the index: a server, the command line, an agent's MCP server. If each knew
//! only its own searches, a command that makes room would remove what the server searches all the time. So
//! searches are appended to a small file, at most once in a while for each store. Losing it makes a store leave
//! too early, nothing else.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quipu_core::model::{Id as _, StoreId, Timestamp};

/// How long a search of a store keeps further ones from being noted.
const PERIOD: Duration = Duration::from_mins(10);

/// How many entries the file has before it is rewritten. An entry has 24 bytes.
const ENTRIES_MAX: usize = 100_000;

/// The number of bytes of a store's id, and of a moment.
const ID: usize = 16;
const ENTRY: usize = ID + 8;

/// The last searches.
#[derive(Debug)]
pub(super) struct Searches {
    file: PathBuf,
    /// Those of this process, and the moments that are in the file.
    own: Mutex<HashMap<StoreId, (Timestamp, Timestamp)>>,
}

impl Searches {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file, own: Mutex::default() }
    }

    fn own(&self) -> MutexGuard<'_, HashMap<StoreId, (Timestamp, Timestamp)>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that stores are searched.
    pub(super) fn note(&self, stores: &[StoreId], now: Timestamp) {
        let mut entries = Vec::new();
        let mut own = self.own();
        // Clearing it may let a store leave too early.
        if own.len() > ENTRIES_MAX {
            own.clear();
        }
        for store in stores {
            let (last, noted) = own.entry(*store).or_insert((now, Timestamp::MIN));
            *last = now;
            if *noted <= now.minus(PERIOD) {
                *noted = now;
                entries.extend(entry(*store, now));
            }
        }
        drop(own);
        if !entries.is_empty() {
            self.append(&entries);
        }
    }

    /// Returns when each store was last searched, by any process.
    pub(super) fn last(&self) -> HashMap<StoreId, Timestamp> {
        let bytes = fs::read(&self.file).unwrap_or_default();
        let mut last = HashMap::new();
        for entry in bytes.as_chunks::<ENTRY>().0 {
            let (Some(id), Some(at)) = (entry.first_chunk::<ID>(), entry.last_chunk()) else {
                continue;
            };
            let store = StoreId::from_bits(u128::from_be_bytes(*id));
            let at = Timestamp::from_micros(i64::from_be_bytes(*at));
            last.entry(store)
                .and_modify(|known: &mut Timestamp| *known = at.max(*known))
                .or_insert(at);
        }
        if bytes.len() > ENTRIES_MAX * ENTRY {
            self.rewrite(&last);
        }
        for (store, (at, _)) in self.own().iter() {
            last.insert(*store, *at);
        }
        last
    }

    fn append(&self, entries: &[u8]) {
        let mut options = fs::File::options();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // Without it, this process alone knows.
        if let Ok(mut file) = options.open(&self.file) {
            file.write_all(entries).unwrap_or_default();
        }
    }

    /// Leaves one entry for each store. What others append meanwhile is lost.
    fn rewrite(&self, last: &HashMap<StoreId, Timestamp>) {
        let kept: Vec<_> = last.iter().flat_map(|(store, at)| entry(*store, *at)).collect();
        let new = self.file.with_extension("new");
        if fs::write(&new, kept).is_ok() {
            fs::rename(&new, &self.file).unwrap_or_default();
        }
    }
}

fn entry(store: StoreId, at: Timestamp) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    let (id, moment) = entry.split_at_mut(ID);
    id.copy_from_slice(&store.bits().to_be_bytes());
    moment.copy_from_slice(&at.as_micros().to_be_bytes());
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn processes_know_of_each_others_searches() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("searches");
        let [one, other] = [(); 2].map(|()| Searches::new(file.clone()));
        let [first, second] = [1, 2].map(StoreId::from_bits);
        one.note(&[first], at(1_000));
        other.note(&[second], at(2_000));
        one.note(&[first], at(1_001));
        let expected = HashMap::from([(first, at(1_000)), (second, at(2_000))]);
        assert_eq!(other.last(), expected);
        assert_eq!(one.last(), HashMap::from([(first, at(1_001)), (second, at(2_000))]));
        one.note(&[first], at(9_000));
        assert_eq!(other.last()[&first], at(9_000));
    }

    #[test]
    fn the_file_does_not_grow_without_end() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("searches");
        let searches = Searches::new(file.clone());
        let many: Vec<u8> = (0..7)
            .cycle()
            .zip(0..)
            .take(ENTRIES_MAX + 1)
            .flat_map(|(store, moment)| entry(StoreId::from_bits(store), at(moment)))
            .collect();
        fs::write(&file, many).unwrap();
        assert_eq!(searches.last().len(), 7);
        assert_eq!(fs::metadata(&file).unwrap().len(), 7 * ENTRY as u64);
    }
}
