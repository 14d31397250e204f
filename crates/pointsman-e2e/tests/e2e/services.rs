//! What systemd is told, over a socket as it makes it.

use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

use pointsman_e2e::{Origin, PATIENCE, Setup, Switch, program, tool};

pointsman_e2e::for_threads!(
    from_start_to_end,
    an_upgrade,
    signs_of_life,
    nobody_listens,
    sockets_of_systemd,
    sockets_of_nobody
);

/// Who hears what a service says of itself.
struct Manager {
    socket: UnixDatagram,
    folder: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a writable folder");
        socket.set_read_timeout(Some(PATIENCE)).expect("open");
        Self { socket, folder }
    }

    fn start(&self, threads: usize, origin: &Origin, more: &str) -> Switch {
        let line = format!("export NOTIFY_SOCKET={}/notify {more}", self.folder.path().display());
        Setup::new(threads).after(&line).pool("standard", &[origin]).start()
    }

    fn hears(&self) -> String {
        let mut text = [0; 1024];
        let bytes = self.socket.recv(&mut text).expect("it says something");
        String::from_utf8_lossy(&text[..bytes]).into_owned()
    }

    /// The next one begins so.
    fn hears_of(&self, start: &str) -> String {
        let heard = self.hears();
        assert!(heard.starts_with(start), "{heard}");
        heard
    }
}

fn from_start_to_end(threads: usize) {
    let (manager, origin) = (Manager::new(), Origin::new("origin"));
    let mut switch = manager.start(threads, &origin, "");
    manager.hears_of(&format!("READY=1\nSTATUS=serving with {threads} threads\n"));
    switch.signal("HUP");
    let reloading = manager.hears_of("RELOADING=1\nMONOTONIC_USEC=");
    let since = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(since.expect("it is there").parse::<u64>().expect("a number") > 0);
    manager.hears_of("READY=1\nSTATUS=serving\n");
    std::fs::write(switch.folder().join("pointsman.toml"), "nonsense").expect("a writable folder");
    switch.signal("HUP");
    manager.hears_of("RELOADING=1\n");
    manager.hears_of("READY=1\nSTATUS=serving; the last reload was refused");
    switch.signal("TERM");
    manager.hears_of("STOPPING=1\n");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// The process to look after is the new one, by the word of the old one. That does not say that the service stops.
fn an_upgrade(threads: usize) {
    let (manager, origin) = (Manager::new(), Origin::new("origin"));
    let mut switch = manager.start(threads, &origin, "");
    manager.hears_of("READY=1\n");
    switch.upgrade();
    let heard = [manager.hears(), manager.hears()];
    assert!(heard.iter().any(|text| text.starts_with("READY=1\n")), "{heard:?}");
    let main = format!("MAINPID={}\n", switch.id());
    assert!(heard.iter().any(|text| text.starts_with(&main)), "{heard:?}");
    switch.wait_for_predecessors();
    switch.signal("TERM");
    manager.hears_of("STOPPING=1\n");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

fn signs_of_life(threads: usize) {
    let (manager, origin) = (Manager::new(), Origin::new("origin"));
    let mut switch = manager.start(threads, &origin, "WATCHDOG_USEC=60000 WATCHDOG_PID=$$");
    manager.hears_of("READY=1\n");
    (0..3).for_each(|_| drop(manager.hears_of("WATCHDOG=1\n")));
    switch.upgrade();
    switch.wait_for_predecessors();
    // Nothing of the old process comes behind this.
    while !manager.hears().starts_with("MAINPID=") {}
    (0..3).for_each(|_| while !manager.hears().starts_with("WATCHDOG=1\n") {});
    let other = Manager::new();
    let _switch = other.start(threads, &origin, "WATCHDOG_USEC=60000 WATCHDOG_PID=1");
    other.hears_of("READY=1\n");
    other.socket.set_nonblocking(true).expect("open");
    assert!(other.socket.recv(&mut [0; 64]).is_err(), "somebody else is to give them");
}

fn nobody_listens(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).after("export NOTIFY_SOCKET=/nowhere/at/all");
    let mut switch = setup.pool("standard", &[&origin]).start();
    assert_eq!(switch.get("/").status(), 200);
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// A socket that is open already belongs to the listener of its address, and to all threads; an upgrade passes it on.
fn sockets_of_systemd(threads: usize) {
    let origin = Origin::new("origin");
    let socket = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = socket.local_addr().expect("bound");
    let line = "exec 3<&0 </dev/null && export LISTEN_FDS=1 LISTEN_PID=$$";
    let setup = Setup::new(threads).listener(&format!("bind = \"{address}\"")).pool("standard", &[&origin]);
    let mut switch = setup.clone().after(line).standard_input(socket.into()).start();
    assert_eq!(switch.address("shop"), address);
    for _ in 0..20 {
        assert_eq!(switch.get("/").status(), 200);
    }
    switch.upgrade_to(&setup);
    switch.wait_for_predecessors();
    for _ in 0..20 {
        assert_eq!(switch.get("/").status(), 200);
    }
}

/// Numbers in the environment are no sockets: those of another process, or more than were handed over. What has them already is
/// the switch itself.
fn sockets_of_nobody(threads: usize) {
    const NO_PID: &str = "warning: LISTEN_FDS is of no use without LISTEN_PID, and no socket is taken";
    let origin = Origin::new("origin");
    for (line, said) in [
        ("unset LISTEN_PID; export LISTEN_FDS=30", vec![NO_PID.to_owned()]),
        ("export LISTEN_FDS=30 LISTEN_PID=", vec![NO_PID.to_owned()]),
        ("export LISTEN_FDS=30 LISTEN_PID=1", Vec::new()),
        ("export LISTEN_FDS=30 LISTEN_PID=$$", (0..30).map(of_no_use).collect()),
    ] {
        let mut switch = Setup::new(threads).after(line).pool("standard", &[&origin]).start();
        assert_eq!(switch.get("/").status(), 200);
        let lines = switch.errors().all();
        let lines: Vec<_> = lines.into_iter().filter(|line| line.contains("LISTEN_FDS")).collect();
        assert_eq!(lines, said, "{line}");
        switch.signal("TERM");
        assert_eq!(switch.wait_for_exit(), Some(0), "{line}");
    }
}

fn of_no_use(number: usize) -> String {
    format!("warning: the socket {number} of LISTEN_FDS is of no use: no stream listens there")
}

/// More sockets than a process can have are not looked for one by one.
#[test]
fn sockets_that_cannot_be() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    Setup::new(1).pool_at("standard", "", &[("s", Origin::dead_address())]).write(folder.path());
    let run = program().display();
    let line = format!("export LISTEN_FDS=99999999999 LISTEN_PID=$$; exec {run} run --config pointsman.toml");
    let Some(finished) = tool(folder.path(), "sh", &["-c", &line]) else { return };
    assert_eq!(finished.code, 1, "{}", finished.output());
    let said = finished.stderr.lines().filter(|line| line.contains("LISTEN_FDS")).collect::<Vec<_>>();
    assert!(matches!(said[..], [line] if line.starts_with("error: LISTEN_FDS=99999999999: ")), "{said:?}");
}
