//! Which sessions a key sees, how many there are, and which are pruned.

use quipu_core::backend::SessionQuery;
use quipu_core::model::{Access, Actor, Key, Redaction, Role, Session, SessionId, Store};

use super::{Fixture, Rows};

fn ids(sessions: &[Session]) -> Vec<SessionId> {
    sessions.iter().map(|session| session.id).collect()
}

fn writable(session: Session) -> Session {
    let mut session = session;
    session.attachments.iter_mut().for_each(|attachment| attachment.access = Access::ReadWrite);
    session
}

/// "Only those that this key sees", whatever it opens and whatever they have attached.
pub fn a_viewer_selects_the_sessions_that_it_sees(fixture: &Fixture) {
    let (alpha, beta) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&alpha, &beta]);
    let maker = Rows::key(1, Some(vec![alpha.id]));
    let by_maker = |session: Session| Session { key: Some(maker.id), ..session };
    let sessions = [
        Rows::session(1, &[]),
        Rows::session(2, &[&alpha]),
        writable(Rows::session(3, &[&alpha])),
        Rows::session(4, &[&beta]),
        Rows::session(5, &[&alpha, &beta]),
        writable(Rows::session(6, &[&beta, &alpha])),
        by_maker(Rows::session(7, &[])),
        by_maker(writable(Rows::session(8, &[&beta]))),
        Session { key: None, ..Rows::session(9, &[&alpha]) },
    ];
    let limits: [Option<&[&Store]>; 4] = [None, Some(&[]), Some(&[&alpha]), Some(&[&alpha, &beta])];
    let stores = limits.map(|stores| stores.map(|it| it.iter().map(|store| store.id).collect()));
    let derived = Key { parent: Some(maker.id), ..Rows::key(2, Some(vec![beta.id])) };
    let mut viewers = vec![maker.clone(), derived];
    for role in Role::ALL {
        for stores in &stores {
            let number = 10 + i64::try_from(viewers.len()).expect("a small number");
            viewers.push(Key { role: *role, ..Rows::key(number, stores.clone()) });
        }
    }
    fixture.write(|writer| {
        viewers.iter().try_for_each(|key| writer.put_key(key))?;
        sessions.iter().try_for_each(|session| writer.put_session(session))
    });
    for viewer in viewers {
        let query = SessionQuery { viewer: Some(viewer.clone()), ..Rows::all_sessions() };
        let mut seen: Vec<_> =
            sessions.iter().filter(|session| viewer.sees(session)).cloned().collect();
        seen.reverse();
        let selected = fixture.read(|reader| reader.sessions(&query));
        assert_eq!(ids(&selected), ids(&seen), "{viewer:?}");
    }
}

/// "Returns how many sessions a workspace has, archived ones among them."
pub fn sessions_are_counted_by_workspace(fixture: &Fixture) {
    fixture.with_stores(&[]);
    let archived = Session { archived_at: Some(Rows::at(9)), ..Rows::session(2, &[]) };
    fixture.write(|writer| {
        writer.put_workspace(&Rows::workspace(2))?;
        writer.put_session(&Rows::session(1, &[]))?;
        writer.put_session(&archived)
    });
    let count = |number| fixture.read(|reader| reader.sessions_count(Rows::workspace(number).id));
    assert_eq!((count(1), count(2)), (2, 0));
}

/// "Returns the workspace of a store that was removed."
pub fn a_removed_store_still_has_a_workspace(fixture: &Fixture) {
    let (gone, stays) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&gone, &stays]);
    fixture.with_memories(1, &[&Rows::memory(&stays, 1, "/a", "text")]);
    fixture.write(|writer| writer.remove_store(gone.id));
    fixture.read(|reader| {
        assert_eq!(reader.removed_store(gone.id)?, Some(gone.workspace));
        assert_eq!(reader.removed_store(stays.id)?, None);
        Ok(())
    });
}

/// "Removes at most `limit` sessions that ended before a moment."
pub fn ended_sessions_that_no_version_names_are_pruned(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let revoked = Key { revoked_at: Some(Rows::at(50)), ..Rows::key(2, None) };
    let tokenless = |number| Session { token: None, ..Rows::session(number, &[&store]) };
    let archived = |number, at| Session { archived_at: Some(Rows::at(at)), ..tokenless(number) };
    let author = tokenless(1);
    let redactor = tokenless(2);
    let sessions = [
        author.clone(),
        redactor.clone(),
        // These have ended.
        tokenless(3),
        archived(4, 50),
        Session { token_expires_at: Some(Rows::at(99)), ..Rows::session(5, &[&store]) },
        Session { key: Some(revoked.id), ..Rows::session(6, &[]) },
        // These have not.
        archived(7, 100),
        tokenless(100),
        Session { updated_at: Rows::at(100), ..tokenless(8) },
        Session { token_expires_at: Some(Rows::at(100)), ..Rows::session(9, &[]) },
        Session { token_expires_at: None, key: None, ..Rows::session(10, &[]) },
    ];
    let memory = Rows::memory(&store, 1, "/a", "text");
    let mut commit = Rows::commit(1, None, Some(&memory));
    commit.version.actor = Actor::Session(author.id);
    let redaction = Redaction { at: Rows::at(5), by: Actor::Session(redactor.id) };
    fixture.write(|writer| {
        writer.put_key(&revoked)?;
        sessions.iter().try_for_each(|session| writer.put_session(session))?;
        writer.commit(&commit)?;
        writer.redact(store.id, &[(commit.version.id, redaction.clone())])
    });
    let mut counts = [0; 3];
    for count in &mut counts {
        fixture.write(|writer| {
            *count = writer.prune_sessions(Rows::at(100), 3)?;
            Ok(())
        });
    }
    assert_eq!(counts, [3, 1, 0]);
    let mut left: Vec<_> = sessions.iter().map(|session| session.id).collect();
    left.drain(2..6);
    left.sort_unstable();
    left.reverse();
    let found = fixture.read(|reader| reader.sessions(&Rows::all_sessions()));
    assert_eq!(ids(&found), left);
}

/// "Returns the sessions that this key owns or has ever owned … Removed ones are among them for as long as a
/// version names them, at least."
pub fn a_key_is_known_by_the_sessions_that_it_ever_owned(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let (first, second) = (Rows::key(1, None), Rows::key(2, None));
    let of = |number, key: &Key| Session { key: Some(key.id), ..Rows::session(number, &[]) };
    let (deleted, taken) = (of(1, &first), of(2, &first));
    let memory = Rows::memory(&store, 1, "/a", "text");
    let mut commit = Rows::commit(1, None, Some(&memory));
    commit.version.actor = Actor::Session(deleted.id);
    fixture.write(|writer| {
        writer.put_session(&deleted)?;
        writer.put_session(&taken)?;
        writer.commit(&commit)?;
        writer.put_session(&Session { key: Some(second.id), ..taken.clone() })?;
        writer.remove_session(deleted.id)?;
        writer.prune_sessions(Rows::at(0), 10).map(drop)
    });
    let owned = |key: &Key| fixture.read(|reader| reader.sessions_of_key(key.id));
    assert_eq!(owned(&first), [deleted.id, taken.id]);
    assert_eq!(owned(&second), [taken.id]);
    assert_eq!(owned(&Rows::key(3, None)), []);
}
