//! Texts of configurations before and after a change.

use super::*;

fn text(value: &str) -> EditValue {
    EditValue::Text(value.to_owned())
}

fn put(keys: &[(&str, EditValue)]) -> ServerEdit {
    ServerEdit::Put(keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

fn merge_of(keys: &[(&str, Option<EditValue>)]) -> ServerEdit {
    ServerEdit::Merge(keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

/// The value of `servers` before and after.
#[track_caller]
fn check(servers: &str, server: &str, edit: &ServerEdit, expected: &str) {
    let around = |servers: &str| {
        format!(
            "# top\n\n[pool.p] # a pool\nbalance = \"round-robin\"\nservers = {servers} # behind\n\n[pool.q]\nservers = [\"x:1\"]\n"
        )
    };
    let edited = edit_server(&around(servers), "p", server, edit).expect("it can be changed");
    assert_eq!(edited, around(expected), "{edited}");
}

#[test]
fn servers_are_added_as_the_others_are_written() {
    let plain = put(&[("address", text("c:3"))]);
    let full =
        put(&[("address", text("c:3")), ("weight", EditValue::Number(3)), ("backup", EditValue::Flag(true))]);
    check(r#"["a:1"]"#, "c:3", &plain, r#"["a:1", "c:3"]"#);
    check(r#"[ "a:1" ]"#, "c:3", &plain, r#"[ "a:1", "c:3" ]"#);
    check(r#"["a:1",]"#, "c:3", &plain, r#"["a:1", "c:3",]"#);
    check(r#"["a:1"]"#, "c", &plain, r#"["a:1", { name = "c", address = "c:3" }]"#);
    check(
        "[\n    \"a:1\", # first\n    { name = \"b\", address = \"b:2\" }, # second\n]",
        "c",
        &full,
        "[\n    \"a:1\", # first\n    { name = \"b\", address = \"b:2\" }, # second\n    { name = \"c\", address = \"c:3\", weight = 3, backup = true },\n]",
    );
    check(
        "[\n  \"a:1\",\n  \"b:2\" # second\n]",
        "c:3",
        &plain,
        "[\n  \"a:1\",\n  \"b:2\", # second\n  \"c:3\",\n]",
    );
    check(
        "[\n  # own\n  \"a:1\",\n  # last\n  ]",
        "c:3",
        &plain,
        "[\n  # own\n  \"a:1\",\n  # last\n  \"c:3\",\n  ]",
    );
}

#[test]
fn servers_go_and_what_is_said_of_others_stays() {
    let gone = &ServerEdit::Remove;
    check(r#"["a:1", "b:2", "c:3"]"#, "a:1", gone, r#"["b:2", "c:3"]"#);
    check(r#"["a:1", "b:2", "c:3"]"#, "b:2", gone, r#"["a:1", "c:3"]"#);
    check(r#"["a:1", "b:2", "c:3"]"#, "c:3", gone, r#"["a:1", "b:2"]"#);
    check(r#"[ "a:1", { address = "b:2" } ]"#, "b:2", gone, r#"[ "a:1" ]"#);
    check(r#"["a:1"]"#, "a:1", gone, "[]");
    let lines = "[\n  # own\n  \"a:1\", # first\n  \"b:2\", # second\n  # own, too\n  { name = \"c\", address = \"c:3\" }, # third\n]";
    check(
        lines,
        "a:1",
        gone,
        "[\n  # own\n  \"b:2\", # second\n  # own, too\n  { name = \"c\", address = \"c:3\" }, # third\n]",
    );
    check(
        lines,
        "b:2",
        gone,
        "[\n  # own\n  \"a:1\", # first\n  # own, too\n  { name = \"c\", address = \"c:3\" }, # third\n]",
    );
    check(lines, "c", gone, "[\n  # own\n  \"a:1\", # first\n  \"b:2\", # second\n  # own, too\n]");
    check("[\n  \"a:1\", # first\n  \"b:2\" # second\n]", "b:2", gone, "[\n  \"a:1\" # first\n]");
    check("[\"a:1\", # first\n  \"b:2\"]", "b:2", gone, "[\"a:1\" # first\n  ]");
}

#[test]
fn keys_of_a_server_change() {
    let weight = merge_of(&[("weight", Some(EditValue::Number(5)))]);
    check(r#"["a:1", "b:2"]"#, "b:2", &weight, r#"["a:1", { address = "b:2", weight = 5 }]"#);
    check(
        r#"[{name="b",weight = 2 ,address="b:2"}]"#,
        "b",
        &weight,
        r#"[{name="b",weight = 5 ,address="b:2"}]"#,
    );
    let zone = merge_of(&[("weight", Some(EditValue::Number(5))), ("zone", Some(text("a")))]);
    check(
        r#"[{ name = "b", address = "b:2", weight = 2 }]"#,
        "b",
        &zone,
        r#"[{ name = "b", address = "b:2", weight = 5, zone = "a" }]"#,
    );
    check(
        r#"[{name="b",address="b:2"}]"#,
        "b",
        &zone,
        r#"[{name="b",address="b:2", weight = 5, zone = "a"}]"#,
    );
    let less = merge_of(&[("weight", None), ("zone", None)]);
    check(
        r#"[{ name = "b", address = "b:2", weight = 2 }]"#,
        "b",
        &less,
        r#"[{ name = "b", address = "b:2" }]"#,
    );
    let other = put(&[("address", text("b:9"))]);
    check(
        r#"[{ name = "b", address = "b:2", weight = 2 }]"#,
        "b",
        &other,
        r#"[{ name = "b", address = "b:9" }]"#,
    );
}

#[test]
fn tables_of_servers_change_likewise() {
    let source = "[pool.p]\n# one\n[[pool.p.servers]]\nname = \"a\" # a\naddress = \"a:1\"\n\n[[pool.p.servers]]\naddress = \"b:2\"\n";
    let edited =
        |server, edit: &ServerEdit| edit_server(source, "p", server, edit).expect("it can be changed");
    let weight = merge_of(&[("weight", Some(EditValue::Number(5)))]);
    assert_eq!(edited("a", &weight), source.replace("\"a:1\"\n", "\"a:1\"\nweight = 5\n"));
    assert_eq!(
        edited("c", &put(&[("address", text("c:3"))])),
        format!("{source}\n[[pool.p.servers]]\nname = \"c\"\naddress = \"c:3\"\n")
    );
    assert_eq!(
        edited("b:2", &ServerEdit::Remove),
        source.split("\n[[pool.p.servers]]\naddress").next().expect("it is there")
    );
}

/// A file that an editor of another system has written stays one, and so do lines that end otherwise than their
/// neighbours.
#[test]
fn lines_end_as_they_did() {
    let weight = merge_of(&[("weight", Some(EditValue::Number(5)))]);
    let source = "[pool.p]\r\n# one\nservers = [\r\n  \"a:1\", # first\r\n  \"b:2\",\n]\r\n[pool.q]\r\ndoc = '''\r\na\r\n'''";
    let edited = edit_server(source, "p", "b:2", &weight).expect("it can be changed");
    assert_eq!(edited, source.replace("\"b:2\",\n", "{ address = \"b:2\", weight = 5 },\r\n"), "{edited}");
    let added = edit_server(&source.replace(",\n", ",\r\n"), "p", "c:3", &put(&[("address", text("c:3"))]));
    assert_eq!(added.expect("it can be changed"), source.replace(",\n", ",\r\n  \"c:3\",\r\n"),);
    let unix = source.replace('\r', "");
    let edited = edit_server(&unix, "p", "b:2", &weight).expect("it can be changed");
    assert!(!edited.contains('\r'), "{edited:?}");
}

#[test]
fn what_cannot_be_changed_says_why() {
    let fault =
        |source: &str, edit: &ServerEdit| edit_server(source, "p", "b:2", edit).expect_err("it cannot");
    let weight = merge_of(&[("weight", Some(EditValue::Number(5)))]);
    assert_eq!(fault("[pool.q]\nservers = []", &weight), EditFault::NoPool);
    assert_eq!(fault("", &weight), EditFault::NoPool);
    assert_eq!(fault("[pool.p]\nservers = [\"a:1\"]", &weight), EditFault::NoServer);
    assert_eq!(fault("[pool.p]\nservers = [\"a:1\"]", &ServerEdit::Remove), EditFault::NoServer);
    assert_eq!(fault("[pool.p]\nservers = 1", &weight), EditFault::Layout);
    assert_eq!(fault("[pool.p", &weight), EditFault::Layout);
    let moved = merge_of(&[("address", Some(text("c:3")))]);
    assert_eq!(fault("[pool.p]\nservers = [\"b:2\"]", &moved), EditFault::Nameless);
    let dotted = edit_server("pool.p.servers = [\"b:2\"]\n", "p", "b:2", &weight);
    assert_eq!(dotted.expect("it can"), "pool.p.servers = [{ address = \"b:2\", weight = 5 }]\n");
}
