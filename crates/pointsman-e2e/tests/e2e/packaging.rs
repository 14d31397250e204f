//! What is shipped: the Debian package, the unit, and the files of the container.

use std::fs;
use std::path::{Path, PathBuf};

use pointsman_e2e::{Client, Finished, Origin, Switch, installed, program, skipped, tool};

/// The folder of all that is shipped.
fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").canonicalize().expect("it is there")
}

/// Runs a program of the system, which is to succeed.
fn succeeds(folder: &Path, program: &str, words: &[&str]) -> Finished {
    let finished = tool(folder, program, words).expect("it was there a moment ago");
    assert_eq!(finished.code, 0, "{program} {words:?}\n{}", finished.output());
    finished
}

/// It holds what it says, and its configuration serves.
#[test]
fn the_debian_package() {
    if !["dpkg-deb", "dpkg-shlibdeps", "strip"].into_iter().all(installed) {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (binary, build) = (program().to_string_lossy(), packaging().join("debian/build"));
    let built = succeeds(folder.path(), &build.to_string_lossy(), &[&binary, ".", "none"]);
    let package = built.stdout.trim();
    let fields = succeeds(folder.path(), "dpkg-deb", &["--field", package]).stdout;
    let version = env!("CARGO_PKG_VERSION");
    for field in ["Package: pointsman", &format!("Version: {version}"), "Depends: libc6 (>= "] {
        assert!(fields.contains(field), "`{field}` is missing in:\n{fields}");
    }
    succeeds(folder.path(), "dpkg-deb", &["--raw-extract", package, "root"]);
    let root = folder.path().join("root");
    let conffiles = fs::read_to_string(root.join("DEBIAN/conffiles")).expect("it is there");
    let here = |file: &str| root.join(file.trim_start_matches('/')).is_file();
    assert!(
        conffiles.contains("/etc/pointsman/pointsman.toml\n") && conffiles.lines().all(here),
        "{conffiles}"
    );
    for file in [
        "usr/lib/systemd/system/pointsman.service",
        "usr/lib/systemd/system/pointsman-agent.service",
        "usr/lib/sysusers.d/pointsman.conf",
        "usr/lib/tmpfiles.d/pointsman.conf",
        "usr/share/doc/pointsman/copyright",
        "usr/share/doc/pointsman/changelog.gz",
        "usr/share/man/man1/pointsman.1.gz",
    ] {
        assert!(here(file), "{file}");
    }
    succeeds(&root, "md5sum", &["--check", "--quiet", "DEBIAN/md5sums"]);
    for script in ["postinst", "prerm", "postrm"] {
        succeeds(&root, "sh", &["-n", &format!("DEBIAN/{script}")]);
    }
    completes(&root);
    let packaged = root.join("usr/bin/pointsman");
    let words = ["check", "--fail-on", "warning", "etc/pointsman/pointsman.toml"];
    succeeds(&root, &packaged.to_string_lossy(), &words);
    serves(&root.join("etc/pointsman"));
}

/// What stands in it for the shell knows commands, and the options of each.
fn completes(root: &Path) {
    let ask = |words: &str, at: usize| {
        let line = format!(
            "set -u; . usr/share/bash-completion/completions/pointsman 2>/dev/null; COMP_WORDS=({words}); \
             COMP_CWORD={at}; _pointsman; echo \"${{COMPREPLY[*]-}}\""
        );
        succeeds(root, "bash", &["-c", &line]).stdout.trim().to_owned()
    };
    assert_eq!(ask("pointsman rel", 1), "reload");
    assert_eq!(ask("pointsman reload --d", 2), "--dry-run");
    assert_eq!(ask("pointsman run --dry", 2), "");
    assert_eq!(ask("pointsman dry", 1), "dry-run");
    assert_eq!(ask("pointsman dry-run --dec", 2), "--decisions");
    assert_eq!(ask("pointsman bench compa", 2), "compare");
    assert_eq!(ask("pointsman bench find --p9", 3), "--p99");
    assert_eq!(ask("pointsman bench load --p9", 3), "");
}

/// A copy of the folder on other ports, in front of a server.
fn serves(folder: &Path) {
    let (origin, copy) = (Origin::new("origin"), tempfile::tempdir().expect("a temporary folder"));
    for entry in fs::read_dir(folder).expect("it was unpacked").flatten() {
        let text = fs::read_to_string(entry.path()).expect("text");
        let text = text.replace("127.0.0.1:9001", &origin.address().to_string());
        let text = text.replace(":8080\"", ":0\"").replace(":9090\"", ":0\"");
        fs::write(copy.path().join(entry.file_name()), text).expect("a writable folder");
    }
    let switch = Switch::run(copy);
    let mut address = switch.address("web");
    address.set_ip([127, 0, 0, 1].into());
    assert_eq!(Client::plain(address).get("/").server(), "origin");
}

/// What the unit makes has the modes that the package gives it.
#[test]
fn folders_have_one_mode() {
    let read = |file: &str| fs::read_to_string(packaging().join("systemd").join(file)).expect("it is there");
    let (unit, folders) = (read("pointsman.service"), read("tmpfiles.conf"));
    for (key, path) in
        [("LogsDirectoryMode", "/var/log/pointsman"), ("StateDirectoryMode", "/var/lib/pointsman")]
    {
        let line = folders.lines().find_map(|line| line.strip_prefix(&format!("d {path} "))).expect(path);
        let mode = line.split(' ').next().expect("a mode");
        assert!(unit.lines().any(|line| line == format!("{key}={mode}")), "{key} is not {mode}");
    }
}

#[test]
fn the_unit() {
    is_sound("pointsman.service");
}

#[test]
fn the_unit_of_an_agent() {
    is_sound("pointsman-agent.service");
}

/// systemd reads all of the unit, and finds little to say of what it exposes.
fn is_sound(name: &str) {
    /// In tenths: what a network service with a port below 1024 can hardly be without makes most of it.
    const EXPOSED_MAX: u32 = 20;
    if !Path::new("/usr/bin/systemd-analyze").exists() {
        return skipped("systemd-analyze is not installed");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let unit = fs::read_to_string(packaging().join("systemd").join(name)).expect("it is there");
    // What it starts is not installed here.
    let unit = unit.replace("/usr/bin/pointsman", &program().to_string_lossy());
    fs::write(folder.path().join(name), unit).expect("a writable folder");
    let file = format!("./{name}");
    let verified = succeeds(folder.path(), "systemd-analyze", &["verify", "--man=no", &file]);
    assert_eq!(verified.output().trim(), "");
    let words = ["security", "--offline=true", "--no-pager", &file];
    let report = succeeds(folder.path(), "systemd-analyze", &words).stdout;
    let (_, level) = report.split_once(&format!("exposure level for {name}: ")).expect("a level");
    let tenths = level.split_whitespace().next().and_then(|level| level.replace('.', "").parse().ok());
    assert!(tenths.is_some_and(|tenths: u32| tenths <= EXPOSED_MAX), "{report}");
    let users = packaging().join("systemd/sysusers.conf");
    succeeds(folder.path(), "systemd-sysusers", &["--dry-run", &users.to_string_lossy()]);
}

/// All that is copied into the container is there, and the switch starts in a root that has nothing else but the
/// system's C library. An engine that would build it is not asked for here.
#[test]
fn the_container() {
    let file = fs::read_to_string(packaging().join("container/Containerfile")).expect("it is there");
    let sources = packaging().join("..");
    let copies =
        file.lines().filter_map(|line| line.strip_prefix("COPY ")).filter(|rest| !rest.starts_with("--"));
    let copied: Vec<_> = copies.flat_map(|rest| rest.split(' ').rev().skip(1)).collect();
    assert!(copied.len() > 3 && copied.iter().all(|source| sources.join(source).exists()), "{copied:?}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let put = |from: &Path, to: &str| {
        let to = folder.path().join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a writable folder");
        fs::copy(from, to).expect("a writable folder");
    };
    put(program(), "/usr/bin/pointsman");
    put(&packaging().join("container/pointsman.toml"), "/etc/pointsman/pointsman.toml");
    serves(&folder.path().join("etc/pointsman"));
    let needed = succeeds(folder.path(), "ldd", &[&program().to_string_lossy()]).stdout;
    for library in needed.split_whitespace().filter(|word| word.starts_with('/')) {
        put(Path::new(library), library);
    }
    let start = file.lines().find_map(|line| line.strip_prefix("CMD ")).expect("it says what it starts");
    let words: Vec<String> = serde_json::from_str(start).expect("a list");
    assert_eq!(words, ["run", "--config", "/etc/pointsman/pointsman.toml"]);
    let isolated = ["--map-root-user", "chroot", ".", "/usr/bin/pointsman"];
    let checks = ["check", "--fail-on", "warning", "/etc/pointsman/pointsman.toml"];
    let Some(checked) = tool(folder.path(), "unshare", &[&isolated[..], &checks].concat()) else { return };
    if checked.output().contains("unshare failed") {
        return skipped("no user namespaces may be made here");
    }
    assert_eq!(checked.code, 0, "{}", checked.output());
}
