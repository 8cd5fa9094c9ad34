//! The slots for connections, and which connection is evicted when all are taken.
//!
//! Without a limit, idle connections exhaust the file descriptors. With a plain limit, anyone who
//! opens that many connections and sends nothing locks everyone else out. So a new connection is
//! always accepted: it evicts the oldest connection without a valid credential, of the peer that has
//! most of those. An honest client has its answer long before it is the oldest of a thousand.
//!
//! A valid credential protects a connection, but at most three quarters of the slots can be
//! protected: a single key that opens streams without end must not lock out the other keys.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// All slots.
#[derive(Clone, Debug)]
pub(super) struct Slots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    count_max: usize,
    table: Mutex<Table>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    /// How many slots are taken.
    taken_count: usize,
    /// How many of them are protected.
    protected_count: usize,
    next: u64,
    /// The connections without a valid credential by peer, each peer's oldest first.
    unprotected: HashMap<IpAddr, BTreeMap<u64, CancellationToken>>,
}

/// A slot that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    number: u64,
    peer: IpAddr,
    evicted: CancellationToken,
    is_protected: AtomicBool,
}

impl Slots {
    pub(super) fn new(count_max: usize) -> Self {
        let table = Mutex::default();
        Self(Arc::new(Inner { count_max: count_max.max(1), table, freed: Notify::new() }))
    }

    /// Waits until a new connection can get a slot: immediately, unless all slots are protected.
    pub(super) async fn available(&self) {
        loop {
            // Registered before the check, so that no release in between is missed.
            let freed = self.0.freed.notified();
            {
                let table = self.table();
                if table.taken_count < self.0.count_max || !table.unprotected.is_empty() {
                    return;
                }
            }
            freed.await;
        }
    }

    /// Takes a slot, and evicts another connection if there is no free one.
    pub(super) fn take(&self, peer: IpAddr) -> Slot {
        let peer = network(peer);
        let mut table = self.table();
        if table.taken_count >= self.0.count_max {
            table.evict();
        }
        table.taken_count += 1;
        table.next += 1;
        let (number, evicted) = (table.next, CancellationToken::new());
        table.unprotected.entry(peer).or_default().insert(number, evicted.clone());
        Slot { slots: self.clone(), number, peer, evicted, is_protected: AtomicBool::new(false) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn evict(&mut self) {
        let most = self.unprotected.iter().max_by_key(|(_, connections)| connections.len());
        let Some(peer) = most.map(|(peer, _)| *peer) else { return };
        let oldest = self.unprotected.get(&peer).and_then(BTreeMap::first_key_value);
        if let Some((&number, evicted)) = oldest {
            evicted.cancel();
            self.forget(peer, number);
        }
    }

    fn forget(&mut self, peer: IpAddr, number: u64) {
        if let Some(connections) = self.unprotected.get_mut(&peer) {
            connections.remove(&number);
            if connections.is_empty() {
                self.unprotected.remove(&peer);
            }
        }
    }
}

impl Slot {
    /// Protects the connection from eviction, because it has presented a valid credential. Does
    /// nothing if too many are protected already.
    pub(super) fn protect(&self) {
        let mut table = self.slots.table();
        let protected_max = self.slots.0.count_max * 3 / 4;
        if self.evicted.is_cancelled()
            || table.protected_count >= protected_max
            || self.is_protected.swap(true, Ordering::Relaxed)
        {
            return;
        }
        table.protected_count += 1;
        table.forget(self.peer, self.number);
    }

    /// Waits until the connection is evicted.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Returns the peer's address; for IPv6, its network.
    pub(super) fn peer(&self) -> IpAddr {
        self.peer
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut table = self.slots.table();
            table.forget(self.peer, self.number);
            table.taken_count -= 1;
            table.protected_count -= usize::from(self.is_protected.load(Ordering::Relaxed));
        }
        self.slots.0.freed.notify_one();
    }
}

/// Returns the identity of a peer: the address, or the /64 network that an IPv6 host usually has for
/// itself.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const ADA: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const BOB: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn is_evicted(slot: &Slot) -> bool {
        slot.evicted().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_unprotected_connection_of_the_busiest_peer_is_evicted() {
        let slots = Slots::new(3);
        let ada = slots.take(ADA);
        let (first, second) = (slots.take(BOB), slots.take(BOB));
        assert!(![&ada, &first, &second].into_iter().any(is_evicted));
        let _third = slots.take(ADA);
        assert_eq!([&ada, &first, &second].map(is_evicted), [false, true, false]);
    }

    #[test]
    fn a_valid_credential_protects_from_eviction() {
        let slots = Slots::new(2);
        let (first, second) = (slots.take(ADA), slots.take(ADA));
        first.protect();
        assert_eq!(slots.table().protected_count, 1);
        let _third = slots.take(ADA);
        assert_eq!([&first, &second].map(is_evicted), [false, true]);
    }

    #[test]
    fn valid_credentials_do_not_take_all_slots() {
        let slots = Slots::new(4);
        let all: Vec<_> = (0..4).map(|_| slots.take(ADA)).collect();
        all.iter().for_each(Slot::protect);
        all.iter().for_each(Slot::protect);
        assert!(slots.available().now_or_never().is_some());
        let new = slots.take(BOB);
        let evicted: Vec<_> = all.iter().map(is_evicted).collect();
        assert_eq!(evicted, [false, false, false, true]);
        drop(all);
        new.protect();
        let _others = [slots.take(ADA), slots.take(ADA), slots.take(ADA), slots.take(ADA)];
        assert!(!is_evicted(&new));
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_peer() {
        let near = ["2001:db8::1", "2001:db8::ffff:1"].map(|text| network(text.parse().unwrap()));
        assert_eq!(near[0], near[1]);
        assert_ne!(near[0], network("2001:db8:0:1::1".parse().unwrap()));
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), ADA);
    }
}
