//! A plan takes over the lists and the rules of the plan before it as far as nothing about them has changed, and no others.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pointsman_config::{Colour, Plan, Problems};
use pointsman_rules::{List, Members};
use tempfile::TempDir;

const CONFIG: &str = r#"
[[listener]]
name = "shop"
bind = "127.0.0.1:0"
rules = "shop.rules"

[pool.a]
servers = ["127.0.0.1:9001"]

[list.blocked]
file = "blocked"
entries = ["192.0.2.1"]
"#;

const RULES: &str = "R1: if (srcip in @blocked) { reject(403); } else: routeTo(a);\n";

struct Site(TempDir);

impl Site {
    fn new(list: &str) -> Site {
        let site = Site(tempfile::tempdir().expect("a folder"));
        for (name, text) in [("pointsman.toml", CONFIG), ("shop.rules", RULES), ("blocked", list)] {
            site.write(name, text);
        }
        site
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("a writable folder");
    }

    fn load(&self, previous: Option<&Plan>) -> Result<Plan, Problems> {
        Plan::load(&self.0.path().join("pointsman.toml"), previous).map(|loaded| loaded.plan)
    }

    fn loads(&self, previous: Option<&Plan>) -> Plan {
        self.load(previous).unwrap_or_else(|problems| panic!("{}", problems.render(Colour::Never)))
    }
}

fn list(plan: &Plan) -> &Arc<List> {
    let program = plan.listeners[0].program.as_ref().expect("it has rules");
    program.lists()[0]
}

fn has(plan: &Plan, address: &str) -> bool {
    match &list(plan).members {
        Members::Networks(networks) => networks.has(address.parse().expect("an address")),
        Members::Texts(texts) => texts.has(address.as_bytes()),
    }
}

/// Loads after a change of the site, and says whether the list of before serves on.
fn keeps(site: &Site, before: &Plan, change: impl FnOnce(&Path)) -> (bool, Plan) {
    change(site.0.path());
    let after = site.loads(Some(before));
    (Arc::ptr_eq(list(before), list(&after)), after)
}

#[test]
fn a_list_is_taken_over_unless_something_about_it_changed() {
    let site = Site::new("10.0.0.0/8\n");
    let plan = site.loads(None);
    let write =
        |name: &'static str, text: String| move |folder: &Path| fs::write(folder.join(name), text).unwrap();
    let (kept, plan) = keeps(&site, &plan, |_| {});
    assert!(kept, "nothing changed");
    let (kept, plan) = keeps(&site, &plan, write("shop.rules", format!("# further\n{RULES}")));
    assert!(kept, "the rules alone changed");
    let (kept, plan) = keeps(&site, &plan, write("blocked", "10.0.0.0/8\n".to_owned()));
    assert!(kept, "the file was written again as it was");

    let (kept, plan) = keeps(&site, &plan, write("blocked", "11.0.0.0/8\n".to_owned()));
    assert!(
        !kept && has(&plan, "11.0.0.1") && !has(&plan, "10.0.0.1"),
        "another network, as long as the old one"
    );
    let (kept, plan) = keeps(&site, &plan, write("pointsman.toml", CONFIG.replace("192.0.2.1", "192.0.2.2")));
    assert!(
        !kept && has(&plan, "192.0.2.2") && !has(&plan, "192.0.2.1") && has(&plan, "11.0.0.1"),
        "an entry"
    );
    let (kept, plan) = keeps(&site, &plan, |folder| {
        fs::write(folder.join("other"), "12.0.0.0/8\n").unwrap();
        fs::write(folder.join("pointsman.toml"), CONFIG.replace("\"blocked\"", "\"other\"")).unwrap();
    });
    assert!(!kept && has(&plan, "12.0.0.1") && !has(&plan, "11.0.0.1"), "another file");
    let (kept, plan) = keeps(&site, &plan, |folder| {
        fs::write(folder.join("pointsman.toml"), CONFIG.replace("file = \"blocked\"\n", "")).unwrap();
    });
    assert!(!kept && has(&plan, "192.0.2.1") && !has(&plan, "12.0.0.1"), "no file");
    let (kept, plan) = keeps(&site, &plan, |_| {});
    assert!(kept && has(&plan, "192.0.2.1"), "entries alone, as they were");
    let texts = CONFIG.replace("[list.blocked]", "[list.blocked]\nkind = \"texts\"");
    let hosts = RULES.replace("srcip", "host");
    let (kept, plan) = keeps(&site, &plan, |folder| {
        fs::write(folder.join("pointsman.toml"), texts).unwrap();
        fs::write(folder.join("shop.rules"), hosts).unwrap();
    });
    assert!(!kept && has(&plan, "192.0.2.1") && has(&plan, "11.0.0.0/8"), "of another kind");
}

/// A file that is too large to be read for nothing is known by what the system says of it, which a writer that sets its
/// time back changes, too.
#[test]
fn a_large_list_that_changed_is_read_whatever_its_times_say() {
    let networks = |first: u8| {
        (0..100_000)
            .map(|place| format!("{first}.{}.{}.0/25\n", place / 256 % 256, place % 256))
            .collect::<String>()
    };
    let site = Site::new(&networks(10));
    let path = site.0.path().join("blocked");
    assert!(fs::metadata(&path).unwrap().len() > 1 << 20);
    let old = SystemTime::now() - Duration::from_secs(3600);
    let set_back = || File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    set_back();
    let plan = site.loads(None);
    let (kept, plan) = keeps(&site, &plan, |_| {});
    assert!(kept);
    let (kept, plan) = keeps(&site, &plan, |_| {
        site.write("blocked", &networks(11));
        set_back();
    });
    assert!(!kept && has(&plan, "11.0.0.1") && !has(&plan, "10.0.0.1"));
    let (kept, _) = keeps(&site, &plan, |folder| {
        fs::write(folder.join("new"), networks(12)).unwrap();
        fs::rename(folder.join("new"), &path).unwrap();
        set_back();
    });
    assert!(!kept);
}

/// Neither does a good list hide a file that is gone or has a mistake, nor are those forgotten by whoever loads again.
#[test]
fn what_is_wrong_is_said_each_time() {
    let site = Site::new("10.0.0.0/8\n");
    let plan = site.loads(None);
    for _ in 0..2 {
        site.write("blocked", "10.0.0.0/8\n10.0.0.1/8\n");
        let problems = site.load(Some(&plan)).expect_err("it has a mistake");
        assert!(problems.render(Colour::Never).contains("blocked:2:1"));
        fs::remove_file(site.0.path().join("blocked")).unwrap();
        let problems = site.load(Some(&plan)).expect_err("it is gone");
        assert!(problems.render(Colour::Never).contains("cannot read"));
    }
}

/// So are rules, and with them what goes on beside them.
#[test]
fn rules_are_taken_over_unless_they_would_decide_otherwise() {
    let site = Site::new("10.0.0.0/8\n");
    let second = CONFIG.replace(
        "[pool.a]",
        "[[listener]]\nname = \"other\"\nbind = \"127.0.0.1:0\"\nrules = \"other.rules\"\n[pool.a]",
    );
    site.write("pointsman.toml", &second);
    site.write("other.rules", RULES);
    let programs =
        |plan: &Plan| [0, 1].map(|at: usize| plan.listeners[at].program.clone().expect("it has rules"));
    let kept = |before: &Plan, change: &dyn Fn()| {
        change();
        let after = site.loads(Some(before));
        let [old, new] = [before, &after].map(programs);
        assert!(!Arc::ptr_eq(&new[0], &new[1]), "two files, whatever stands in them");
        ([0, 1].map(|at: usize| Arc::ptr_eq(&old[at], &new[at])), after)
    };
    let plan = site.loads(None);
    let (are_kept, plan) = kept(&plan, &|| {});
    assert_eq!(are_kept, [true, true], "nothing changed");
    let with_server = second.replace(
        "[\"127.0.0.1:9001\"]",
        "[\"127.0.0.1:9001\", { name = \"b\", address = \"127.0.0.1:9002\" }]",
    );
    let (are_kept, plan) = kept(&plan, &|| site.write("pointsman.toml", &with_server));
    assert_eq!(are_kept, [true, true], "a server more that no rule names");
    let (are_kept, plan) = kept(&plan, &|| site.write("other.rules", &RULES.replace("403", "404")));
    assert_eq!(are_kept, [true, false], "another text");
    let (are_kept, plan) = kept(&plan, &|| site.write("blocked", "11.0.0.0/8\n"));
    assert_eq!(are_kept, [false, false], "another list");
    let to_b = RULES.replace("routeTo(a)", "routeTo(b)");
    let (_, plan) =
        kept(&plan, &|| ["shop.rules", "other.rules"].iter().for_each(|name| site.write(name, &to_b)));
    let pool_b = format!("{with_server}[pool.b]\nservers = [\"127.0.0.1:9003\"]\n");
    let (are_kept, _) = kept(&plan, &|| site.write("pointsman.toml", &pool_b));
    assert_eq!(are_kept, [false, false], "a name that stands for something else");
}
