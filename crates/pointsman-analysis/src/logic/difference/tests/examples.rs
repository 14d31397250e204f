//! What is said of two rule sets, side by side.

use pointsman_rules::{Program, RuleIndex, Validate};

use super::{RuleSide, program, side};
use crate::logic::difference::{Decider, Differences, Holds, Undecided, differences};
use crate::{Effort, OddFields, Setting};

const EFFORT: u64 = 50_000_000;

pub(super) fn label(program: &Program, decider: Decider) -> String {
    let label = program.rule(decider.rule).map_or("-", |rule| &*rule.label);
    let holds = match decider.holds {
        Holds::True => "",
        Holds::False => " else",
        Holds::Unknown => " unknown",
    };
    format!("{label}{holds}")
}

fn groups(old: &str, new: &str) -> Vec<String> {
    let [old, new] = [old, new].map(program);
    let found = differences(side(&old), side(&new), &Setting::default(), Effort::new(EFFORT));
    assert_eq!(found.undecided_count, 0, "{found:?}");
    let shown = found
        .groups
        .iter()
        .map(|group| format!("{} -> {}", label(&old, group.old), label(&new, group.new)))
        .collect();
    assert_eq!(found.decide_alike(), found.groups.is_empty());
    shown
}

/// Two rule sets and the groups that differ.
const GROUPS: &[(&str, &str, &[&str])] = &[
    // Spelled otherwise, labelled otherwise, in another order where that is all the same.
    (
        "R1: if (path under \"/a\" && method == \"GET\") { routeTo(a); }\nelse: routeTo(b);\n",
        "X: if ((method == \"GET\") && match(path, \"^/a(/|$)\")) { routeTo(a); }\nelse: routeTo(b);\n",
        &[],
    ),
    (
        "A: if (host == \"a\") { routeTo(a); }\nB: if (host == \"b\") { routeTo(b); }\n",
        "B: if (host == \"b\") { routeTo(b); }\nA: if (host == \"a\") { routeTo(a); }\n",
        &[],
    ),
    ("A: if (dstport > 79 && dstport < 81) { discard(); }\n", "A: if (dstport == 80) { discard(); }\n", &[]),
    // A network of IPv6 that ends with an IPv4-mapped address.
    (
        "R: if (srcip in [::/80]) { routeTo(a); }\nelse: routeTo(f);\n",
        "N: if (srcip == ::7) { routeTo(b); }\nR: if (srcip in [::/80]) { routeTo(a); }\nelse: routeTo(f);\n",
        &["R -> N"],
    ),
    // A boundary that moves, and a rule that goes.
    (
        "A: if (content_length > 5) { routeTo(a); }\nelse: routeTo(b);\n",
        "A: if (content_length > 7) { routeTo(a); }\nelse: routeTo(b);\n",
        &["A -> else"],
    ),
    (
        "A: if (path == \"/a\") { routeTo(a); }\nB: if (path under \"/a\") { routeTo(b); }\nelse: routeTo(c);\n",
        "B: if (path under \"/a\") { routeTo(b); }\nelse: routeTo(c);\n",
        &["A -> B"],
    ),
    // What is unknown, what is done on the way, and whether a client stays.
    (
        "A: if (json.a > 5) { routeTo(a); }\n",
        "on_unknown skip;\nA: if (json.a > 5) { routeTo(a); }\n",
        &["A unknown -> -"],
    ),
    (
        "T: if (method == \"GET\") { tag(get); }\nA: if (path == \"/\") { routeTo(a); }\nelse: reject(404);\n",
        "T: if (method == \"GET\") { tag(read); }\nA: if (path == \"/\") { routeTo(a); }\nelse: reject(404);\n",
        &["A -> A", "else -> else"],
    ),
    (
        "A: if (path == \"/\") { routeTo(a, STICKY_ON(cookie[\"a\"])); }\n",
        "A: if (path == \"/\") { routeTo(a, STICKY_ON(cookie[\"b\"])); }\n",
        &["A -> A"],
    ),
    // Two tags instead of one rule's, and the same in all.
    (
        "T: if (method == \"GET\") { tag(x); tag(y); }\nA: { routeTo(a); }\n",
        "T: if (method == \"GET\") { tag(x); }\nU: if (method == \"GET\") { tag(y); }\nA: { routeTo(a); }\n",
        &[],
    ),
    // What is refused as unknown has its tags, and nothing else that was done on the way.
    (
        "T: if (method == \"GET\") { tag(x); }\nA: if (path > 5) { routeTo(a); }\n",
        "T: if (method == \"GET\") { tag(y); }\nA: if (path > 5) { routeTo(a); }\n",
        &["A unknown -> A unknown"],
    ),
    (
        "T: if (method == \"GET\") { tag(x); setHeader(\"a\", \"1\"); limitRate(a); }\nA: if (path > 5) { routeTo(a); }\n",
        "T: if (method == \"GET\") { setHeader(\"a\", \"2\"); tag(x); bandwidth(a); }\nA: if (path > 5) { routeTo(a); }\n",
        &[],
    ),
    (
        "on_unknown routeTo(b);\nT: if (method == \"GET\") { setHeader(\"a\", \"1\"); }\nA: if (path > 5) { routeTo(a); }\n",
        "on_unknown routeTo(b);\nT: if (method == \"GET\") { setHeader(\"a\", \"2\"); }\nA: if (path > 5) { routeTo(a); }\n",
        &["A unknown -> A unknown"],
    ),
    // What nobody notices is no difference: a copy of what no server gets, and what something later takes the place of.
    (
        "T: if (method == \"GET\") { mirror(m); setHeader(\"a\", \"1\"); }\nA: if (path == \"/\") { reject(403); }\nB: { discard(); }\n",
        "A: if (path == \"/\") { removeHeader(\"b\"); mirror(m); reject(403); }\nB: { bandwidth(b); discard(); }\n",
        &[],
    ),
    (
        "T: if (method == \"GET\") { mirror(m); }\nU: if (method == \"PUT\") { tag(t); }\nV: { mirror(n); }\nA: { routeTo(a); }\n",
        "U: if (method == \"PUT\") { tag(t); }\nV: { mirror(n); }\nA: { routeTo(a); }\n",
        &[],
    ),
    (
        "T: if (method == \"GET\") { mirror(m); }\nV: if (path == \"/\") { mirror(n); }\nA: { routeTo(a); }\n",
        "V: if (path == \"/\") { mirror(n); }\nA: { routeTo(a); }\n",
        &["A -> A"],
    ),
    (
        "A: if (path == \"/\") { bandwidth(a); bandwidth(b); reject(403); }\n",
        "A: if (path == \"/\") { bandwidth(b); reject(403); }\n",
        &[],
    ),
    (
        "A: if (path == \"/\") { setHeader(\"a\", \"${query}\"); reject(403); }\n",
        "A: if (path == \"/\") { reject(403); }\n",
        &["A -> A"],
    ),
    // A header that is set or removed later leaves nothing of what was done with it before.
    (
        "T: if (method == \"GET\") { setHeader(\"a\", \"1\"); addHeader(\"a\", \"2\"); }\nA: if (path == \"/\") { setHeader(\"A\", \"3\"); addHeader(\"a\", \"4\"); routeTo(a); }\nB: { removeHeader(\"a\"); routeTo(b); }\n",
        "A: if (path == \"/\") { setHeader(\"a\", \"3\"); addHeader(\"a\", \"4\"); routeTo(a); }\nB: { removeHeader(\"a\"); routeTo(b); }\n",
        &[],
    ),
    (
        "T: if (method == \"GET\") { setHeader(\"a\", \"1\"); }\nV: if (path == \"/\") { setHeader(\"a\", \"2\"); }\nA: { routeTo(a); }\n",
        "V: if (path == \"/\") { setHeader(\"a\", \"2\"); }\nA: { routeTo(a); }\n",
        &["A -> A"],
    ),
    (
        "A: if (path == \"/\") { setResponseHeader(\"a\", \"1\"); setHeader(\"a\", \"2\"); routeTo(a); }\n",
        "A: if (path == \"/\") { setHeader(\"a\", \"2\"); routeTo(a); }\n",
        &["A -> A"],
    ),
    // What changes the protocol is not copied, but HEAD changes none, and what may is copied where it does not ask.
    (
        "A: if (upgrade == \"websocket\" && method == \"GET\") { mirror(m); routeTo(a); }\nelse: routeTo(b);\n",
        "A: if (upgrade == \"websocket\" && method == \"GET\") { routeTo(a); }\nelse: routeTo(b);\n",
        &[],
    ),
    (
        "A: if (upgrade == \"websocket\") { mirror(m); tag(t); routeTo(a); }\nelse: routeTo(b);\n",
        "A: if (upgrade == \"websocket\") { routeTo(a); }\nelse: routeTo(b);\n",
        &["A -> A"],
    ),
    (
        "T: if (upgrade exists) { mirror(m); }\nU: if (method == \"PUT\") { mirror(n); }\nA: { routeTo(a); }\n",
        "U: if (method == \"PUT\") { mirror(n); }\nA: { routeTo(a); }\n",
        &["A -> A"],
    ),
    (
        "T: if (upgrade == \"websocket\") { mirror(m); }\nU: if (method == \"GET\") { tag(n); }\nA: if (path == \"/\") { routeTo(a); }\nelse: routeTo(b);\n",
        "U: if (method == \"GET\") { tag(n); }\nA: if (path == \"/\") { routeTo(a); }\nelse: routeTo(b);\n",
        &[],
    ),
    ("T: if (path under \"/ws\") { mirror(m); }\nA: { routeTo(a); }\n", "A: { routeTo(a); }\n", &["A -> A"]),
    // A jump that leads elsewhere.
    (
        "J: if (method == \"GET\") { goto B; }\nA: { routeTo(a); }\nB: { routeTo(b); }\nC: { routeTo(c); }\n",
        "J: if (method == \"GET\") { goto C; }\nA: { routeTo(a); }\nB: { routeTo(b); }\nC: { routeTo(c); }\n",
        &["B -> C"],
    ),
    // A jump over one that leads over another.
    (
        "R0: if (header[\"a\"] == \"x\") { goto R2; }\n\
             R1: if (header[\"a\"] == \"x\") { routeTo(a); } else { goto R3; }\n\
             R2: if (header[\"a\"] != \"x\") { goto R4; }\n\
             R3: if (header[\"a\"] > 5) { routeTo(a); }\n\
             R4: if (!(count(header[\"a\"]) > 1)) { routeTo(b); }\n\
             else: routeTo(d);\n",
        "R0: if (header[\"a\"] == \"x\") { goto R2; }\n\
             R1: if (header[\"a\"] == \"x\") { routeTo(a); } else { goto R3; }\n\
             R2: if (header[\"a\"] != \"y\") { goto R4; }\n\
             R3: if (header[\"a\"] > 5) { routeTo(a); }\n\
             R4: if (!(count(header[\"a\"]) > 1)) { routeTo(b); }\n\
             else: routeTo(d);\n",
        &["R3 unknown -> R4", "R3 unknown -> else"],
    ),
];

#[test]
fn groups_are_these() {
    for (old, new, expected) in GROUPS {
        let mut expected: Vec<_> = expected.iter().map(|group| (*group).to_owned()).collect();
        let mut found = groups(old, new);
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{old}---\n{new}");
    }
}

#[test]
fn the_default_pool_is_a_pool() {
    let [old, new] =
        ["if (path == \"/\") { discard(); }\n", "if (path == \"/\") { discard(); }\nelse: routeTo(b);\n"]
            .map(program);
    let of = |one, other| -> Differences {
        let [one, other] =
            [(&old, one), (&new, other)].map(|(program, default_pool)| RuleSide { program, default_pool });
        differences(one, other, &Setting::default(), Effort::new(EFFORT))
    };
    assert!(of(Some("b"), Some("a")).are_none());
    assert_eq!(of(Some("a"), Some("a")).groups_count, 1);
    let changed = differences(
        RuleSide { program: &old, default_pool: Some("a") },
        RuleSide { program: &old, default_pool: Some("b") },
        &Setting::default(),
        Effort::new(EFFORT),
    );
    let ends: Vec<_> = changed.groups.iter().map(|group| (group.old.rule, group.new.rule)).collect();
    assert_eq!(ends, [(RuleIndex(1), RuleIndex(1))]);
}

#[test]
fn validation_is_part_of_it_where_bodies_are_read() {
    let of = |rule: &str| {
        let [old, new] =
            ["stream", "full"].map(|validate| program(&format!("validate {validate};\n{rule}\n")));
        differences(side(&old), side(&new), &Setting::default(), Effort::new(EFFORT))
    };
    let changed = of("if (json.a == 1) { routeTo(a); }");
    assert_eq!((changed.validate, changed.groups_count), (Some((Validate::Stream, Validate::Full)), 0));
    assert!(changed.are_some() && !changed.are_none());
    assert!(of("if (path == \"/\") { routeTo(a); }").are_none());
}

/// Where nothing may be asked, nothing is claimed.
#[test]
fn what_was_not_asked_is_unknown() {
    let [old, new] =
        ["A: if (json.a > 5) { discard(); }\n", "A: if (json.a > 7) { discard(); }\n"].map(program);
    let found = differences(side(&old), side(&new), &Setting::default(), Effort::new(0));
    assert!(!found.are_none() && !found.are_some() && found.undecided_count > 0);
}

/// A rule that refuses by what a body says makes bodies unknown that say nothing of what they are, wherever it stands.
#[test]
fn bodies_without_a_media_type() {
    let new = "validate stream;\nR1: if (xml.a == \"2\") { routeTo(a); }\nelse: routeTo(b);\n";
    let rule = |condition: &str| new.replace("R1:", &format!("R0: if ({condition}) {{ reject(403); }}\nR1:"));
    let of = |old: &str| {
        let [old, new] = [program(old), program(new)];
        let found = differences(side(&old), side(&new), &Setting::default(), Effort::new(EFFORT));
        (found.reads_otherwise, found.decide_alike())
    };
    assert_eq!(of(new), (false, true));
    let never = r#"path == "/x" && path == "/y""#;
    assert_eq!(of(&rule(never)), (false, true));
    assert_eq!(of(&rule(&format!(r#"xml.a == "1" && {never}"#))), (true, false));
    assert_eq!(of(&rule(&format!(r#"json.a == "1" && {never}"#))), (false, true));
}

/// What both refuse does not differ, whatever one of them has decided before it came to what is wrong.
#[test]
fn bodies_that_are_wrong_behind_what_decides() {
    let of = |validate: &str| {
        let rule = |label: &str, field: &str| {
            let rule = format!("{label}: if ({field} exists) {{ routeTo(a); }} else {{ routeTo(a); }}\n");
            // No member may stand there twice for one of them alone.
            let both = "if (json.a exists && json.b exists) { routeTo(a); }\n";
            program(&format!("validate {validate};\n{rule}{both}"))
        };
        let (old, new) = (rule("A", "json.a"), rule("B", "json.b"));
        let found = differences(side(&old), side(&new), &Setting::default(), Effort::new(EFFORT));
        let groups = found.groups.iter();
        let groups: Vec<_> = groups.map(|group| (group.old.holds, group.new.holds)).collect();
        // What else may be wrong behind a value that is not there is another question.
        let is_of_groups = |undecided: &&Undecided| {
            let holds = [undecided.old, undecided.new].map(|decider| decider.map(|decider| decider.holds));
            !holds.contains(&Some(Holds::False))
        };
        assert_eq!(found.undecided.iter().find(is_of_groups), None, "{validate}");
        (groups, found.are_none())
    };
    let one_side = vec![(Holds::True, Holds::Unknown), (Holds::Unknown, Holds::True)];
    assert_eq!(of("stream"), (one_side, false));
    assert_eq!(of("full"), (Vec::new(), false));
}

/// What is decided alike may be refused all the same, where the body is looked into.
#[test]
fn bodies_that_one_of_them_need_not_look_into() {
    let of = |old: &str, new: &str| {
        let [old, new] = [old, new].map(program);
        let found = differences(side(&old), side(&new), &Setting::default(), Effort::new(EFFORT));
        assert!(found.decide_alike(), "{found:?}");
        found.are_none()
    };
    let by_path = "if (path == \"/a\") { routeTo(a); }\n";
    let by_value = "if (json.a == 1) { routeTo(a); }\n";
    let skip = |rules: &str| format!("on_unknown skip;\n{rules}else: routeTo(a);\n");
    assert!(!of(&skip(&[by_path, by_value].concat()), &skip(&[by_value, by_path].concat())));
    assert!(!of(&skip(by_value), &skip("")));
    assert!(of(by_value, "if (json.a == 1.0) { routeTo(a); }\n"));
    let beside = |test: &str| format!("if (path == \"/b\" && {test}) {{ routeTo(a); }}\n");
    assert!(of(&beside("json.a > 5"), &beside("json.a in (5..1e9999)").replace("in (5..1e9999)", "> 5.0")));
    assert!(!of(&beside("json.a > 5"), "if (json.a > 5 && path in [\"/b\"]) { routeTo(a); }\n"));
}

/// Which members may stand once only is settled by all rules, those that nothing comes to among them.
#[test]
fn members_that_one_of_them_alone_names() {
    let equal = |rules: &str, was: &str, becomes: &str| {
        let [old, new] = [rules.to_owned(), rules.replace(was, becomes)].map(|rules| program(&rules));
        let found = differences(side(&old), side(&new), &Setting::default(), Effort::new(EFFORT));
        assert!(found.decide_alike(), "{rules}{becomes}: {found:?}");
        found.are_none()
    };
    let dead = "R0: if (host == \"x\") { routeTo(a); }\nR1: if (host == \"x\" && json.a == \"1\") { routeTo(b); }\n\
                R2: if (json.c == \"1\") { routeTo(c); }\n";
    assert!(!equal(dead, "json.a", "json.b"));
    assert!(!equal(dead, "json.a", "json.a.b"));
    assert!(!equal(dead, "json.a", "json.c"));
    let dead = &dead.replace("json.c", "json.a.b[0].c");
    assert!(!equal(dead, "json.a == \"1\"", "json.b == \"1\""));
    assert!(equal(dead, "json.a == \"1\"", "json.a.b == \"1\""));
    assert!(equal(dead, "json.a == \"1\"", "json.a.b[7] == \"1\""));
    assert!(!equal(dead, "json.a == \"1\"", "json.a.b[7].c == \"1\""));
}

/// Where what is unknown is no refusal, a body is let pass that is wrong before what decides, and none that is wrong behind it.
#[test]
fn bodies_that_are_wrong_before_what_decides() {
    let of = |policy: &str| {
        let rules = |first, second| {
            let rule = |field| format!("if (json.{field} == \"1\") {{ routeTo(d); }}\n");
            program(&format!("{policy}\n{}{}else: routeTo(d);\n", rule(first), rule(second)))
        };
        let (old, new) = (rules("a", "b"), rules("b", "a"));
        let of = |old, new| differences(side(old), side(new), &Setting::default(), Effort::new(EFFORT));
        assert!(of(&old, &old).are_none());
        of(&old, &new).are_none()
    };
    assert!(!of("on_unknown skip;"));
    assert!(!of("on_unknown routeTo(d);"));
}

/// A field with an odd name is taken away where it reads like one that is named.
#[test]
fn fields_that_read_like_one_that_is_named() {
    let of = |setting: &Setting, old: &str, new: &str| {
        let rules = |name: &str| {
            let rule = format!("R1: if (path == \"/a\" && header[\"{name}\"] == \"1\") {{ routeTo(b); }}\n");
            program(&format!("R0: if (path == \"/a\") {{ routeTo(a); }}\n{rule}else: routeTo(d);\n"))
        };
        let (old, new) = (rules(old), rules(new));
        differences(side(&old), side(&new), setting, Effort::new(EFFORT)).decide_alike()
    };
    let keep = Setting { odd_fields: OddFields::Keep(vec!["x-b".into()]), ..Setting::default() };
    assert!(!of(&keep, "x-a", "x-b"));
    assert!(of(&keep, "xa", "xb"));
    assert!(of(&Setting::default(), "x-a", "x-b"));
}

/// Who names a class names what it is keyed by.
#[test]
fn fields_that_read_like_the_key_of_a_class() {
    let of = |setting: &Setting, old: &str, new: &str| {
        let rules = |class: &str| {
            let rule = format!("R1: if (path == \"/a\" && path == \"/b\") {{ limitRate({class}); }}\n");
            program(&format!("{rule}R2: if (path == \"/a\") {{ routeTo(a); }}\nelse: routeTo(d);\n"))
        };
        let (old, new) = (rules(old), rules(new));
        differences(side(&old), side(&new), setting, Effort::new(EFFORT)).decide_alike()
    };
    let limit_keys = [("by-a", "x-a"), ("too-by-a", "x-a"), ("plain", "xa")];
    let limit_keys = limit_keys.map(|(class, key)| (class.into(), key.into())).to_vec();
    let drop = Setting { limit_keys, ..Setting::default() };
    let keep = Setting { odd_fields: OddFields::Keep(vec!["x-a".into()]), ..drop.clone() };
    for (setting, new, are_alike) in [
        (&keep, "by-a", true),
        (&keep, "too-by-a", true),
        (&keep, "plain", false),
        (&keep, "of-all", false),
        (&drop, "of-all", true),
    ] {
        assert_eq!(of(setting, "by-a", new), are_alike, "{new}");
    }
    assert!(of(&keep, "of-all", "plain"));
}
