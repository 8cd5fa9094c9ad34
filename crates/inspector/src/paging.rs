//! Lists in pages, of which the address has the number.

use maud::{Markup, html};

use crate::form::{Form, address};
use crate::text;

/// Which page of a list is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paging {
    /// The number of the page; the first is 1.
    number: usize,
    /// How many items a page has.
    size: usize,
}

impl Paging {
    /// Returns the page that the query names, or the first.
    pub(crate) fn new(query: &Form, size: usize) -> Self {
        let number = query.get("page").and_then(|text| text.parse().ok()).unwrap_or(1);
        Self { number: std::cmp::max(number, 1), size }
    }

    /// Returns how many items come before the page.
    pub(crate) fn offset(self) -> usize {
        (self.number - 1).saturating_mul(self.size)
    }

    /// Returns the items of the page.
    pub(crate) fn cut<T>(self, items: &[T]) -> impl Iterator<Item = &T> {
        items.iter().skip(self.offset()).take(self.size)
    }

    /// Returns links to the pages before and after this one of a list that is `total` long. `kept` is
    /// the rest of the query.
    pub(crate) fn links(self, path: &str, kept: &[(&'static str, String)], total: usize) -> Markup {
        let pages = total.div_ceil(self.size).max(1);
        let to = |number: usize| {
            let page = ("page", number.to_string());
            address(path, &kept.iter().cloned().chain([page]).collect::<Vec<_>>())
        };
        html! {
            @if pages > 1 || self.number > 1 {
                nav.pages aria-label="Pages" {
                    @if self.number > 1 {
                        a rel="prev" href=(to((self.number - 1).min(pages))) { "Previous page" }
                    }
                    span { "Page " (text::grouped(self.number as u64)) " of " (text::grouped(pages as u64)) }
                    @if self.number < pages { a rel="next" href=(to(self.number + 1)) { "Next page" } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(query: &str) -> Paging {
        Paging::new(&Form::parse(query.as_bytes()), 10)
    }

    #[test]
    fn a_page_number_that_is_none_is_the_first_page() {
        for query in ["", "page=", "page=x", "page=0", "page=-1", "page=99999999999999999999999"] {
            assert_eq!(paging(query), paging("page=1"), "{query}");
        }
    }

    #[test]
    fn pages_lead_to_their_neighbors_and_keep_the_query() {
        let items: Vec<_> = (0..25).collect();
        assert_eq!(paging("page=3").cut(&items).copied().collect::<Vec<_>>(), [20, 21, 22, 23, 24]);
        let links =
            paging("page=2").links("/ui", &[("q", "a&b".to_owned())], items.len()).into_string();
        assert!(links.contains("/ui?q=a%26b&amp;page=1"), "{links}");
        assert!(links.contains("/ui?q=a%26b&amp;page=3"), "{links}");
        let links = paging("page=3").links("/ui", &[], items.len()).into_string();
        assert!(!links.contains("Next"), "{links}");
    }

    #[test]
    fn a_page_behind_the_end_leads_back() {
        let huge = paging(&format!("page={}", usize::MAX));
        assert_eq!(huge.cut(&[1, 2, 3]).count(), 0);
        assert!(huge.links("/ui", &[], 3).into_string().contains("page=1"));
    }
}
