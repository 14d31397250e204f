//! A descriptor table of a thread's own. In a process of its own: the table begins with a copy of all that is open,
//! and would keep open what other tests close.

use std::fs::File;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, mpsc};

use pointsman_net::{own_descriptor_table, socket_channel};

/// What one thread opens the other does not see, and a socket reaches it as a message.
#[test]
fn a_table_of_its_own() {
    let (sender, receiver) = socket_channel().expect("descriptors");
    let (receiver, (tell, hear), (go, may_go)) = (Arc::new(receiver), mpsc::channel(), mpsc::channel());
    let theirs = receiver.clone();
    let thread = std::thread::spawn(move || {
        let own = own_descriptor_table().and_then(|()| theirs.try_clone());
        drop(theirs);
        let own = match own {
            Ok(own) => own,
            Err(error) => return tell.send(Err(error)).expect("the test waits"),
        };
        let opened = File::open("/proc/self/comm").expect("procfs");
        tell.send(Ok(opened.as_raw_fd())).expect("the test waits");
        may_go.recv().expect("the test goes on");
        let socket = TcpListener::from(own.next().expect("it was sent").socket.expect("descriptors"));
        drop(TcpStream::connect(socket.local_addr().expect("bound")).expect("it listens"));
        socket.accept().expect("the one above");
    });
    let number = match hear.recv().expect("the thread tells") {
        Ok(number) => number,
        // A filter of system calls: there is nothing to see.
        Err(error) => return assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}"),
    };
    drop(receiver);
    let ours = std::fs::read_link(format!("/proc/{}/fd/{number}", std::process::id())).unwrap_or_default();
    assert!(!ours.ends_with("comm"), "{number} is {}", ours.display());
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    sender.send(0, &listener).expect("room");
    drop(listener);
    go.send(()).expect("the thread waits");
    thread.join().expect("it ended well");
    assert!(TcpStream::connect(address).is_err(), "the thread had the last one");
}
