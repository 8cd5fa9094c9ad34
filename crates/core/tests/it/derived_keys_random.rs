//! Random derivations, exchanges, revocations and clock jumps, against a naive reference.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::time::Duration;

use proptest::prelude::*;
use quipu_core::Clock as _;
use quipu_core::engine::{DERIVED_KEYS_MAX, Derivation, NewDerivedKey, NewKey};
use quipu_core::model::{Forwarding, Key, KeyKind, Role, Timestamp};

use crate::support::{Fixture, fixture, name};

/// What is done next. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Create { seconds: Option<u16> },
    Derive { from: usize, kind: KeyKind, role: Role, seconds: u16 },
    Exchange { key: usize, kind: KeyKind, role: Role, seconds: u16 },
    Extend { key: usize, seconds: u16 },
    Revoke { key: usize },
    RevokeFamily { key: usize },
    Advance { seconds: u16 },
    SetBack { seconds: u16 },
}

fn step() -> impl Strategy<Value = Step> {
    let kind = || prop::sample::select(KeyKind::ALL);
    let role = || prop::sample::select(Role::ALL);
    let (key, seconds) = (0..40_usize, 1..200_u16);
    prop_oneof![
        1 => prop::option::of(seconds.clone()).prop_map(|seconds| Step::Create { seconds }),
        4 => (key.clone(), kind(), role(), seconds.clone())
            .prop_map(|(from, kind, role, seconds)| Step::Derive { from, kind, role, seconds }),
        4 => (key.clone(), kind(), role(), seconds.clone())
            .prop_map(|(key, kind, role, seconds)| Step::Exchange { key, kind, role, seconds }),
        1 => (key.clone(), seconds.clone()).prop_map(|(key, seconds)| Step::Extend { key, seconds }),
        1 => key.clone().prop_map(|key| Step::Revoke { key }),
        1 => key.prop_map(|key| Step::RevokeFamily { key }),
        1 => seconds.clone().prop_map(|seconds| Step::Advance { seconds }),
        1 => seconds.prop_map(|seconds| Step::SetBack { seconds }),
    ]
}

/// A key as the rules say that it is.
#[derive(Clone, Debug)]
struct Known {
    secret: String,
    kind: KeyKind,
    role: Role,
    /// The place of the key that it ends with; its own if it was not derived.
    root: usize,
    /// The place of the first of its family.
    family: usize,
    expires_at: Option<Timestamp>,
    is_revoked: bool,
}

struct Reference {
    fixture: Fixture,
    rows: Vec<Key>,
    known: Vec<Known>,
}

impl Reference {
    fn is_valid(&self, place: usize) -> bool {
        let now = self.fixture.clock.now();
        let is_valid = |key: &Known| !key.is_revoked && key.expires_at.is_none_or(|at| now < at);
        let key = &self.known[place];
        is_valid(key) && is_valid(&self.known[key.root])
    }

    fn later(&self, seconds: u16) -> Timestamp {
        self.fixture.clock.now().plus(Duration::from_secs(u64::from(seconds)))
    }

    fn bounded(&self, root: usize, until: Timestamp) -> Timestamp {
        self.known[root].expires_at.map_or(until, |last| until.min(last))
    }

    fn new_key(&self, kind: KeyKind, role: Role, seconds: u16) -> NewDerivedKey {
        let (stores, expires_at) = (None, self.later(seconds));
        NewDerivedKey { kind, name: name("ada"), role, stores, expires_at, payload: None }
    }

    fn create(&mut self, seconds: Option<u16>) {
        let expires_at = seconds.map(|seconds| self.later(seconds));
        let new = NewKey {
            name: name("k"),
            role: Role::Admin,
            stores: None,
            expires_at,
            secret: None,
            forwarding: Forwarding::Denied,
        };
        let (row, secret) =
            self.fixture.engine.create_key(self.fixture.workspace, &new).expect("a key");
        let (root, kind) = (self.known.len(), KeyKind::Key);
        let secret = secret.reveal().to_owned();
        let (role, family, is_revoked) = (Role::Admin, root, false);
        self.known.push(Known { secret, kind, role, root, family, expires_at, is_revoked });
        self.rows.push(row);
    }

    fn derive(&mut self, from: usize, kind: KeyKind, role: Role, seconds: u16) {
        let new = self.new_key(kind, role, seconds);
        let source = self.known[from].clone();
        let is_source = source.root == from || source.kind == KeyKind::Browser;
        let is_allowed = self.is_valid(from) && is_source && role <= source.role;
        let from = Derivation::Key(self.rows[from].id);
        let derived = self.fixture.engine.derive_key(from, &new);
        assert_eq!(derived.is_ok(), is_allowed, "{derived:?}");
        if let Ok((row, secret)) = derived {
            let expires_at = Some(self.bounded(source.root, new.expires_at));
            assert_eq!((row.expires_at, row.parent), (expires_at, Some(self.rows[source.root].id)));
            let (root, family) = (source.root, self.known.len());
            let (secret, is_revoked) = (secret.reveal().to_owned(), false);
            self.known.push(Known { secret, kind, role, root, family, expires_at, is_revoked });
            self.rows.push(row);
        }
    }

    fn exchange(&mut self, key: usize, kind: KeyKind, role: Role, seconds: u16) {
        let source = self.known[key].clone();
        let new = self.new_key(kind, role, seconds);
        let exchange = self.fixture.engine.exchange_key(&source.secret, source.kind, |redeemed| {
            assert_eq!(redeemed.id, self.rows[key].id);
            Ok(vec![new.clone()])
        });
        if source.kind.opens() {
            exchange.expect_err("it is not redeemed");
            return;
        }
        if source.is_revoked && source.kind != KeyKind::Link {
            self.revoke_family(source.family);
        }
        if !self.is_valid(key) {
            assert!(exchange.expect("it is answered").is_none());
            return;
        }
        if role > source.role {
            exchange.expect_err("it would have more rights");
            return;
        }
        let mut exchange = exchange.expect("it is answered").expect("it is valid");
        self.known[key].is_revoked = true;
        let (row, secret) = exchange.issued.remove(0);
        let expires_at = Some(self.bounded(source.root, new.expires_at));
        assert_eq!(row.expires_at, expires_at);
        let (root, family) = (source.root, source.family);
        let (secret, is_revoked) = (secret.reveal().to_owned(), false);
        self.known.push(Known { secret, kind, role, root, family, expires_at, is_revoked });
        self.rows.push(row);
    }

    /// Revokes what is valid and belongs to a family; what has expired stays as it is.
    fn revoke_family(&mut self, family: usize) {
        let now = self.fixture.clock.now();
        for key in self.known.iter_mut().filter(|key| key.family == family) {
            key.is_revoked |= key.expires_at.is_none_or(|at| now < at);
        }
    }

    fn run(&mut self, step: &Step) {
        let place = |number: usize| number % self.known.len();
        match *step {
            Step::Create { seconds } => self.create(seconds),
            Step::Derive { from, kind, role, seconds } => {
                self.derive(place(from), kind, role, seconds);
            }
            Step::Exchange { key, kind, role, seconds } => {
                self.exchange(place(key), kind, role, seconds);
            }
            Step::Extend { key, seconds } => {
                let (key, until) = (place(key), self.later(seconds));
                let extended = self.fixture.engine.extend_key(self.rows[key].id, until).unwrap();
                let is_extended = self.known[key].kind == KeyKind::Browser && self.is_valid(key);
                assert_eq!(extended.is_some(), is_extended);
                if is_extended {
                    let until = self.bounded(self.known[key].root, until);
                    self.known[key].expires_at = self.known[key].expires_at.max(Some(until));
                }
            }
            Step::Revoke { key } => {
                let key = place(key);
                self.fixture.engine.revoke_key(self.rows[key].id).unwrap();
                self.known[key].is_revoked = true;
            }
            Step::RevokeFamily { key } => {
                let key = place(key);
                self.fixture.engine.revoke_family(self.rows[key].id).unwrap();
                let is_root = self.known[key].root == key;
                if !is_root {
                    self.revoke_family(self.known[key].family);
                }
            }
            Step::Advance { seconds } => {
                self.fixture.clock.advance(Duration::from_secs(u64::from(seconds)));
            }
            Step::SetBack { seconds } => {
                let span = Duration::from_secs(u64::from(seconds));
                self.fixture.clock.set(self.fixture.clock.now().minus(span));
            }
        }
    }

    fn check(&self) {
        for (place, key) in self.known.iter().enumerate() {
            let is_admitted = self.fixture.engine.principal(&key.secret).unwrap().is_some();
            assert_eq!(is_admitted, key.kind.opens() && self.is_valid(place), "{key:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn keys_are_valid_as_the_rules_say(steps in prop::collection::vec(step(), 1..DERIVED_KEYS_MAX)) {
        let mut reference = Reference { fixture: fixture(), rows: Vec::new(), known: Vec::new() };
        reference.create(None);
        for step in &steps {
            reference.run(step);
            reference.check();
        }
        prop_assert_eq!(reference.fixture.engine.check().unwrap().problems, []);
    }
}
