//! A proxy that breaks connections to the database, at chosen packets in either direction.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use quipu_postgres::{Listening, PostgresSettings};

use crate::cluster::cluster;

/// A proxy in front of the cluster.
pub(crate) struct Proxy {
    port: u16,
    plan: Arc<Mutex<Plan>>,
}

/// What will be broken.
#[derive(Default)]
struct Plan {
    cuts: VecDeque<Cut>,
    /// How many packets each side has sent since the last cut, over all connections.
    client_count: usize,
    server_count: usize,
    broken_count: usize,
    /// Connections of which the server does not learn that they are broken.
    silent: Vec<UnixStream>,
    /// Whether nothing is passed on, and nothing is closed.
    is_frozen: bool,
}

/// A connection breaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) from: Side,
    /// At which packet of that side, counted from the last cut.
    pub(crate) at: usize,
    pub(crate) packet: Packet,
    pub(crate) server: Server,
}

/// Who sends a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// What becomes of the packet at which the connection breaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Packet {
    Lost,
    Half,
    Delivered,
}

/// Whether the server learns that the connection is broken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Server {
    Told,
    Waiting,
}

impl Proxy {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let plan = Arc::new(Mutex::new(Plan::default()));
        let shared = Arc::clone(&plan);
        // It ends with the process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                client.set_nodelay(true).expect("it is a socket");
                if locked(&shared).is_frozen {
                    thread::spawn(move || hold(&client));
                    continue;
                }
                let server = UnixStream::connect(cluster().socket()).expect("the server listens");
                let back = server.try_clone().and_then(|it| Ok((it, client.try_clone()?)));
                let (from_server, to_client) = back.expect("descriptors are left");
                let (there, back) = (Arc::clone(&shared), Arc::clone(&shared));
                thread::spawn(move || forward((client, server), Side::Client, &there));
                thread::spawn(move || forward((from_server, to_client), Side::Server, &back));
            }
        });
        Self { port, plan }
    }

    /// Returns settings for a database behind the proxy.
    pub(crate) fn settings(&self, database: &str) -> PostgresSettings {
        let url = format!("postgres://postgres@127.0.0.1:{}/{database}", self.port);
        PostgresSettings { listening: Listening::Off, ..PostgresSettings::new(url) }
    }

    /// Lets every connection hang, as those to a server that was stopped: they are accepted, and nothing is
    /// answered.
    pub(crate) fn freeze(&self) {
        locked(&self.plan).is_frozen = true;
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Plans cuts, one after the other.
    pub(crate) fn arm(&self, cuts: &[Cut]) {
        let mut plan = locked(&self.plan);
        let silent = std::mem::take(&mut plan.silent);
        *plan = Plan { cuts: cuts.iter().copied().collect(), ..Plan::default() };
        drop(plan);
        drop(silent);
    }

    /// Returns how many of the planned cuts were made.
    pub(crate) fn broken_count(&self) -> usize {
        locked(&self.plan).broken_count
    }
}

fn locked(plan: &Mutex<Plan>) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Plan {
    /// Returns the cut to make at this packet.
    fn cut(&mut self, side: Side) -> Option<Cut> {
        let count = match side {
            Side::Client => &mut self.client_count,
            Side::Server => &mut self.server_count,
        };
        *count += 1;
        let count = *count;
        let cut = *self.cuts.front().filter(|cut| cut.from == side && cut.at == count)?;
        self.cuts.pop_front();
        (self.client_count, self.server_count) = (0, 0);
        self.broken_count += 1;
        Some(cut)
    }
}

/// One end of a connection.
trait End: Read + Write {
    fn close(&self);
    fn keep_open(&self, plan: &Mutex<Plan>);
}

impl End for TcpStream {
    fn close(&self) {
        self.shutdown(Shutdown::Both).unwrap_or_default();
    }

    /// A client always learns it.
    fn keep_open(&self, _: &Mutex<Plan>) {
        self.close();
    }
}

impl End for UnixStream {
    fn close(&self) {
        self.shutdown(Shutdown::Both).unwrap_or_default();
    }

    fn keep_open(&self, plan: &Mutex<Plan>) {
        let kept = self.try_clone().expect("descriptors are left");
        locked(plan).silent.push(kept);
    }
}

/// Keeps a connection open.
fn hold(_: &TcpStream) {
    loop {
        thread::park();
    }
}

fn forward((mut from, mut to): (impl End, impl End), side: Side, plan: &Mutex<Plan>) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if locked(plan).is_frozen {
            loop {
                thread::park();
            }
        }
        let cut = locked(plan).cut(side);
        let delivered_count = match cut.map(|cut| cut.packet) {
            Some(Packet::Lost) => 0,
            Some(Packet::Half) => count / 2,
            Some(Packet::Delivered) | None => count,
        };
        let packet = buffer.get(..delivered_count).unwrap_or_default();
        let is_sent = to.write_all(packet).is_ok();
        match cut {
            Some(cut) => {
                if cut.server == Server::Waiting {
                    from.keep_open(plan);
                    to.keep_open(plan);
                } else {
                    from.close();
                    to.close();
                }
                return;
            }
            None if is_sent => {}
            None => break,
        }
    }
    from.close();
    to.close();
}
