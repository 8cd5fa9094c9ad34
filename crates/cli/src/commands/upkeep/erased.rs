//! `quipu check --erased`: whether a redaction is complete.

use quipu_core::ErrorKind;
use quipu_core::backend::Remains;
use quipu_core::model::{Receipt, ReceiptId, View};
use serde_json::json;

use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::answer;

pub(super) fn check(context: &Context, id: ReceiptId) -> Result<(), Failure> {
    let data = context.open()?;
    let receipt = data.engine.receipt(id)?;
    let mut problems = texts(&data, &receipt)?;
    problems.extend(pending(&data, &receipt)?);
    let Remains { seen, unseen } = data.engine.backend().remains()?;
    problems.extend(seen);
    let body = json!({
        "receipt": id.to_string(),
        "is_complete": problems.is_empty(),
        "remains": problems,
        "unseen": unseen,
    });
    answer(context.form, &body, |out| {
        for problem in &problems {
            writeln!(out, "{problem}")?;
        }
        if problems.is_empty() {
            writeln!(out, "nothing of it is left in what can be looked at from here")?;
        }
        for sentence in &unseen {
            writeln!(out, "not looked at: {sentence}")?;
        }
        Ok(())
    })?;
    match problems.len() {
        0 => Ok(()),
        count => Err(Failure::unsound(count).with_hint("carry this out and run it again")),
    }
}

/// Looks for texts that the receipt says are gone.
fn texts(data: &Data, receipt: &Receipt) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    for &version in &receipt.versions {
        for &store in &receipt.stores {
            match data.engine.version(store, version, View::Full) {
                Ok(found) if found.content.is_some() || found.redaction.is_none() => {
                    problems.push(format!("the version {version} is not redacted"));
                }
                Ok(_) => {}
                Err(error) if *error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(problems)
}

/// Says what has not been taken out of the files yet.
fn pending(data: &Data, receipt: &Receipt) -> Result<Vec<String>, Failure> {
    let pending = data.engine.read(|reader| reader.pending_erasures())?;
    let is_pending = pending.iter().any(|erasure| receipt.stores.contains(&erasure.store));
    let mut problems = Vec::new();
    if is_pending {
        problems
            .push("removed text is still in files; `quipu prune` finishes erasing it".to_owned());
    } else if receipt.proof.is_none() {
        problems.push("nothing has proved the erasure yet; `quipu prune` does".to_owned());
    }
    Ok(problems)
}
