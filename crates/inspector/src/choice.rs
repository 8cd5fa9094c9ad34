//! The choice of stores in a form: boxes for some, and a field for the names of others.

use maud::{Markup, html};
use quipu_core::model::Store;
use quipu_service::caller::Need;

use crate::form::Form;
use crate::reply::Trouble;
use crate::text;
use crate::visible;
use crate::visit::Visit;

/// How many stores have a box. A thousand of them would be a page of 117 kB that nobody reads.
const LISTED_MAX: usize = 100;

/// The field for the names of stores without a box.
pub(crate) const NAMED: &str = "store_named";

/// Returns a box for each of the first stores and for those that are chosen wherever they are, so that
/// submitting the form keeps them. `typed` are the names of others.
pub(crate) fn boxes(stores: &[Store], chosen: &[String], typed: &str) -> Markup {
    let is_chosen = |store: &Store| chosen.contains(&store.id.to_string());
    let (listed, others): (Vec<_>, Vec<_>) = stores
        .iter()
        .enumerate()
        .partition(|(place, store)| *place < LISTED_MAX || is_chosen(store));
    html! {
        @for (_, store) in listed {
            label.inline {
                input type="checkbox" name="store" value=(store.id) checked[is_chosen(store)];
                (visible::short(store.name.as_str()))
            }
        }
        @if !others.is_empty() {
            label {
                "Names of others, one per line ("
                (text::count(others.len() as u64, "store is", "stores are")) " not listed)"
                textarea.short name=(NAMED) rows="2" spellcheck="false" autocomplete="off" {
                    "\n" (typed)
                }
            }
        }
    }
}

/// Returns the stores that a form names, if the visitor has this permission on them.
pub(crate) fn named(visit: &Visit<'_>, form: &Form, need: Need) -> Result<Vec<Store>, Trouble> {
    let names = form.get(NAMED).unwrap_or_default().lines().map(str::trim);
    names.filter(|name| !name.is_empty()).map(|name| visit.store_named(name, need)).collect()
}
