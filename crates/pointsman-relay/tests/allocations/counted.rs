//! Counting what the whole process takes from the heap, where, and whose doing it is.

use std::fmt::Write;

use serde_json::Value;

/// So many places are shown; the others are seldom of another kind.
const PLACES_MAX: usize = 12;
/// So many frames of each.
const FRAMES_MAX: usize = 14;

/// The crates that are rustls', as the names of functions begin.
const RUSTLS: [&str; 5] = ["rustls", "tokio_rustls", "aws_lc_rs", "aws_lc_sys", "webpki"];

/// What was taken from the heap. A block that grows counts again.
pub(crate) struct Count {
    /// By code of ours, or by whatever else is not rustls'.
    pub(crate) ours: Taken,
    /// By rustls, whoever called it.
    pub(crate) rustls: Taken,
}

/// Some of it.
pub(crate) struct Taken {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
    /// The places in the code, those that took most often first.
    pub(crate) places: String,
}

impl Count {
    pub(crate) fn of(work: impl FnOnce()) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("heap.json");
        let profiler = dhat::Profiler::builder().file_name(&file).trim_backtraces(Some(60)).build();
        work();
        drop(profiler);
        let text = std::fs::read_to_string(file).expect("what the profiler wrote");
        let (rustls, ours): (Vec<_>, Vec<_>) = Place::all(&text).into_iter().partition(Place::is_of_rustls);
        Self { ours: Taken::at(ours), rustls: Taken::at(rustls) }
    }
}

impl Taken {
    fn at(mut places: Vec<Place>) -> Self {
        places.sort_by_key(|place| std::cmp::Reverse(place.blocks));
        Self {
            blocks: places.iter().map(|place| place.blocks).sum(),
            bytes: places.iter().map(|place| place.bytes).sum(),
            places: places.iter().take(PLACES_MAX).map(Place::shown).collect(),
        }
    }
}

/// A place in the code and what it took.
struct Place {
    blocks: u64,
    bytes: u64,
    /// From the allocator outwards.
    frames: Vec<String>,
}

impl Place {
    /// The format is DHAT's: `pps` are places with their counts, `ftbl` the frames they name by number.
    fn all(profile: &str) -> Vec<Self> {
        let profile: Value = serde_json::from_str(profile).expect("JSON");
        let number = |value: &Value| value.as_u64().expect("a number");
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let names = list(&profile["ftbl"]);
        let frame = |index: &Value| names[number(index) as usize].as_str().expect("a frame").to_owned();
        let place = |point: &Value| Self {
            blocks: number(&point["tbk"]),
            bytes: number(&point["tb"]),
            frames: list(&point["fs"]).iter().map(frame).collect(),
        };
        list(&profile["pps"]).iter().map(place).collect()
    }

    /// Whether rustls took it: of its code and ours, its is nearer to the allocator. What both only call, the
    /// standard library above all, says nothing. Where neither is to be seen it is ours.
    fn is_of_rustls(&self) -> bool {
        self.frames.iter().find_map(|frame| owner(frame)).is_some_and(|owner| owner == Owner::Rustls)
    }

    fn shown(&self) -> String {
        let mut text = format!("  {} blocks, {} bytes at\n", self.blocks, self.bytes);
        for frame in self.frames.iter().filter(|frame| is_telling(frame)).take(FRAMES_MAX) {
            // An address comes first, which says nothing.
            let name = frame.split_once(": ").map_or(frame.as_str(), |(_, name)| name);
            writeln!(text, "    {name}").expect("a string takes all");
        }
        text
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Ours,
    Rustls,
}

/// Whose code a frame such as `0x55: <rustls::conn::Reader as std::io::Read>::read (src/conn.rs:7:9)` is; nothing
/// for that of others. What was inlined has lost its crate (`0x55: advance (pointsman-net/src/wheel.rs:7:9)`).
fn owner(frame: &str) -> Option<Owner> {
    let name = frame.split_once(": ").map_or(frame, |(_, name)| name);
    let (name, place) = name.rsplit_once(" (").unwrap_or((name, ""));
    let name = name.trim_start_matches(['<', '&', '*', '[', '(']);
    let name = name.strip_prefix("mut ").unwrap_or(name);
    let by_name = name.split_once("::").map(|(root, _)| root).unwrap_or_default();
    // `tokio-rustls-0.26.6/src/server.rs`
    let folder = place.split('/').next().unwrap_or_default();
    let version =
        |(at, _): &(usize, &str)| folder[at + 1..].starts_with(|digit: char| digit.is_ascii_digit());
    let end = folder.match_indices('-').find(version).map_or(folder.len(), |(at, _)| at);
    let by_place = folder[..end].replace('-', "_");
    [by_name, &by_place].into_iter().find_map(|name| match name {
        name if RUSTLS.contains(&name) => Some(Owner::Rustls),
        name if name.starts_with("pointsman_") || name == env!("CARGO_CRATE_NAME") => Some(Owner::Ours),
        _ => None,
    })
}

/// The frames of the allocator itself are the same everywhere.
fn is_telling(frame: &str) -> bool {
    !["alloc::alloc::", "alloc::raw_vec::", "(alloc/src/", "(dhat-", "core::ops::function", "__rust"]
        .iter()
        .any(|dull| frame.contains(dull))
}

/// Who took what is read from names alone, so these must not change unseen.
pub(crate) fn names_are_read() {
    for (frames, is_of_rustls) in [
        (
            &["0x1: alloc::vec::Vec<T>::push (src/vec/mod.rs:1:1)", "0x2: rustls::vecbuf::Buf::append (a)"][..],
            true,
        ),
        (
            &[
                "0x1: <rustls::conn::Reader as std::io::Read>::read (a)",
                "0x2: pointsman_tls::stream::poll (a)",
            ],
            true,
        ),
        (&["0x1: <&mut tokio_rustls::Stream as Read>::read (a)"], true),
        (&["0x1: core::ptr::drop<rustls::Conn> (a)", "0x2: pointsman_net::wheel::Wheel::file (a)"], false),
        (&["0x1: pointsman_tls::stream::poll (a)", "0x2: rustls::conn::with (a)"], false),
        (&["0x1: append (rustls-0.23.46/src/vecbuf.rs:1:1)", "0x2: pointsman_tls::stream::poll (a)"], true),
        (
            &[
                "0x1: fill (tokio-rustls-0.26.6/src/lib.rs:1:1)",
                "0x2: poll (pointsman-tls/src/stream.rs:1:1)",
            ],
            true,
        ),
        (&["0x1: advance (pointsman-net/src/wheel.rs:1:1)", "0x2: rustls::conn::with (a)"], false),
        (&["0x1: slab::Slab<T>::insert (a)", "0x2: std::rt::begin (a)"], false),
        (&[], false),
    ] {
        let frames = frames.iter().map(|frame| (*frame).to_owned()).collect();
        let place = Place { blocks: 1, bytes: 1, frames };
        assert_eq!(place.is_of_rustls(), is_of_rustls, "{:?}", place.frames);
    }
}
