//! Making connections.
//!
//! The driver tries the hosts of a URL in turn, but its timeout ends with the socket: a host whose kernel still
//! accepts connections while the server is stopped would use up the time of all others. So each host gets a
//! time of its own for everything from its name to the end of the sign-in, and the one that worked last
//! is tried first.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_core::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Config, Connection, NoTls, Socket};

use crate::client::block_on;
use crate::endpoint::{Endpoint, Security};
use crate::error::{Failure, Refuser};
use crate::tls::Tls;

/// How much longer than all hosts together whoever waits for a connection waits.
const MARGIN: Duration = Duration::from_secs(1);

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    hosts: Arc<[Config]>,
    /// The host that the last connection was made to.
    last: Arc<AtomicUsize>,
    tls: Option<Tls>,
    runtime: Handle,
}

/// A connection that was made.
pub(crate) struct Connected {
    pub(crate) client: tokio_postgres::Client,
    /// The number of its host.
    pub(crate) host: usize,
}

/// What the server says beside its answers.
#[derive(Clone, Default)]
pub(crate) struct Heard {
    notices: Arc<Mutex<Vec<DbError>>>,
    /// Is called for each notification, with its payload.
    on_notification: Option<Arc<OnNotification>>,
}

type OnNotification = dyn Fn(&str) + Send + Sync;

/// How many notices are kept; the rest of a flood is dropped.
const NOTICES_MAX: usize = 100;

impl Connector {
    pub(crate) fn new(endpoint: Endpoint, runtime: Handle) -> Result<Self, Error> {
        let tls = match endpoint.security {
            Security::Disable => None,
            Security::Prefer | Security::Require | Security::VerifyCa | Security::VerifyFull => {
                Some(Tls::new(&endpoint)?)
            }
        };
        Ok(Self { hosts: endpoint.hosts.into(), last: Arc::default(), tls, runtime })
    }

    /// Returns the same connector, whose sessions begin with these settings.
    pub(crate) fn with_session(&self, settings: &str) -> Self {
        let mut hosts = self.hosts.to_vec();
        for config in &mut hosts {
            let options = match config.get_options() {
                Some(options) => format!("{options} {settings}"),
                None => settings.to_owned(),
            };
            config.options(options);
        }
        Self { hosts: hosts.into(), ..self.clone() }
    }

    /// Connects, and drives the connection on the runtime until its client is dropped.
    pub(crate) fn connect(&self, heard: &Heard) -> Result<Connected, Failure> {
        let (this, heard) = (self.clone(), heard.clone());
        let connecting = self.runtime.spawn(async move { this.connect_any(heard).await });
        let timeout = self.hosts.iter().map(timeout).sum::<Duration>() + MARGIN;
        let abort = connecting.abort_handle();
        match block_on(Instant::now() + timeout, connecting) {
            Some(Ok(connected)) => connected,
            Some(Err(_)) | None => {
                abort.abort();
                Err(Failure::silent())
            }
        }
    }

    /// Returns whether a host still takes connections.
    pub(crate) fn is_answering(&self, number: usize) -> bool {
        let this = self.clone();
        let connecting = self.runtime.spawn(async move {
            let Some(config) = this.hosts.get(number) else { return true };
            let connected = this.connect_to(config, Heard::default()).await;
            // A server that refuses a connection, such as the one too many, is there.
            connected.err().and_then(|failure| failure.refuser()) != Some(Refuser::Nobody)
        });
        let timeout = self.hosts.get(number).map_or(MARGIN, timeout) + MARGIN;
        matches!(block_on(Instant::now() + timeout, connecting), Some(Ok(true)))
    }

    /// Connects to the first host that takes the connection.
    pub(crate) async fn connect_any(&self, heard: Heard) -> Result<Connected, Failure> {
        let first = self.last.load(Ordering::Relaxed);
        let count = self.hosts.len();
        let mut failures = Vec::new();
        for number in (first..first + count).map(|number| number % count) {
            let Some(config) = self.hosts.get(number) else { continue };
            match self.connect_to(config, heard.clone()).await {
                Ok(client) => {
                    self.last.store(number, Ordering::Relaxed);
                    return Ok(Connected { client, host: number });
                }
                Err(failure) => failures.push(failure),
            }
        }
        Err(Failure::of_hosts(failures))
    }

    async fn connect_to(
        &self,
        config: &Config,
        heard: Heard,
    ) -> Result<tokio_postgres::Client, Failure> {
        let connecting = async {
            match self.tls.clone() {
                None => self.connect_by(config, NoTls, heard).await,
                Some(tls) => self.connect_by(config, tls, heard).await,
            }
        };
        match tokio::time::timeout(timeout(config), connecting).await {
            Ok(connected) => connected.map_err(Failure::connecting),
            Err(_) => Err(Failure::silent()),
        }
    }

    async fn connect_by<T>(
        &self,
        config: &Config,
        tls: T,
        heard: Heard,
    ) -> Result<tokio_postgres::Client, tokio_postgres::Error>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let (client, connection) = config.connect(tls).await?;
        self.runtime.spawn(drive(connection, heard));
        Ok(client)
    }

    /// Asks the server to end what runs on a connection.
    pub(crate) fn cancel(&self, client: &tokio_postgres::Client) {
        let (token, tls) = (client.cancel_token(), self.tls.clone());
        let cancelling = self.runtime.spawn(async move {
            match tls {
                None => token.cancel_query(NoTls).await,
                Some(tls) => token.cancel_query(tls).await,
            }
        });
        let timeout = self.hosts.iter().map(timeout).max().unwrap_or(MARGIN);
        if block_on(Instant::now() + timeout, cancelling).is_none() {
            tracing::warn!("a statement could not be cancelled and may still be running");
        }
    }
}

fn timeout(config: &Config) -> Duration {
    config.get_connect_timeout().copied().unwrap_or(MARGIN)
}

impl Heard {
    /// Returns a listener to notifications.
    pub(crate) fn calling(on_notification: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { on_notification: Some(Arc::new(on_notification)), ..Self::default() }
    }

    fn add(&self, notice: DbError) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < NOTICES_MAX {
            notices.push(notice);
        }
    }

    /// Returns what was said since the last call.
    pub(crate) fn take(&self) -> Vec<DbError> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a warning that was said since the last call.
    pub(crate) fn take_warning(&self) -> Option<DbError> {
        let is_warning =
            |notice: &DbError| matches!(notice.parsed_severity(), Some(Severity::Warning));
        self.take().into_iter().find(is_warning)
    }
}

impl fmt::Debug for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heard").finish_non_exhaustive()
    }
}

/// Drives a connection until its client is dropped or it breaks.
async fn drive<S, T>(mut connection: Connection<S, T>, heard: Heard)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => heard.add(notice),
            Ok(AsyncMessage::Notification(notification)) => {
                if let Some(call) = &heard.on_notification {
                    call(notification.payload());
                }
            }
            Ok(_) => {}
            Err(error) => {
                // Whoever uses the connection gets an error of its own.
                tracing::debug!(%error, "a connection to the database has ended");
                return;
            }
        }
    }
}
