//! A cluster in a temporary directory, for all tests of the process, and a database of it for each test.
//!
//! A shell watches over the server: when this process is gone, however it ended, the shell's input closes,
//! and it stops the server and removes the directory.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_postgres::PostgresSettings;

/// A running server.
pub(crate) struct Cluster {
    directory: PathBuf,
    port: u16,
    /// The process that other processes of the server belong to.
    server: u32,
    watcher: Child,
}

/// What is special about a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Certificate and key of a server that listens on a port, to encrypted connections only.
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
    /// Settings of the server, as `name=value`.
    pub(crate) settings: Vec<&'static str>,
    /// Lines of `pg_hba.conf` that come first.
    pub(crate) rules: &'static str,
    /// Where its directory is, if that matters.
    pub(crate) place: Option<PathBuf>,
    /// The socket directory of the server that this one replicates.
    pub(crate) replicates: Option<PathBuf>,
}

/// A database of its own on the cluster.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
}

/// The database that every test's is a copy of, with Quipu's schema.
const TEMPLATE: &str = "quipu_template";

static CLUSTER: OnceLock<Cluster> = OnceLock::new();
static DATABASES_COUNT: AtomicUsize = AtomicUsize::new(0);

impl Database {
    pub(crate) fn new() -> Self {
        let cluster = cluster();
        let number = DATABASES_COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        cluster.sql(
            "postgres",
            &format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY"),
        );
        Self { name }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn settings(&self) -> PostgresSettings {
        PostgresSettings { connections_max: 8, ..PostgresSettings::new(cluster().url(&self.name)) }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        cluster().sql("postgres", &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

pub(crate) fn cluster() -> &'static Cluster {
    CLUSTER.get_or_init(|| {
        let cluster = Cluster::start(&Options::default());
        cluster.sql("postgres", &format!("CREATE DATABASE {TEMPLATE}"));
        let migrated = quipu_postgres::migrate(&PostgresSettings::new(cluster.url(TEMPLATE)));
        migrated.expect("the schema is made");
        cluster
    })
}

impl Cluster {
    pub(crate) fn start(options: &Options) -> Self {
        let programs = programs().expect(
            "PostgreSQL is not installed (Debian: apt-get install postgresql); nothing was tested",
        );
        let directory = match &options.place {
            Some(place) => tempfile::tempdir_in(place).expect("a directory can be made").keep(),
            None => new_directory(),
        };
        let port = if options.certificate.is_some() { free_port() } else { PORT };
        let script = script(&directory, &programs, port, options);
        let mut watcher = Command::new("bash")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let mut output = BufReader::new(watcher.stdout.as_mut().expect("it is piped"));
        let mut ready = String::new();
        output.read_line(&mut ready).expect("the shell says when the server is ready");
        let server = ready.trim().strip_prefix("ready ").expect("the server starts");
        let server = server.parse().expect("the id of a process");
        Self { directory, port, server, watcher }
    }

    /// Starts a standby that replays what this server writes.
    pub(crate) fn standby(&self, options: &Options) -> Self {
        let replicates = Some(self.directory.clone());
        Self::start(&Options { replicates, ..options.clone() })
    }

    /// Makes the standby a server of its own.
    pub(crate) fn promote(&self) {
        self.sql("postgres", "SELECT pg_promote()");
    }

    /// Sends a signal to every process of the server.
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("bash")
            .args(["-c", &format!("kill -{signal} {0} $(pgrep -P {0})", self.server)])
            .status();
        assert!(sent.expect("a shell runs").success());
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.host())
    }

    /// Returns the host as it is written in a URL.
    pub(crate) fn host(&self) -> String {
        self.directory.display().to_string().replace('/', "%2F")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the socket that the server listens on.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Returns the files of tables that hold a text, of all databases.
    pub(crate) fn files_with(&self, text: &str) -> Vec<String> {
        self.sql("postgres", "CHECKPOINT");
        let output = Command::new("grep")
            .args(["--recursive", "--files-with-matches", "--text", "--fixed-strings", text])
            .arg(self.directory.join("data/base"))
            .output()
            .expect("grep runs");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// Runs a statement in a transaction that stays open until the answer is dropped.
    pub(crate) fn hold(&self, database: &str, sql: &str) -> Holder {
        let mut psql = self.psql(database).spawn().expect("psql starts");
        let input = psql.stdin.as_mut().expect("it is piped");
        writeln!(input, "BEGIN;\n{sql};\n\\echo held").expect("it reads");
        let mut output = BufReader::new(psql.stdout.take().expect("it is piped"));
        let mut line = String::new();
        while line.trim() != "held" {
            line.clear();
            assert!(output.read_line(&mut line).expect("it is text") > 0, "{sql} failed");
        }
        Holder(psql)
    }

    fn psql(&self, database: &str) -> Command {
        Self::psql_at(&self.directory, (self.port, database))
    }

    fn psql_at(directory: &Path, (port, database): (u16, &str)) -> Command {
        let programs = programs().expect("it is installed");
        let mut psql = Command::new(programs.join("psql"));
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-d",
            database,
            "-p",
            &port.to_string(),
            "-h",
        ])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
        psql
    }

    /// Runs a statement as an administrator and returns what `psql` prints.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        Self::sql_at(&self.directory, (self.port, database), sql)
    }

    /// The same at another socket, such as that of a pooler.
    pub(crate) fn sql_at(directory: &Path, place: (u16, &str), sql: &str) -> String {
        let mut psql = Self::psql_at(directory, place).spawn().expect("psql starts");
        let mut input = psql.stdin.take().expect("it is piped");
        input.write_all(sql.as_bytes()).expect("it reads");
        drop(input);
        let output = psql.wait_with_output().expect("psql ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// A transaction that stays open.
pub(crate) struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().map(drop).unwrap_or_default();
    }
}

/// Returns a new directory, in memory where that is possible: copying the template for each test takes ten times as
/// long on a disk.
fn new_directory() -> PathBuf {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    directory.expect("a directory can be made").keep()
}

/// Returns what the shell does that watches over a server.
fn script(directory: &Path, programs: &Path, port: u16, options: &Options) -> String {
    let root = is_root();
    // An administrator may not run the server, so somebody else owns the files.
    let as_owner =
        if root { "setpriv --reuid postgres --regid postgres --clear-groups" } else { "" };
    let own = if root { "chown postgres \"$dir\"" } else { "true" };
    let (copy, listen, mut rules) = match &options.certificate {
        Some((certificate, key)) => (
            format!(
                "install -m 600 '{}' $dir/server.pem; install -m 600 '{}' $dir/server.key; {}",
                certificate.display(),
                key.display(),
                if root { "chown postgres $dir/server.*" } else { "true" },
            ),
            "-c listen_addresses=127.0.0.1 -c ssl=on -c ssl_cert_file=$dir/server.pem \
             -c ssl_key_file=$dir/server.key"
                .to_owned(),
            "hostssl all all all trust\\nlocal all all trust\\n".to_owned(),
        ),
        None => (
            "true".to_owned(),
            "-c listen_addresses=".to_owned(),
            "local all guarded scram-sha-256\\nlocal all all trust\\nlocal replication all trust\\n"
                .to_owned(),
        ),
    };
    rules.insert_str(0, options.rules);
    // No test looks at what a loss of power leaves, and many tests share the disk.
    let durability = "-c fsync=off -c full_page_writes=off";
    let settings: Vec<_> =
        options.settings.iter().map(|setting| format!(" -c '{setting}'")).collect();
    let settings = settings.concat();
    let create = match &options.replicates {
        None => {
            "\"$bin/initdb\" -D \"$dir/data\" -U postgres -A trust --no-sync -E UTF8".to_owned()
        }
        Some(primary) => format!(
            "\"$bin/pg_basebackup\" -D \"$dir/data\" -X stream -c fast -R --no-sync \
             -d 'host={} port={port} user=postgres application_name=standby'",
            primary.display()
        ),
    };
    format!(
        "set -e
         dir='{dir}'; bin='{bin}'
         {own}; chmod 755 \"$dir\"; cd \"$dir\"
         {as_owner} {create} >\"$dir/create.log\" 2>&1
         {copy}
         printf '{rules}' > \"$dir/data/pg_hba.conf\"
         {as_owner} \"$bin/postgres\" -D \"$dir/data\" -k \"$dir\" {listen} -c port={port} \
            -c max_connections=400 -c shared_buffers=64MB {durability} -c wal_level=replica \
            -c log_min_messages=warning {settings} >\"$dir/server.log\" 2>&1 </dev/null &
         server=$!
         while ! \"$bin/pg_isready\" -q -h \"$dir\" -p {port}; do kill -0 $server; sleep 0.02; done
         echo ready $server
         exec 2>/dev/null
         read _ || true
         kill -CONT $server $(pgrep -P $server) 2>/dev/null || true
         kill -INT $server 2>/dev/null || true; wait $server || true
         cd /; rm -rf \"$dir\"",
        dir = directory.display(),
        bin = programs.display(),
    )
}

/// It ends before the next one starts.
impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        self.watcher.wait().map(drop).unwrap_or_default();
    }
}

/// Returns the directory of the newest installed server's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<_> = versions
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version: u32 = path.file_name()?.to_str()?.parse().ok()?;
            path.join("bin/postgres").exists().then(|| (version, path.join("bin")))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

/// The port in the name of the socket of a server that listens on no port.
const PORT: u16 = 5432;

/// Returns a port that nobody uses now.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

/// Returns a command that runs as whoever the server runs as.
pub(crate) fn as_owner(program: &str) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups", program]);
    command
}

/// Gives a directory to whoever the server runs as.
pub(crate) fn owned_by_server(directory: &Path) {
    if is_root() {
        let given = Command::new("chown").args(["-R", "postgres"]).arg(directory).status();
        assert!(given.expect("chown runs").success());
    }
}

pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(Path::new("/proc/self")).is_ok_and(|this| this.uid() == 0)
}
