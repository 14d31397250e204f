//! `pointsman run`: start, reload on SIGHUP or a changed file, drain on SIGTERM, make room for a new process on SIGUSR2,
//! open the access log anew on SIGUSR1.

mod activation;
mod aside;
mod certificates;
mod control;
mod descriptors;
mod difference;
mod drain;
mod enquiries;
mod history;
mod legacy;
mod log_level;
mod log_watch;
mod memory;
mod names;
mod notice;
mod pages;
mod publishing;
mod reloads;
mod service;
mod shortage;
mod successor;
mod traces;
mod turns;

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use lexopt::Arg;
use pointsman_admin::Listening;
use pointsman_config::{Loaded, LogDestination, Plan, Problems};
use pointsman_net::{EarlySignals, EventLoop};
use pointsman_relay::{Capacity, Start, StartFault, Switch, Threads};
use pointsman_telemetry::{AccessLog, LogTarget, Metrics, Sinks, Traces, end_cut_line};
use pointsman_tls::TicketSecret;

use crate::WRONG_USE;
use crate::run::control::{Control, Upgrades};
use crate::run::legacy::{Keys, Legacy, Predecessor};
use crate::run::log_level::LogLevels;
use crate::run::names::{Names, Unjoined};
use crate::run::service::Service;
use crate::run::successor::Program;
use crate::usage::wrong_options;

const HELP: &str = "\
pointsman run [--config FILE]

    --config FILE    or `-c FILE`: the configuration; pointsman.toml where none is named

SIGHUP or a changed file: reload. SIGUSR1: open the access log anew. SIGTERM, SIGINT: drain and
end. SIGUSR2: start the binary anew, which takes over what this process listens on, then drain and end.
exit status: 0 drained, 1 cannot start or drained with connections left, 2 wrong use or bad configuration
";

/// Runs the switch until it is told to end.
pub(crate) fn run(arguments: Vec<OsString>) -> ExitCode {
    let config = match config_path(arguments) {
        Ok(Some(config)) => config,
        Ok(None) => return crate::say(&mut std::io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    // Before rules are compiled, which takes seconds where there are many.
    let signals = EarlySignals::listen();
    let load = || Plan::load(&config, None);
    let loaded = if Predecessor::is_there() { aside::giving_way(load) } else { load() };
    let status = match loaded {
        Ok(loaded) => match start(config, loaded, signals) {
            Ok(control) => return control.run(),
            Err(NoStart::Refused(message)) => {
                notice::error(&format!("error: {message}"));
                ExitCode::FAILURE
            }
            Err(NoStart::Wrong(problems)) => {
                notice::error(&problems.render(notice::colour()));
                ExitCode::from(WRONG_USE)
            }
        },
        Err(problems) => {
            notice::error(&problems.render(notice::colour()));
            if problems.is_unreadable() {
                notice::error("help: name one with `--config FILE`");
            }
            ExitCode::from(WRONG_USE)
        }
    };
    // Signals still end the process by themselves, so that this may wait for a slow reader.
    notice::flush(Duration::MAX, || false);
    status
}

fn config_path(arguments: Vec<OsString>) -> Result<Option<PathBuf>, lexopt::Error> {
    let mut config = PathBuf::from("pointsman.toml");
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("config") | Arg::Short('c') => config = parser.value()?.into(),
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Value(file) => {
                let file = file.to_string_lossy();
                return Err(format!("unexpected argument `{file}`; write `run --config {file}`").into());
            }
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(config))
}

/// Why there is no switch.
enum NoStart {
    /// The system refuses something.
    Refused(String),
    /// The configuration names what there is not.
    Wrong(Problems),
}

impl From<String> for NoStart {
    fn from(message: String) -> NoStart {
        NoStart::Refused(message)
    }
}

fn start(config: PathBuf, loaded: Loaded, signals: io::Result<EarlySignals>) -> Result<Control, NoStart> {
    let signals = signals.map_err(no_signals)?;
    let levels = LogLevels::new(loaded.plan.log_level);
    notice::warnings(&loaded);
    let plan = &loaded.plan;
    let program = Program::of_this_process().map_err(|error| format!("no path of this program: {error}"))?;
    let predecessor = Predecessor::of_this_process().map_err(|error| not_handed_over(&error))?;
    let threads = threads(plan);
    let descriptors_max = descriptors::raise_limit();
    // First of all: what is open now is open in the tables of all threads.
    let waiting = Threads::start(threads, plan.own_descriptor_tables)
        .map_err(|error| format!("no thread or event loop: {error}"))?;
    notice::maybe(descriptors::shared(&waiting));
    let names = Names::beside(plan.traces.as_ref().and_then(traces::lookup));
    let plan = names.join(&loaded).map_err(|unjoined| match unjoined {
        Unjoined::Unknown(problems) => NoStart::Wrong(problems),
        Unjoined::NoThread(message) => NoStart::Refused(message),
    })?;
    let Loaded { source, files, rule_sets, .. } = loaded;
    // Behind that, so that the sockets are open in the table of this thread alone.
    let (keys, legacy) = handed_over(predecessor.as_ref(), descriptors_max)?;
    take_over_tickets(&plan, &legacy.tickets);
    let now = SystemTime::now();
    let metrics = Metrics::new(threads, env!("CARGO_PKG_VERSION"), now);
    let log =
        plan.access_log.as_ref().map(|log| open_log(log, predecessor.as_ref(), &metrics)).transpose()?;
    let traces = plan.traces.as_ref().map(|traces| open_traces(traces, &names, &metrics)).transpose()?;
    let sinks = Sinks { log, traces };
    let event_loop = EventLoop::new().map_err(|error| format!("no event loop: {error}"))?;
    let admin = plan.admin.as_ref().map(|admin| listen_for_admin(admin.bind, legacy.admin)).transpose()?;
    let capacity = capacity(&plan, threads, descriptors_max);
    let client_id_key = random_key()?;
    let fixed = reloads::Fixed::of(&plan);
    let switch = Switch::start(
        plan,
        Start {
            threads: waiting,
            metrics: metrics.clone(),
            sinks: sinks.clone(),
            sticky_key: keys.sticky,
            client_id_key,
            descriptors_max,
            capacity,
            inherited: legacy.sockets,
            by_hand: legacy.by_hand,
            sticky_clients: legacy.sticky_clients,
            notes: levels.notes.clone(),
        },
    )
    .map_err(|fault| not_started(&fault))?;
    notice::listening(&switch);
    let service = Service::of_this_process(predecessor.is_some());
    let upgrades = Upgrades { program, keys, predecessor };
    // Last of all: until then they end the process by themselves.
    let signals = signals.and_ends().map_err(no_signals)?;
    Ok(Control {
        event_loop,
        signals,
        switch,
        metrics,
        sinks,
        config,
        files,
        source,
        rule_sets,
        names,
        levels,
        admin,
        fixed,
        descriptors_max,
        upgrades,
        service,
    })
}

/// How many threads a plan asks for.
fn threads(plan: &Plan) -> usize {
    plan.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// What so many threads may take, said where a plan promises more.
fn capacity(plan: &Plan, threads: usize, descriptors_max: Option<u64>) -> Capacity {
    let capacity = unsaid_capacity(plan, threads, descriptors_max);
    notice::maybe(descriptors::warning(descriptors_max, plan, threads));
    notice::maybe(memory::warning(capacity.buffer_bytes_max, plan));
    capacity
}

/// The same, where nothing has changed that it hangs on.
fn unsaid_capacity(plan: &Plan, threads: usize, descriptors_max: Option<u64>) -> Capacity {
    let connections_max = descriptors::connections_for(descriptors_max, plan, threads);
    Capacity { threads, connections_max, buffer_bytes_max: memory::for_clients(threads) }
}

/// What the process before this one hands over, if there is one; otherwise what the system gives.
fn handed_over(
    predecessor: Option<&Predecessor>,
    descriptors_max: Option<u64>,
) -> Result<(Keys, Legacy), String> {
    let Some(predecessor) = predecessor else {
        let sockets = activation::sockets(descriptors_max)?;
        let keys = Keys::random().map_err(|error| format!("no random key: {error}"))?;
        return Ok((keys, Legacy { sockets, ..Legacy::default() }));
    };
    let keys = predecessor.keys().map_err(|error| not_handed_over(&error))?;
    let legacy = predecessor.legacy().map_err(|error| not_handed_over(&error))?;
    Ok((keys, legacy))
}

/// Lets clients resume the sessions that they have with the process before this one.
fn take_over_tickets(plan: &Plan, tickets: &[(String, Vec<TicketSecret>)]) {
    for (listener, secrets) in tickets {
        let tls = plan.listener_named(listener).and_then(|listener| listener.tls.as_ref());
        tls.into_iter().for_each(|tls| tls.take_over_tickets(secrets));
    }
}

fn no_signals(error: io::Error) -> String {
    format!("cannot hear signals: {error}")
}

fn not_handed_over(error: &std::io::Error) -> String {
    format!("the process before this one hands nothing over: {error}")
}

/// What the admin listener listens on: what was given for it, where it is to listen there.
fn listen_for_admin(asked: SocketAddr, given: Option<(String, OwnedFd)>) -> Result<Listening, String> {
    let given = given.filter(|(before, _)| *before == asked.to_string());
    match given.and_then(|(_, socket)| Listening::given(asked, socket)) {
        Some(listening) => Ok(listening),
        None => Listening::on(asked).map_err(|error| {
            format!("the admin listener cannot listen on {asked}: {error}{}", advice(&error))
        }),
    }
}

fn not_started(fault: &StartFault) -> String {
    let advice = if let StartFault::Bind(fault) = fault { advice(&fault.error) } else { "" };
    format!("{fault}{advice}")
}

/// A line about what can be done where nobody can listen for this reason.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "\nhelp: somebody listens there already; `ss -ltnp` shows who",
        io::ErrorKind::AddrNotAvailable => "\nhelp: no interface of this machine has that address",
        io::ErrorKind::PermissionDenied => {
            "\nhelp: ports below 1024 want CAP_NET_BIND_SERVICE, and the file of a Unix socket a folder that can be written to"
        }
        _ => "",
    }
}

fn open_log(
    log: &pointsman_config::AccessLog,
    predecessor: Option<&Predecessor>,
    metrics: &Metrics,
) -> Result<AccessLog, String> {
    let (target, name) = match &log.destination {
        LogDestination::StandardOutput => (LogTarget::Stdout, "standard output".to_owned()),
        LogDestination::File(path) => (LogTarget::File(path.clone()), path.display().to_string()),
    };
    if let (LogTarget::File(path), None) = (&target, predecessor) {
        // A file that cannot be read can be written all the same.
        let (Ok(()) | Err(_)) = end_cut_line(path);
    }
    AccessLog::open(target, log.style, metrics)
        .map_err(|error| format!("cannot write the access log to `{name}`: {error}"))
}

fn open_traces(
    traces: &pointsman_config::Traces,
    names: &Names,
    metrics: &Metrics,
) -> Result<Traces, String> {
    let seed = u64::from_ne_bytes(random_key()?);
    let name = traces::lookup(traces).map(|lookup| names.reader(lookup));
    traces::open(traces, name, metrics, seed).map_err(|error| format!("no thread for traces: {error}"))
}

/// A key that no two processes have.
fn random_key<const BYTES: usize>() -> Result<[u8; BYTES], String> {
    let mut key = [0; BYTES];
    getrandom::fill(&mut key).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_named_by_its_option() {
        let read = |words: &[&str]| config_path(words.iter().map(OsString::from).collect());
        assert_eq!(read(&[]).expect("good"), Some(PathBuf::from("pointsman.toml")));
        assert_eq!(read(&["--config", "x.toml"]).expect("good"), Some(PathBuf::from("x.toml")));
        let error = read(&["x.toml"]).expect_err("it is wrong").to_string();
        assert_eq!(error, "unexpected argument `x.toml`; write `run --config x.toml`");
    }
}
