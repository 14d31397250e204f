//! `cargo xtask conformance`: tools of others that know what a protocol demands, before the switch, with a figure
//! for each.

mod h2spec;

use std::net::SocketAddr;

use lexopt::{Arg, ValueExt};
use pointsman_e2e::{Front, Nginx, Origin, Setup, ok};

use crate::failure::{Because, Failure, Result};
use crate::packages::{self, Tool};
use crate::project::{Project, succeed};
use h2spec::{H2spec, Report};

const TOOLS: &[Tool] = &[Tool { program: "nginx", package: "nginx" }];

/// What is looked at.
pub(crate) struct Options {
    proxy: Proxy,
    build: bool,
    /// One server behind, and no case that is more than the RFC demands.
    is_short: bool,
}

/// Who is before the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proxy {
    Ours,
    /// In our place: what the tools say of somebody else shows that they say something.
    Nginx,
}

impl Options {
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut options = Self { proxy: Proxy::Ours, build: true, is_short: false };
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("of") => {
                    options.proxy = match arguments.value()?.string()?.as_str() {
                        "pointsman" => Proxy::Ours,
                        "nginx" => Proxy::Nginx,
                        other => {
                            let help = "help: there are pointsman and nginx";
                            return Err(Failure::usage(format!("no such proxy: `{other}`\n{help}")));
                        }
                    }
                }
                Arg::Long("short") => options.is_short = true,
                Arg::Long("no-build") => options.build = false,
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(options)
    }

    /// What `cargo xtask check` runs of it: the switch is built by then.
    pub(crate) fn of_check() -> Self {
        Self { proxy: Proxy::Ours, build: false, is_short: true }
    }
}

/// Runs everything, prints the figures, and fails when a case does.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    packages::ensure(TOOLS)?;
    let h2spec = H2spec::installed(project)?;
    // With the assertions of a debug build: a broken invariant ends it.
    if options.build && options.proxy == Proxy::Ours {
        succeed(project.cargo().args(["build", "--package", "pointsman"]))?;
    }
    let binary = project.target().join("debug/pointsman");
    let folder = project.target().join("conformance");
    std::fs::create_dir_all(&folder).because(|| format!("cannot make `{}`", folder.display()))?;
    let origin = Origin::answering("origin", ok);
    let mut failed = 0;
    let mut judge = |what: &str, server: SocketAddr| -> Result<()> {
        let front = match options.proxy {
            // Whoever speaks HTTP/1 as well answers what is no preface, and h2spec takes any answer for a frame.
            Proxy::Ours => Front::switch(Setup::new(2).listener("http2 = \"only\"").program(&binary), server),
            Proxy::Nginx => Front::nginx(server),
        };
        for is_tls in [false, true] {
            for is_strict in if options.is_short { &[false][..] } else { &[false, true] } {
                let speech = if is_tls { "TLS" } else { "plain" };
                let name = format!("h2spec{}, {speech}, {what}", if *is_strict { " --strict" } else { "" });
                let file = folder.join(format!("{}.xml", name.replace([' ', ','], "-")));
                let address = if is_tls { front.tls() } else { front.http2() };
                let report = h2spec.run(address, is_tls, *is_strict, &file)?;
                let Report { passed, skipped, failed: broken } = report;
                println!("{name}: {passed} passed, {} failed, {skipped} skipped", broken.len());
                broken.iter().for_each(|case| println!("  failed: {case}"));
                failed += broken.len();
            }
        }
        Ok(())
    };
    judge("before our own server", origin.address())?;
    if !options.is_short {
        let nginx = Nginx::start(&[], |[address]: [SocketAddr; 1]| {
            format!("server {{ listen {address}; location / {{ return 200 \"nginx\\n\"; }} }}")
        });
        judge("before nginx", nginx.address(0))?;
    }
    if failed == 0 { Ok(()) } else { Err(Failure::new(format!("{failed} cases failed"))) }
}
