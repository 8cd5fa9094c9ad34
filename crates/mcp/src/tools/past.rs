//! The argument `as_of`: what a tool reads as it was, and how its answer says so.

use quipu_core::model::Store;
use quipu_core::{Error, ErrorKind, Moment};
use quipu_knowledge::{Scope, SearchPage, SearchRequest};
use quipu_notes::Identifier;
use quipu_service::past::Then;
use quipu_service::wire::{AsOfBody, SEARCHED};
use serde_json::{Value, json};

use super::shown::counted;
use super::{Call, found};
use crate::answer::Answer;
use crate::arguments::Arguments;

/// How many stores one call searches as they were: each is read completely.
const STORES_MAX: usize = 8;

/// Returns the moment that a call asks about, as it is written; `None` for the present.
pub(super) fn moment(arguments: &Arguments) -> Result<Option<String>, Error> {
    arguments.word("as_of")
}

/// Returns the store in which an identifier is resolved as of a moment, or the stores, in order.
///
/// A scope of the past has one store: what another one held then is another past.
pub(super) fn scopes(
    call: &Call,
    arguments: &Arguments,
    identifier: &str,
) -> Result<Vec<Scope>, Error> {
    let parsed = Identifier::parse(identifier);
    let named = parsed.store.as_deref().or(parsed.split_store().map(|(store, _)| store));
    if let Some(Ok(store)) = named.map(|name| call.client.store(name)) {
        return Ok(vec![Scope::only(store.id)]);
    }
    let scopes = found::scopes(call, arguments)?;
    Ok(scopes.into_iter().map(|scope| Scope::only(scope.home)).collect())
}

/// Runs `work` on the store of a scope as it was.
pub(super) fn within<T>(
    call: &Call,
    (scope, moment): (&Scope, &str),
    work: impl FnOnce(&Call) -> Result<T, Error>,
) -> Result<(T, Then), Error> {
    let then = Then::parse(call.engine(), scope.home, moment)?;
    let worked = work(&call.at(&then)).map_err(|error| then.explained(error))?;
    Ok((worked, then))
}

/// Searches stores as they were. Each has an order of its own, and they are merged by score.
///
/// A store that did not exist then is left out, unless none did.
pub(super) fn search(
    call: &Call,
    (stores, moment): (&[Store], &str),
    request: &SearchRequest,
) -> Result<(SearchPage, Vec<Then>), Error> {
    if stores.len() > STORES_MAX {
        let message = format!("as_of searches at most {STORES_MAX} stores, not {}", stores.len());
        return Err(Error::invalid(message).with_hint("name some as `project` or `projects`"));
    }
    let asked = Then::moment(call.engine(), moment)?;
    let Some(moment) = shared_moment(call, stores, &asked)? else {
        return Ok((SearchPage::default(), Vec::new()));
    };
    let end = request.offset.saturating_add(request.limit);
    let (mut all, mut thens) = (SearchPage::default(), Vec::new());
    for store in stores {
        call.require_wanted()?;
        let then = match Then::new(call.engine(), store.id, &moment) {
            Err(error) if *error.kind() == ErrorKind::NotFound => continue,
            then => then?.judged_by(&asked),
        };
        let stores = vec![store.id];
        let page = then.engine.search(&SearchRequest {
            stores,
            offset: 0,
            limit: end,
            ..request.clone()
        })?;
        all.hits.extend(page.hits);
        all.total.count += page.total.count;
        all.total.is_lower_bound |= page.total.is_lower_bound;
        all.has_more |= page.has_more;
        all.is_behind |= page.is_behind;
        all.notice = all.notice.or(page.notice);
        thens.push(then);
    }
    all.hits.sort_by(|left, right| {
        let by_score = right.score.total_cmp(&left.score);
        by_score.then_with(|| right.note.updated_at.cmp(&left.note.updated_at))
    });
    all.has_more |= all.hits.len() > end;
    all.hits = all.hits.into_iter().skip(request.offset).take(request.limit).collect();
    Ok((all, thens))
}

/// Returns one moment for all stores; `None` if there are no stores.
///
/// A version is known to its own store only, and `now` may be later by a change for the next store. So the
/// first store that knows the moment says which time it is.
fn shared_moment(call: &Call, stores: &[Store], moment: &Moment) -> Result<Option<Moment>, Error> {
    let mut missing = None;
    for store in stores {
        match call.engine().shared_moment(store.id, moment) {
            Ok(shared) => return Ok(Some(shared)),
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                missing.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    missing.map_or(Ok(None), Err)
}

/// Says in an answer of which moment it is. What it shows is there, so what was redacted is not missed.
pub(super) fn said(answer: Answer, then: &Then) -> Answer {
    marked(answer, (then.into(), line(then, &[])))
}

/// Says in an answer about whole stores of which moment it is, how many notes are missing because they were
/// redacted since, and `remarks`.
pub(super) fn said_of_all(
    answer: Answer,
    thens: &[Then],
    remarks: &[&str],
) -> Result<Answer, Error> {
    // The stores share the moment. If the past of one is incomplete, so is the answer.
    let Some(then) = thens.iter().max_by_key(|then| then.complete_from()) else {
        return Ok(answer);
    };
    let mut redacted_count = 0;
    for then in thens {
        redacted_count += then.redacted()?.len();
    }
    let mut all: Vec<_> = remarks.iter().map(|remark| (*remark).to_owned()).collect();
    if redacted_count > 0 {
        let count = u64::try_from(redacted_count).unwrap_or(u64::MAX);
        all.push(format!("{} cannot be shown: redacted since", counted(count, "note")));
    }
    let mut answer = marked(answer, (then.into(), line(then, &all)));
    if let Some(Value::Object(fields)) = answer.data.get_mut("as_of") {
        fields.insert("redacted_count".to_owned(), json!(redacted_count));
    }
    Ok(answer)
}

/// Says in the answer of a search of which moment it is, and how it searched.
pub(super) fn said_of_search(
    answer: Answer,
    page: &SearchPage,
    thens: &[Then],
) -> Result<Answer, Error> {
    let how = if page.is_behind {
        "too large to be searched completely: more may have matched"
    } else {
        "searched by reading every note"
    };
    let mut answer = said_of_all(answer, thens, &[how])?;
    if let Some(Value::Object(fields)) = answer.data.get_mut("as_of") {
        fields.insert("searched".to_owned(), json!(SEARCHED));
    }
    Ok(answer)
}

fn marked(answer: Answer, (as_of, line): (AsOfBody, String)) -> Answer {
    let Answer { text, mut data } = answer;
    if let Value::Object(fields) = &mut data {
        fields.insert("as_of".to_owned(), json!(as_of));
    }
    Answer::new(format!("{line}\n{text}"), data)
}

fn line(then: &Then, remarks: &[String]) -> String {
    let mut parts = vec![format!("as of {}", then.past.at)];
    if let Some(from) = then.complete_from() {
        parts.push(format!("incomplete: old versions were removed, complete from {from} on"));
    }
    parts.extend(remarks.iter().cloned());
    format!("[{}]", parts.join("; "))
}
