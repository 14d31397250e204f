//! Paths as tests write them: `.` is the top-level value, `.a["b c"][0][*]` goes down from it.

use pointsman_content::{JsonPath, JsonStep};

pub(crate) fn path(text: &str) -> JsonPath {
    let mut rest = if text == "." { "" } else { text };
    let mut path = JsonPath::default();
    while !rest.is_empty() {
        let step;
        (step, rest) = if let Some(behind) = rest.strip_prefix('.') {
            let end = behind.find(['.', '[']).unwrap_or(behind.len());
            (JsonStep::Member(behind[..end].into()), &behind[end..])
        } else if let Some(behind) = rest.strip_prefix("[\"") {
            let (name, behind) = behind.split_once("\"]").expect("`[\"name\"]`");
            (JsonStep::Member(name.into()), behind)
        } else {
            let (index, behind) =
                rest.strip_prefix('[').and_then(|behind| behind.split_once(']')).expect("`[0]` or `[*]`");
            let step = if index == "*" {
                JsonStep::Every
            } else {
                JsonStep::Index(index.parse().expect("an index"))
            };
            (step, behind)
        };
        path.steps.push(step);
    }
    path
}
