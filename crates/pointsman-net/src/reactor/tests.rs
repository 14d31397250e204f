//! When a turn ends, and what is heard of the other end whenever it comes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use super::*;

#[test]
fn what_a_forked_process_still_has_is_not_heard_of_in_place_of_another_socket() {
    let reactor = Rc::new(Reactor::new().expect("an event loop"));
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let [(gone, its_peer), (here, _peer)] = [(); 2].map(|()| UnixStream::pair().expect("sockets"));
    let source = reactor.register(&gone, Writing::HasRoom).expect("registered");
    let (number, forked) = (source.number, gone.try_clone().expect("a descriptor"));
    drop((source, gone));
    let source = reactor.register(&here, Writing::HasRoom).expect("registered");
    assert_eq!(source.number, number, "it takes its place");
    drop(its_peer);
    reactor.wait(&now).expect("heard");
    assert!(!source.readiness.hung_up.get() && !source.is_readable());
    drop((forked, here));
}

/// Whatever one operation moves: nothing, some bytes, or a whole pipe.
#[test]
fn a_turn_ends_with_its_operations_or_its_bytes() {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let context = Context::from_waker(&waker);
    let reactor = Rc::new(Reactor::new().expect("an event loop"));
    let (here, _peer) = UnixStream::pair().expect("sockets");
    let source = reactor.register(&here, Writing::HasRoom).expect("registered");
    for (bytes, expected) in [(0, OPERATIONS_A_TURN), (1000, OPERATIONS_A_TURN), (1 << 16, 32), (1 << 20, 2)]
    {
        for _ in 0..2 {
            reactor.begin_turn();
            let mut operations = 0;
            while source.poll_write(&here, &context, 0, || Ok(bytes)).is_ready() {
                operations += 1;
            }
            assert_eq!(operations, expected, "{bytes}");
            assert!(woken.0.swap(false, Ordering::Relaxed), "it goes on in the next round");
        }
    }
}

/// What happens at either end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The peer sends more than is read at a time, and less than the kernel takes for whom nothing reads.
    Sends,
    Ends,
    Register,
    /// The kernel is asked, and nobody waits.
    Hear,
    Read,
    Look,
}

/// All orders of both, each of which keeps its own.
fn interleaved(theirs: &[Step], ours: &[Step]) -> Vec<Vec<Step>> {
    let begun_with = |first: Step, theirs: &[Step], ours: &[Step]| {
        interleaved(theirs, ours).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    match (theirs, ours) {
        ([], rest) | (rest, []) => vec![rest.to_vec()],
        ([their, after @ ..], [our, behind @ ..]) => {
            let all = begun_with(*their, after, ours).chain(begun_with(*our, theirs, behind));
            all.collect()
        }
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Goes that way, and then waits for the end.
fn walk(way: &[Step]) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let mut peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (mut socket, _) = listener.accept().expect("connected");
    socket.set_nonblocking(true).expect("a socket");
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let context = Context::from_waker(&waker);
    let reactor = Rc::new(Reactor::new().expect("an event loop"));
    let mut registered = None;
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    for step in way {
        let source = || registered.as_ref().expect("registered first");
        match step {
            Step::Sends => peer.write_all(&[b'x'; 30_000]).expect("open"),
            Step::Ends => peer.shutdown(Shutdown::Write).expect("open"),
            Step::Register => {
                registered = Some(reactor.register(&socket, Writing::HasRoom).expect("registered"));
            }
            Step::Hear => reactor.wait(&at_once).expect("heard"),
            Step::Read => {
                let mut room = [0; 16 * 1024];
                let length = room.len();
                let read = || {
                    let read = socket.read(&mut room);
                    read.map_err(|error| rustix::io::Errno::from_io_error(&error).expect("of the kernel"))
                };
                reactor.begin_turn();
                // Whatever comes of it, also nothing.
                let (Poll::Ready(_) | Poll::Pending) = source().poll_read(&context, length, read);
            }
            Step::Look => assert_ne!(source().presence(&context), Presence::Broken),
        }
    }
    let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
    let source = registered.expect("on each way");
    while source.presence(&context) == Presence::Open {
        woken.0.store(false, Ordering::Relaxed);
        reactor.wait(&patience).expect("heard");
        assert!(woken.0.load(Ordering::Relaxed), "who waits is not told: {way:?}");
    }
    assert_eq!(source.presence(&context), Presence::Ended, "{way:?}");
    assert!(source.is_readable(), "{way:?}");
}

/// Whatever was read of what stands before it, and whatever was heard, or waited for, when it came.
#[test]
fn an_end_is_heard_whenever_it_comes() {
    use Step::{Ends, Hear, Look, Read, Register, Sends};
    for theirs in [&[Ends][..], &[Sends, Ends], &[Sends, Sends, Ends]] {
        for ours in [&[Register, Hear, Read, Look][..], &[Register, Look, Hear, Read, Hear, Read, Look]] {
            interleaved(theirs, ours).iter().for_each(|way| walk(way));
        }
    }
}
