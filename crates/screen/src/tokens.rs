//! Credentials that are recognized by their own shape: a prefix, then runs of known characters.
//!
//! To add a provider, add a row to [`FAMILIES`]. Sizes are those that the provider documents or
//! that its tokens are seen to have, with room upward where it says that they may grow.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::SecretKind;
use crate::characters::{Class, before, begins_token, ends_token, is_word, padding_end};
use crate::randomness::is_body;

/// Tokens of one shape.
#[derive(Debug)]
pub(super) struct Family {
    /// The kind of credential.
    pub(super) kind: SecretKind,
    /// The prefixes; a token begins with one of them.
    pub(super) prefixes: &'static [&'static str],
    /// What follows the prefix.
    body: &'static [Part],
    /// What of it is secret.
    secret: Secret,
}

/// A piece of a token's body.
///
/// A run is greedy, so the byte that follows one is never of its class.
#[derive(Debug)]
enum Part {
    /// Between a minimum and a maximum number of characters of a class.
    Run(Class, usize, usize),
    /// Exactly this text.
    Text(&'static str),
    /// The padding of base64, if there is any.
    Padding,
}

/// Which part of a match must not be shown.
#[derive(Clone, Copy, Debug)]
enum Secret {
    /// The prefix is part of the token.
    Whole,
    /// The prefix only announces the token, as in a URL.
    Body,
}

impl Family {
    /// Finds the token that begins with the prefix at `anchor`, if it is one.
    pub(super) fn token_at(
        &self,
        bytes: &[u8],
        anchor: Range<usize>,
    ) -> Option<(SecretKind, Range<usize>)> {
        if !self.may_begin(bytes, anchor.start) {
            return None;
        }
        let mut end = anchor.end;
        for part in self.body {
            end = part.end(bytes, end)?;
        }
        let (prefix, body) = (bytes.get(anchor.clone())?, bytes.get(anchor.end..end)?);
        let is_token = ends_token(bytes, end) && is_body(prefix, body);
        let start = match self.secret {
            Secret::Whole => anchor.start,
            Secret::Body => anchor.end,
        };
        is_token.then_some((self.kind, start..end))
    }

    fn may_begin(&self, bytes: &[u8], start: usize) -> bool {
        if !bytes.get(start).is_some_and(|byte| is_word(*byte)) {
            return true;
        }
        // A run of base64 continues over these, although they are not word characters.
        let is_in_base64 = matches!(before(bytes, start, 1), Some(b'+' | b'/'))
            && matches!(self.body.first(), Some(Part::Run(Class::Base64, _, _)));
        begins_token(bytes, start) && !is_in_base64
    }
}

impl Part {
    /// Returns where the part ends, if it begins at `start`.
    fn end(&self, bytes: &[u8], start: usize) -> Option<usize> {
        match *self {
            Self::Run(class, size_min, size_max) => {
                let end = class.run_end(bytes, start);
                (size_min..=size_max).contains(&(end - start)).then_some(end)
            }
            Self::Text(text) => {
                bytes.get(start..)?.starts_with(text.as_bytes()).then_some(start + text.len())
            }
            Self::Padding => Some(padding_end(bytes, start)),
        }
    }
}

const fn tokens(
    kind: SecretKind,
    prefixes: &'static [&'static str],
    body: &'static [Part],
) -> Family {
    Family { kind, prefixes, body, secret: Secret::Whole }
}

const fn carried(
    kind: SecretKind,
    prefixes: &'static [&'static str],
    body: &'static [Part],
) -> Family {
    Family { kind, prefixes, body, secret: Secret::Body }
}

const fn run(class: Class, size_min: usize, size_max: usize) -> Part {
    Part::Run(class, size_min, size_max)
}

const fn text(text: &'static str) -> Part {
    Part::Text(text)
}

/// Every shape that is known.
pub(super) static FAMILIES: &[Family] = &[
    // Keys of people and machines.
    tokens(SecretKind::QuipuKey, &["sk-quipu-"], &[run(Class::Hex, 64, 64)]),
    tokens(SecretKind::AgeSecretKey, &["AGE-SECRET-KEY-1"], &[run(Class::Upper, 58, 58)]),
    // Clouds.
    tokens(
        SecretKind::AwsAccessKey,
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        &[run(Class::Upper, 16, 16)],
    ),
    tokens(SecretKind::AwsAccessKey, &["ABSK"], &[run(Class::Base64, 100, 280), Part::Padding]),
    tokens(SecretKind::GoogleApiKey, &["AIza"], &[run(Class::Word, 35, 35)]),
    tokens(SecretKind::GoogleOauthToken, &["ya29."], &[run(Class::Word, 24, 2048)]),
    tokens(SecretKind::GoogleOauthToken, &["1//0"], &[run(Class::Word, 40, 512)]),
    tokens(SecretKind::GoogleOauthToken, &["GOCSPX-"], &[run(Class::Word, 28, 28)]),
    carried(SecretKind::AzureKey, &["AccountKey="], &[run(Class::Base64, 86, 86), Part::Padding]),
    carried(
        SecretKind::AzureKey,
        &["SharedAccessKey="],
        &[run(Class::Base64, 43, 43), Part::Padding],
    ),
    tokens(
        SecretKind::DigitalOceanToken,
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        &[run(Class::Hex, 64, 64)],
    ),
    tokens(SecretKind::CloudflareToken, &["cfk_", "cfut_", "cfat_"], &[run(Class::Word, 40, 64)]),
    tokens(
        SecretKind::CloudflareToken,
        &["v1.0-"],
        &[run(Class::Hex, 24, 24), text("-"), run(Class::Hex, 146, 146)],
    ),
    tokens(SecretKind::HerokuKey, &["HRKU-"], &[run(Class::Word, 36, 80)]),
    tokens(SecretKind::FlyToken, &["fo1_"], &[run(Class::Word, 40, 48)]),
    tokens(
        SecretKind::FlyToken,
        &["fm1a_", "fm1r_", "fm2_"],
        &[run(Class::Base64, 80, 4096), Part::Padding],
    ),
    tokens(
        SecretKind::VercelToken,
        &["vcp_", "vci_", "vca_", "vcr_", "vck_"],
        &[run(Class::Word, 24, 128)],
    ),
    tokens(SecretKind::SupabaseKey, &["sbp_"], &[run(Class::Hex, 40, 40)]),
    tokens(SecretKind::SupabaseKey, &["sb_secret_"], &[run(Class::Word, 20, 64)]),
    tokens(
        SecretKind::PlanetScaleToken,
        &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"],
        &[run(Class::Word, 32, 64)],
    ),
    tokens(SecretKind::DatabricksToken, &["dapi"], &[run(Class::Hex, 32, 32)]),
    tokens(
        SecretKind::DatabricksToken,
        &["dapi"],
        &[run(Class::Hex, 32, 32), text("-"), run(Class::Digit, 1, 2)],
    ),
    // Code and packages.
    tokens(
        SecretKind::GithubToken,
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        &[run(Class::Alnum, 36, 255)],
    ),
    tokens(
        SecretKind::GithubToken,
        &["github_pat_"],
        &[run(Class::Alnum, 22, 22), text("_"), run(Class::Alnum, 59, 59)],
    ),
    tokens(
        SecretKind::GitlabToken,
        &[
            "glpat-",
            "gldt-",
            "glrt-",
            "glcbt-",
            "glft-",
            "glffct-",
            "glimt-",
            "glagent-",
            "gloas-",
            "glptt-",
            "glsoat-",
            "glwt-",
            "GR1348941",
        ],
        &[run(Class::Word, 20, 320)],
    ),
    tokens(
        SecretKind::GitlabToken,
        &["glpat-", "glrt-"],
        &[run(Class::Word, 27, 300), text("."), run(Class::Alnum, 2, 12)],
    ),
    tokens(
        SecretKind::GitlabToken,
        &["glpat-", "glrt-"],
        &[
            run(Class::Word, 27, 300),
            text("."),
            run(Class::Alnum, 2, 2),
            text("."),
            run(Class::Alnum, 7, 12),
        ],
    ),
    tokens(SecretKind::AtlassianToken, &["ATBB"], &[run(Class::Alnum, 28, 40)]),
    tokens(SecretKind::AtlassianToken, &["ATATT3", "ATCTT3"], &[run(Class::Word, 60, 300)]),
    tokens(SecretKind::NpmToken, &["npm_"], &[run(Class::Alnum, 36, 36)]),
    tokens(SecretKind::PypiToken, &["pypi-AgEI"], &[run(Class::Word, 50, 1024)]),
    tokens(SecretKind::CratesIoToken, &["cio"], &[run(Class::Alnum, 32, 32)]),
    tokens(SecretKind::RubygemsToken, &["rubygems_"], &[run(Class::Hex, 48, 48)]),
    tokens(SecretKind::DockerToken, &["dckr_pat_", "dckr_oat_"], &[run(Class::Word, 24, 48)]),
    tokens(SecretKind::HuggingFaceToken, &["hf_", "api_org_"], &[run(Class::Alnum, 34, 40)]),
    // Chat.
    tokens(
        SecretKind::SlackToken,
        &["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"],
        &[run(Class::Word, 24, 512)],
    ),
    carried(
        SecretKind::SlackWebhook,
        &["hooks.slack.com/services/"],
        &[
            run(Class::Upper, 8, 14),
            text("/"),
            run(Class::Upper, 8, 14),
            text("/"),
            run(Class::Alnum, 20, 32),
        ],
    ),
    carried(
        SecretKind::SlackWebhook,
        &["hooks.slack.com/workflows/", "hooks.slack.com/triggers/"],
        &[run(Class::Base64, 40, 96)],
    ),
    // A bot's id in base64, a time stamp, and a signature. Ids are decimal, so they begin so.
    tokens(
        SecretKind::DiscordToken,
        &["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"],
        &[
            run(Class::Alnum, 22, 26),
            text("."),
            run(Class::Word, 6, 7),
            text("."),
            run(Class::Word, 27, 45),
        ],
    ),
    carried(
        SecretKind::DiscordWebhook,
        &["/api/webhooks/"],
        &[run(Class::Digit, 17, 20), text("/"), run(Class::Word, 60, 88)],
    ),
    // Payment.
    tokens(
        SecretKind::StripeKey,
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        &[run(Class::Alnum, 16, 255)],
    ),
    tokens(SecretKind::StripeKey, &["whsec_"], &[run(Class::Base64, 24, 128), Part::Padding]),
    tokens(SecretKind::SquareToken, &["sq0atp-", "sq0csp-"], &[run(Class::Word, 22, 64)]),
    tokens(SecretKind::SquareToken, &["EAAAE", "EAAAl"], &[run(Class::Word, 59, 59)]),
    tokens(
        SecretKind::BraintreeToken,
        &["access_token$production$", "access_token$sandbox$"],
        &[run(Class::Alnum, 16, 16), text("$"), run(Class::Hex, 32, 32)],
    ),
    tokens(
        SecretKind::ShopifyToken,
        &["shpat_", "shpca_", "shppa_", "shpss_", "shptka_"],
        &[run(Class::AnyHex, 32, 32)],
    ),
    // Models.
    tokens(SecretKind::AnthropicKey, &["sk-ant-"], &[run(Class::Word, 24, 255)]),
    tokens(SecretKind::OpenRouterKey, &["sk-or-v1-"], &[run(Class::Hex, 64, 64)]),
    tokens(SecretKind::OpenAiKey, &["sk-"], &[run(Class::Alnum, 20, 64)]),
    tokens(
        SecretKind::OpenAiKey,
        &["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"],
        &[run(Class::Word, 24, 255)],
    ),
    tokens(SecretKind::GroqKey, &["gsk_"], &[run(Class::Alnum, 40, 64)]),
    tokens(SecretKind::XaiKey, &["xai-"], &[run(Class::Alnum, 64, 96)]),
    tokens(SecretKind::ReplicateToken, &["r8_"], &[run(Class::Alnum, 37, 37)]),
    tokens(SecretKind::PerplexityKey, &["pplx-"], &[run(Class::Alnum, 40, 64)]),
    // Other services.
    tokens(
        SecretKind::SendgridKey,
        &["SG."],
        &[run(Class::Word, 16, 32), text("."), run(Class::Word, 32, 64)],
    ),
    tokens(SecretKind::TwilioKey, &["SK"], &[run(Class::Hex, 32, 32)]),
    tokens(SecretKind::MailgunKey, &["key-"], &[run(Class::Hex, 32, 32)]),
    tokens(
        SecretKind::SentryToken,
        &["sntrys_"],
        &[run(Class::Base64, 40, 1024), Part::Padding, text("_"), run(Class::Base64, 40, 48)],
    ),
    tokens(SecretKind::SentryToken, &["sntryu_"], &[run(Class::Hex, 64, 64)]),
    tokens(SecretKind::LinearKey, &["lin_api_", "lin_oauth_"], &[run(Class::Alnum, 40, 64)]),
    tokens(SecretKind::NotionToken, &["secret_"], &[run(Class::Alnum, 43, 43)]),
    tokens(SecretKind::NotionToken, &["ntn_"], &[run(Class::Alnum, 40, 50)]),
    tokens(SecretKind::VaultToken, &["hvs.", "hvb.", "hvr."], &[run(Class::Word, 24, 512)]),
    tokens(
        SecretKind::DopplerToken,
        &["dp.pt.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        &[run(Class::Alnum, 40, 44)],
    ),
    tokens(
        SecretKind::DopplerToken,
        &["dp.st."],
        &[run(Class::Word, 2, 35), text("."), run(Class::Alnum, 40, 44)],
    ),
    tokens(
        SecretKind::OnePasswordToken,
        &["ops_eyJ"],
        &[run(Class::Base64, 80, 4096), Part::Padding],
    ),
    tokens(
        SecretKind::GrafanaToken,
        &["glsa_"],
        &[run(Class::Alnum, 32, 32), text("_"), run(Class::AnyHex, 8, 8)],
    ),
    tokens(SecretKind::GrafanaToken, &["glc_"], &[run(Class::Base64, 32, 512), Part::Padding]),
    tokens(SecretKind::NewRelicKey, &["NRAK-"], &[run(Class::Upper, 27, 27)]),
    tokens(
        SecretKind::PostmanKey,
        &["PMAK-"],
        &[run(Class::Hex, 24, 24), text("-"), run(Class::Hex, 34, 34)],
    ),
    tokens(
        SecretKind::ServiceKey,
        &["nvapi-", "tvly-", "pcsk_", "jina_", "figd_", "csk-"],
        &[run(Class::Word, 32, 128)],
    ),
    tokens(SecretKind::ServiceKey, &["sk-lf-"], &[run(Class::Word, 36, 36)]),
    tokens(SecretKind::ServiceKey, &["e2b_", "pul-"], &[run(Class::Hex, 40, 40)]),
    tokens(
        SecretKind::ServiceKey,
        &["lsv2_pt_", "lsv2_sk_"],
        &[run(Class::Hex, 32, 32), text("_"), run(Class::Hex, 10, 10)],
    ),
    tokens(
        SecretKind::ServiceKey,
        &["xkeysib-"],
        &[run(Class::Hex, 64, 64), text("-"), run(Class::Alnum, 16, 16)],
    ),
];
