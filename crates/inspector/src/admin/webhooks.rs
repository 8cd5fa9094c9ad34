//! Webhooks and what was delivered to them.

use maud::{Markup, html};

use crate::host::Webhook;
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visit::Visit;

use super::{Tab, page, require_owner};

/// Lists the webhooks of the settings.
pub(super) fn list(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_owner(visit)?;
    let webhooks = visit.host.webhooks(visit.engine.engine())?;
    let content = html! {
        @if webhooks.is_empty() {
            p { "There are none. " code { "[[webhooks]]" } " in the settings of the server adds them." }
        } @else {
            p { "Stores that are created, archived or deleted are announced to these addresses. The \
                 numbers count since this server was started." }
            div.wide tabindex="0" role="region" aria-label="Webhooks" { table #webhooks {
                thead { tr {
                    th scope="col" { "Address" } th scope="col" { "Delivered" } th scope="col" { "Failed" }
                    th scope="col" { "Waiting" } th scope="col" { "Last error" } th scope="col" { "Last test" }
                } }
                tbody { @for (place, webhook) in webhooks.iter().enumerate() { (row(visit, place, webhook)) } }
            } }
        }
    };
    page(visit, Tab::Webhooks, "Webhooks", &content)
}

fn row(visit: &Visit<'_>, place: usize, webhook: &Webhook) -> Markup {
    let now = visit.engine.now();
    html! { tr {
        th scope="row" { (webhook.url) }
        td { (text::grouped(webhook.accepted_count)) }
        td { (text::grouped(webhook.failed_count)) }
        td { (text::grouped(webhook.waiting_count)) }
        td { @match &webhook.last_error {
            Some((at, reason)) => { (text::time(*at, now)) ": " (reason) }
            None => "none"
        } }
        td {
            @match &webhook.tested {
                Some((at, Ok(()))) => { (text::time(*at, now)) ": accepted " }
                Some((at, Err(reason))) => { (text::time(*at, now)) ": failed, " (reason) " " }
                None => {}
            }
            form method="post" action="/ui/admin/webhooks" {
                (visit.token_field())
                input type="hidden" name="place" value=(place);
                button aria-label={ "Send a test to " (webhook.url) } { "Send a test" }
            }
        }
    } }
}

/// Sends a test delivery.
pub(super) fn test(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_owner(visit)?;
    let place = visit.form.get("place").and_then(|place| place.parse().ok());
    let place = place.ok_or_else(|| {
        Trouble::Invalid("Which webhook? Go back, reload the page and try again.".to_owned())
    })?;
    visit.host.test_webhook(visit.engine.engine(), place);
    Ok(Reply::SeeOther("/ui/admin/webhooks".to_owned()))
}
