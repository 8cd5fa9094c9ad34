//! The kinds of credentials and their names.

use std::fmt;

/// What a credential opens.
///
/// Ordered from specific to general: where two rules find the same text, the smaller kind, such as a
/// GitHub token, is reported rather than the larger, such as a value assigned to `token`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretKind {
    /// A PEM, OpenSSH or PGP private key, from its first line to its last.
    PrivateKey,
    /// The secret key of an age identity.
    AgeSecretKey,
    /// A key of Quipu itself.
    QuipuKey,
    /// The id of an AWS access key, or a Bedrock key.
    AwsAccessKey,
    /// The secret half of an AWS access key.
    AwsSecretKey,
    /// A Google Cloud or Google AI key.
    GoogleApiKey,
    /// A Google OAuth access token, refresh token or client secret.
    GoogleOauthToken,
    /// An Azure storage or service bus key.
    AzureKey,
    /// The signature of an Azure shared access URL.
    AzureSasSignature,
    /// A `DigitalOcean` token.
    DigitalOceanToken,
    /// A Cloudflare token or origin key.
    CloudflareToken,
    /// A Heroku key.
    HerokuKey,
    /// A Fly.io token.
    FlyToken,
    /// A Vercel token.
    VercelToken,
    /// A Supabase token or secret key.
    SupabaseKey,
    /// A `PlanetScale` token or password.
    PlanetScaleToken,
    /// A Databricks token.
    DatabricksToken,
    /// A GitHub token of any sort.
    GithubToken,
    /// A GitLab token of any sort.
    GitlabToken,
    /// A Bitbucket or other Atlassian token.
    AtlassianToken,
    /// An npm token.
    NpmToken,
    /// A `PyPI` token.
    PypiToken,
    /// A crates.io token.
    CratesIoToken,
    /// A `RubyGems` token.
    RubygemsToken,
    /// A Docker Hub token.
    DockerToken,
    /// A Hugging Face token.
    HuggingFaceToken,
    /// A Slack token.
    SlackToken,
    /// The secret part of a Slack webhook URL.
    SlackWebhook,
    /// A Discord bot token.
    DiscordToken,
    /// The secret part of a Discord webhook URL.
    DiscordWebhook,
    /// A Telegram bot token.
    TelegramToken,
    /// A Stripe key or webhook secret.
    StripeKey,
    /// A Square token.
    SquareToken,
    /// A `PayPal` Braintree token.
    BraintreeToken,
    /// A Shopify token.
    ShopifyToken,
    /// An Anthropic key.
    AnthropicKey,
    /// An `OpenRouter` key.
    OpenRouterKey,
    /// An `OpenAI` key, or one of a provider that copied its shape.
    OpenAiKey,
    /// A Groq key.
    GroqKey,
    /// An xAI key.
    XaiKey,
    /// A Replicate token.
    ReplicateToken,
    /// A Perplexity key.
    PerplexityKey,
    /// A `SendGrid` key.
    SendgridKey,
    /// A Twilio key.
    TwilioKey,
    /// A Mailgun key.
    MailgunKey,
    /// A Sentry token.
    SentryToken,
    /// A Linear key.
    LinearKey,
    /// A Notion token.
    NotionToken,
    /// A Vault token.
    VaultToken,
    /// A Doppler token.
    DopplerToken,
    /// A 1Password service account token.
    OnePasswordToken,
    /// A Grafana token.
    GrafanaToken,
    /// A New Relic key.
    NewRelicKey,
    /// A Postman key.
    PostmanKey,
    /// A key of a smaller service, recognized by its shape.
    ServiceKey,
    /// A signed JSON web token.
    JsonWebToken,
    /// The password in a connection string.
    ConnectionPassword,
    /// What follows `Bearer` or `Basic` in a request header.
    AuthorizationHeader,
    /// A random value behind a name such as `api_key` or `password`.
    AssignedSecret,
    /// No credential: text that was redacted from the store. The engine finds it, not a rule of this crate.
    Forgotten,
}

impl SecretKind {
    /// Returns the stable name of the kind, such as `aws-access-key`.
    pub fn as_str(self) -> &'static str {
        self.names().0
    }

    /// The stable name and the display name.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::PrivateKey => ("private-key", "private key"),
            Self::AgeSecretKey => ("age-secret-key", "age secret key"),
            Self::QuipuKey => ("quipu-key", "Quipu key"),
            Self::AwsAccessKey => ("aws-access-key", "AWS access key"),
            Self::AwsSecretKey => ("aws-secret-key", "AWS secret key"),
            Self::GoogleApiKey => ("google-api-key", "Google API key"),
            Self::GoogleOauthToken => ("google-oauth-token", "Google OAuth token"),
            Self::AzureKey => ("azure-key", "Azure key"),
            Self::AzureSasSignature => ("azure-sas-signature", "Azure SAS signature"),
            Self::DigitalOceanToken => ("digitalocean-token", "DigitalOcean token"),
            Self::CloudflareToken => ("cloudflare-token", "Cloudflare token"),
            Self::HerokuKey => ("heroku-key", "Heroku key"),
            Self::FlyToken => ("fly-token", "Fly.io token"),
            Self::VercelToken => ("vercel-token", "Vercel token"),
            Self::SupabaseKey => ("supabase-key", "Supabase key"),
            Self::PlanetScaleToken => ("planetscale-token", "PlanetScale token"),
            Self::DatabricksToken => ("databricks-token", "Databricks token"),
            Self::GithubToken => ("github-token", "GitHub token"),
            Self::GitlabToken => ("gitlab-token", "GitLab token"),
            Self::AtlassianToken => ("atlassian-token", "Atlassian token"),
            Self::NpmToken => ("npm-token", "npm token"),
            Self::PypiToken => ("pypi-token", "PyPI token"),
            Self::CratesIoToken => ("crates-io-token", "crates.io token"),
            Self::RubygemsToken => ("rubygems-token", "RubyGems token"),
            Self::DockerToken => ("docker-token", "Docker Hub token"),
            Self::HuggingFaceToken => ("hugging-face-token", "Hugging Face token"),
            Self::SlackToken => ("slack-token", "Slack token"),
            Self::SlackWebhook => ("slack-webhook", "Slack webhook"),
            Self::DiscordToken => ("discord-token", "Discord bot token"),
            Self::DiscordWebhook => ("discord-webhook", "Discord webhook"),
            Self::TelegramToken => ("telegram-token", "Telegram bot token"),
            Self::StripeKey => ("stripe-key", "Stripe key"),
            Self::SquareToken => ("square-token", "Square token"),
            Self::BraintreeToken => ("braintree-token", "Braintree token"),
            Self::ShopifyToken => ("shopify-token", "Shopify token"),
            Self::AnthropicKey => ("anthropic-key", "Anthropic API key"),
            Self::OpenRouterKey => ("openrouter-key", "OpenRouter API key"),
            Self::OpenAiKey => ("openai-key", "OpenAI API key"),
            Self::GroqKey => ("groq-key", "Groq API key"),
            Self::XaiKey => ("xai-key", "xAI API key"),
            Self::ReplicateToken => ("replicate-token", "Replicate token"),
            Self::PerplexityKey => ("perplexity-key", "Perplexity API key"),
            Self::SendgridKey => ("sendgrid-key", "SendGrid key"),
            Self::TwilioKey => ("twilio-key", "Twilio key"),
            Self::MailgunKey => ("mailgun-key", "Mailgun key"),
            Self::SentryToken => ("sentry-token", "Sentry token"),
            Self::LinearKey => ("linear-key", "Linear key"),
            Self::NotionToken => ("notion-token", "Notion token"),
            Self::VaultToken => ("vault-token", "Vault token"),
            Self::DopplerToken => ("doppler-token", "Doppler token"),
            Self::OnePasswordToken => ("1password-token", "1Password token"),
            Self::GrafanaToken => ("grafana-token", "Grafana token"),
            Self::NewRelicKey => ("new-relic-key", "New Relic key"),
            Self::PostmanKey => ("postman-key", "Postman key"),
            Self::ServiceKey => ("service-key", "service key"),
            Self::JsonWebToken => ("json-web-token", "JSON web token"),
            Self::ConnectionPassword => ("connection-password", "password in a connection string"),
            Self::AuthorizationHeader => ("authorization-header", "authorization header"),
            Self::AssignedSecret => ("assigned-secret", "secret value assigned to a name"),
            Self::Forgotten => ("redacted-text", "text that was redacted from this store"),
        }
    }
}

/// Writes the display name, such as `AWS access key`, without an article.
impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names().1)
    }
}
