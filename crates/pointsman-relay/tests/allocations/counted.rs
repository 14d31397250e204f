//! Counting what the whole process takes from the heap, and where.

use std::fmt::Write;

use serde_json::Value;

/// So many places are shown; the others are seldom of another kind.
const PLACES_MAX: usize = 12;
/// So many frames of each.
const FRAMES_MAX: usize = 14;

/// The wheel of deadlines turns forty times a second, whether requests come or not, and a bucket of it takes
/// memory when it is used for the first time. That is the clock's doing and no request's.
const WHEEL: &str = "pointsman-net/src/wheel.rs";

/// What was taken from the heap. A block that grows counts again.
pub(crate) struct Count {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
    /// What the wheel of deadlines took, which the other two leave out.
    pub(crate) wheel_blocks: u64,
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
        let (wheel, mut places): (Vec<_>, Vec<_>) =
            Place::all(&text).into_iter().partition(|place| place.passes(WHEEL));
        places.sort_by_key(|place| std::cmp::Reverse(place.blocks));
        Self {
            blocks: places.iter().map(|place| place.blocks).sum(),
            bytes: places.iter().map(|place| place.bytes).sum(),
            wheel_blocks: wheel.iter().map(|place| place.blocks).sum(),
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

    fn passes(&self, file: &str) -> bool {
        self.frames.iter().any(|frame| frame.contains(file))
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

/// The frames of the allocator itself are the same everywhere.
fn is_telling(frame: &str) -> bool {
    !["alloc::alloc::", "alloc::raw_vec::", "(alloc/src/", "(dhat-", "core::ops::function", "__rust"]
        .iter()
        .any(|dull| frame.contains(dull))
}
