//! Tombstones, receipts, and copies that were made.

use quipu_core::model::{
    CopyKind, CopyMade, HeadChange, Id as _, Proof, Reason, Receipt, ReceiptHead, ReceiptId,
    Refusal, ScannedFile, StoreId, Tombstone, Workspace,
};

use super::{Fixture, Rows};

fn tombstone(text: &str) -> Tombstone {
    Tombstone::new(*b"a salt for tests", text).expect("it is long enough")
}

/// "Adds a tombstone to a store, unless it has an equal one. It is removed with the store."
pub fn a_tombstone_is_kept_once_and_removed_with_its_store(fixture: &Fixture) {
    let (one, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&one, &other]);
    let of = |store: StoreId| fixture.read(|reader| reader.tombstones(store));
    assert_eq!(of(one.id), []);
    fixture.write(|writer| {
        writer.put_tombstone(one.id, &tombstone("forgotten"))?;
        writer.put_tombstone(one.id, &tombstone("forgotten"))?;
        writer.put_tombstone(other.id, &tombstone("elsewhere"))
    });
    assert_eq!(of(one.id), [tombstone("forgotten")]);
    assert_eq!(of(other.id), [tombstone("elsewhere")]);
    fixture.write(|writer| writer.delete_store(one.id, Rows::at(9)));
    assert_eq!(of(one.id), []);
    fixture.write(|writer| writer.restore_store(one.id));
    assert_eq!(of(one.id), [tombstone("forgotten")]);
    fixture.write(|writer| writer.remove_store(one.id));
    assert_eq!(of(one.id), []);
    fixture.backend.erase().expect("it erases");
    assert_eq!(fixture.backend.verify().expect("it verifies"), Vec::<String>::new());
}

fn receipt(number: i64) -> Receipt {
    let store = Rows::store(1);
    let memory = Rows::memory(&store, 1, "/a", "one");
    Receipt {
        id: ReceiptId::new(Rows::at(number), 7),
        workspace: Rows::workspace(1).id,
        at: Rows::at(number),
        by: Rows::actor("ada"),
        reason: Some(Reason::new("a \"leaked\" token").expect("it is short")),
        selection: "a text of 24 characters".to_owned(),
        stores: vec![store.id],
        versions: vec![memory.version],
        heads: vec![ReceiptHead {
            memory: memory.id,
            change: HeadChange::EditedAndMoved,
            version: memory.version,
        }],
        sessions: vec![Rows::session(1, &[]).id],
        described_stores: vec![store.id],
        events_count: 5,
        definitions_count: 6,
        refusals_count: 3,
        tombstones_count: 4,
        remarks: vec!["a name holds the text".to_owned()],
        unreachable: vec!["a backup is out of reach".to_owned()],
        proof: None,
    }
}

fn proven(receipt: &Receipt, hits_left: Option<u64>) -> Receipt {
    let scanned = vec![ScannedFile { name: "quipu.db".to_owned(), size_bytes: 4096 }];
    let proof = Proof { at: Rows::at(99), scanned, hits_left };
    Receipt { proof: Some(proof), ..receipt.clone() }
}

/// "Returns at most `limit` receipts of a workspace, the newest first." "Adds or replaces a receipt. It
/// stays when its stores are removed."
pub fn receipts_are_read_back_and_come_newest_first(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let other = Workspace { ..Rows::workspace(2) };
    let foreign = Receipt { workspace: other.id, ..receipt(4) };
    let plain = Receipt { reason: None, heads: Vec::new(), ..proven(&receipt(3), None) };
    fixture.write(|writer| {
        writer.put_workspace(&other)?;
        for receipt in [&receipt(1), &receipt(2), &plain, &foreign] {
            writer.put_receipt(receipt)?;
        }
        writer.put_receipt(&proven(&receipt(2), Some(0)))
    });
    let list = |before, limit| {
        let workspace = Rows::workspace(1).id;
        fixture.read(|reader| reader.receipts(workspace, before, limit))
    };
    let second = proven(&receipt(2), Some(0));
    assert_eq!(list(None, 10), [plain.clone(), second.clone(), receipt(1)]);
    assert_eq!(list(None, 1), [plain.clone()]);
    assert_eq!(list(Some(second.id), 10), [receipt(1)]);
    assert_eq!(fixture.read(|reader| reader.receipt(foreign.id)), Some(foreign));
    assert_eq!(fixture.read(|reader| reader.receipt(receipt(9).id)), None);
    fixture.write(|writer| writer.remove_store(store.id));
    assert_eq!(list(None, 10).len(), 3);
}

/// "Returns the receipts without a proof, of all workspaces."
pub fn a_receipt_without_a_proof_is_found_until_it_has_one(fixture: &Fixture) {
    fixture.with_stores(&[&Rows::store(1)]);
    let unproven = || fixture.read(|reader| reader.unproven_receipts());
    fixture.write(|writer| {
        writer.put_receipt(&receipt(1))?;
        writer.put_receipt(&proven(&receipt(2), None))
    });
    assert_eq!(unproven(), [receipt(1)]);
    fixture.write(|writer| writer.put_receipt(&proven(&receipt(1), Some(1))));
    assert_eq!(unproven(), []);
}

fn copy(number: i64, kind: CopyKind) -> CopyMade {
    CopyMade {
        workspace: Rows::workspace(1).id,
        at: Rows::at(number),
        kind,
        store: (kind == CopyKind::Export).then(|| Rows::store(1).id),
        target: format!("/copies/{number}"),
    }
}

/// "Returns the copies of a workspace that were made at or after a moment, the oldest first." "Records a
/// copy, and removes all but the newest `kept_count` of its workspace." "Removes every record of a copy that
/// equals this one."
pub fn copies_made_are_bounded_and_come_oldest_first(fixture: &Fixture) {
    fixture.with_stores(&[&Rows::store(1)]);
    let other = Rows::workspace(2);
    let foreign = CopyMade { workspace: other.id, ..copy(1, CopyKind::Backup) };
    fixture.write(|writer| {
        writer.put_workspace(&other)?;
        writer.put_copy_made(&foreign, 2)?;
        for number in [1, 3, 2] {
            writer.put_copy_made(&copy(number, CopyKind::Export), 2)?;
        }
        writer.put_copy_made(&copy(4, CopyKind::Backup), 3)
    });
    let since = |number| {
        let workspace = Rows::workspace(1).id;
        fixture.read(|reader| reader.copies_made(workspace, Rows::at(number)))
    };
    let all = [copy(2, CopyKind::Export), copy(3, CopyKind::Export), copy(4, CopyKind::Backup)];
    assert_eq!(since(0), all);
    assert_eq!(since(4), all[2..]);
    fixture.write(|writer| {
        writer.remove_copy_made(&CopyMade { target: "another".to_owned(), ..all[0].clone() })?;
        writer.remove_copy_made(&all[1])?;
        writer.remove_copy_made(&all[2])
    });
    assert_eq!(since(0), all[..1]);
    assert_eq!(fixture.read(|reader| reader.copies_made(other.id, Rows::at(0))), [foreign]);
}

/// "Removes every refusal that equals this one."
pub fn a_refusal_can_be_removed(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let refusal = |path: &str| Refusal {
        store: store.id,
        at: Rows::at(5),
        path: path.to_owned(),
        actor: Rows::actor("ada"),
        reason: "it is too long".to_owned(),
    };
    fixture.write(|writer| {
        for path in ["/a", "/a", "/b"] {
            writer.put_refusal(&refusal(path), 10)?;
        }
        writer.remove_refusal(&Refusal { reason: "another".to_owned(), ..refusal("/b") })?;
        writer.remove_refusal(&refusal("/a"))
    });
    assert_eq!(fixture.read(|reader| reader.refusals(store.id, 10)), [refusal("/b")]);
}

/// "Makes an erasure pending for a store of which a row other than a version has lost text; for the store
/// with the id 0, which does not exist, if the text belonged to no store."
pub fn an_erasure_can_be_required(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let pending = || fixture.read(|reader| reader.pending_erasures());
    fixture.write(|writer| writer.require_erasure(store.id));
    let required = pending();
    assert_eq!(required.len(), 1);
    assert!(required.iter().all(|it| it.store == store.id && it.memory.is_some()));
    fixture.backend.erase().expect("it erases");
    fixture.backend.note_erased(&required).expect("it notes");
    assert_eq!(pending(), []);

    // Agents and session events have text and belong to no store.
    let none = StoreId::from_bits(0);
    fixture.write(|writer| writer.require_erasure(none));
    let required = pending();
    assert_eq!(required.iter().map(|it| it.store).collect::<Vec<_>>(), [none]);
    fixture.backend.erase().expect("it erases");
    fixture.backend.note_erased(&required).expect("it notes");
    assert_eq!(pending(), []);
}
