//! Which tables hold the text of a store, and which the events of a session.
//!
//! Erasing rewrites tables, and while a table is rewritten nobody can use it. So text is in partitions, and each
//! statement about one store names the tables of its partition. A statement that names the whole table
//! locks every partition before it finds out which one it needs, whatever plan it has: all writers would wait
//! for any rewrite.
//!
//! A transaction locks the tables of a partition before it uses them, without waiting. If that fails, they are
//! being rewritten, which takes from milliseconds to minutes. Waiting for that with locks or a connection in
//! hand would hold up others, so the transaction ends, and [`Rewriting`] keeps this process away from the
//! partition for a moment.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_core::model::{Id as _, SessionId};

/// How many partitions each of the tables has.
pub(crate) const COUNT: u8 = 16;

/// The tables with the text of stores.
pub(crate) const OF_STORES: [&str; 4] = ["versions", "memories", "store_texts", "refusals"];

/// The table with the text of sessions that is partitioned.
pub(crate) const OF_SESSIONS: [&str; 1] = ["session_events"];

/// Some of the stores, or of the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Partition {
    Stores(u8),
    Sessions(u8),
}

impl Partition {
    /// Returns the partition of a store by its number.
    pub(crate) fn of_store(num: i64) -> Self {
        let remainder = num.rem_euclid(i64::from(COUNT));
        Self::Stores(u8::try_from(remainder).expect("it is less than the number of partitions"))
    }

    pub(crate) fn of_session(id: SessionId) -> Self {
        let remainder = id.bits() % u128::from(COUNT);
        Self::Sessions(u8::try_from(remainder).expect("it is less than the number of partitions"))
    }

    /// Returns the number in the names of its tables.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Stores(number) | Self::Sessions(number) => number,
        }
    }

    /// Returns the names of its tables.
    pub(crate) fn tables(self) -> Vec<String> {
        let names: &[_] = match self {
            Self::Stores(_) => &OF_STORES,
            Self::Sessions(_) => &OF_SESSIONS,
        };
        names.iter().map(|name| format!("{name}_{}", self.number())).collect()
    }

    /// Returns the partition of which a message of the server names a table.
    pub(crate) fn named_in(message: &str) -> Option<Self> {
        let number = |name: &str| {
            let (_, rest) = message.split_once(&format!("{name}_"))?;
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest.get(..end)?.parse().ok().filter(|number| *number < COUNT)
        };
        let of_stores = OF_STORES.iter().find_map(|name| number(name)).map(Self::Stores);
        of_stores.or_else(|| OF_SESSIONS.iter().find_map(|name| number(name)).map(Self::Sessions))
    }

    fn place(self) -> usize {
        match self {
            Self::Stores(number) => usize::from(number),
            Self::Sessions(number) => usize::from(COUNT) + usize::from(number),
        }
    }
}

/// How a transaction uses the tables of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
}

/// Returns the statement that locks the tables of partitions, or fails at once; none for no partition.
pub(crate) fn lock(partitions: &[Partition], purpose: Use) -> Option<String> {
    let tables: Vec<_> = partitions.iter().flat_map(|partition| partition.tables()).collect();
    let mode = match purpose {
        Use::Read => "ACCESS SHARE",
        Use::Write => "ROW EXCLUSIVE",
    };
    (!tables.is_empty()).then(|| format!("LOCK TABLE {} IN {mode} MODE NOWAIT", tables.join(", ")))
}

/// The partitions that were found to be rewritten a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Rewriting {
    until: Mutex<[Option<Instant>; 2 * COUNT as usize]>,
}

/// For how long nobody tries a partition again.
const AVOIDED_FOR: Duration = Duration::from_millis(100);

impl Rewriting {
    /// Keeps everybody away from a partition for a moment.
    pub(crate) fn note(&self, partition: Partition) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = until.get_mut(partition.place()) {
            *until = Some(Instant::now() + AVOIDED_FOR);
        }
    }

    /// Returns whether a partition was found to be rewritten a moment ago.
    pub(crate) fn has(&self, partition: Partition) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(partition.place()).copied().flatten().is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_partition_in_any_language() {
        let named = Partition::named_in;
        let english = "could not obtain lock on relation \"versions_12\"";
        assert_eq!(named(english), Some(Partition::Stores(12)));
        assert_eq!(
            named("konnte Sperre für Relation »memories_3« nicht setzen"),
            Some(Partition::Stores(3))
        );
        assert_eq!(named("relation \"session_events_0\""), Some(Partition::Sessions(0)));
        for other in ["relation \"stores\"", "relation \"versions_99\"", "canceling statement"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn every_number_has_a_partition() {
        assert_eq!(Partition::of_store(35), Partition::Stores(3));
        assert_eq!(Partition::of_store(-1), Partition::Stores(15));
    }
}
