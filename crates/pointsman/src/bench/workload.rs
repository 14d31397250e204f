//! `pointsman bench workload`: a WebBench workload with ever more clients, and orders in XML that grow.

mod options;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use pointsman_bench::{
    Fault, Interrupt, Load, NotRun, OrderOutcome, Outcome, Plan, ladder, ladder_csv, orders, run_whole,
};
use pointsman_measure::report::{Document, Run};
use pointsman_measure::table::csv;
use pointsman_measure::verdict::Colour;
use pointsman_measure::workload::{WORKLOAD_BYTES_MAX, Workload, parse};
use pointsman_rules::draw;

use self::options::{Options, What, every};
use super::load::refuse;
use super::output::began;
use super::progress::ProgressLine;
use super::told::tabled;
use super::{refuse_words, with_options};
use crate::check::terminal;
use crate::{WRONG_USE, say};

pub(super) fn workload(arguments: Vec<OsString>, interrupt: &Interrupt) -> ExitCode {
    with_options(Options::read(arguments), &[&options::help()], |mut options| {
        options.plan.interrupt = interrupt.clone();
        carry_out(options)
    })
}

fn carry_out(options: Options) -> ExitCode {
    let measured = match &options.what {
        What::Ladder { file, clients } => climb(&options, file, clients),
        What::Orders { items, every_ms, repeat } => send_orders(&options, items, (*every_ms, *repeat)),
    };
    match measured {
        Ok(run) => give(&options, run),
        Err(status) => status,
    }
}

/// The workload with each number of clients.
fn climb(options: &Options, file: &Path, all: &[u32]) -> Result<Run, ExitCode> {
    let workload = read(file).map_err(|words| say(&mut io::stderr(), &words, WRONG_USE))?;
    let plan = options.plan.clone().of_workload(&workload).map_err(|fault| refuse(&fault))?;
    let (steps, not_run) = each(all, &options.plan.interrupt, |clients| {
        let begun = plan.delay.unwrap_or_default() * clients;
        let plan = Plan {
            load: Load::Closed { clients },
            warm_up: plan.warm_up + begun,
            threads: plan.threads.min(clients as usize),
            ..plan.clone()
        };
        step(&plan).map_err(|fault| (fault, format!("{clients} clients")))
    })?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let began_unix_s = steps.first().map_or(0, |step| step.began_unix_s);
    let mut run = began(ladder(options.output.name(&name), &steps, not_run.as_ref()), began_unix_s);
    // Hundreds of requests are no settings that anybody reads; the file is.
    run.settings.retain(|name, _| !name.starts_with("targets"));
    run.settings.insert("workload".to_owned(), file.display().to_string());
    run.settings.insert("url".to_owned(), urls(options));
    Ok(run)
}

/// Orders of each size, one after the other.
fn send_orders(options: &Options, all: &[u32], (every_ms, repeat): (u64, u32)) -> Result<Run, ExitCode> {
    let (steps, not_run) = each(all, &options.plan.interrupt, |items| {
        let (plan, bytes) = options.plan.clone().of_order(items);
        let gap = std::time::Duration::from_millis(every_ms);
        let plan = Plan {
            load: every(every_ms),
            // The measured time begins and ends between two orders.
            warm_up: gap * 3 + gap / 2,
            time: gap * repeat,
            ..plan
        };
        match step(&plan) {
            Ok(outcome) => Ok(OrderOutcome { items, bytes, outcome }),
            Err(fault) => Err((fault, format!("{items} items, {bytes} bytes"))),
        }
    })?;
    let began_unix_s = steps.first().map_or(0, |step| step.outcome.began_unix_s);
    Ok(began(orders(options.output.name("orders"), &steps, not_run.as_ref()), began_unix_s))
}

/// Steps up to the first that cannot be run, and those that are not: what was measured before is a result all the same. Where it
/// is the first of all, it is said of what.
fn each<T>(
    all: &[u32],
    interrupt: &Interrupt,
    mut run: impl FnMut(u32) -> Result<T, (Fault, String)>,
) -> Result<(Vec<T>, Option<NotRun>), ExitCode> {
    let mut steps = Vec::with_capacity(all.len());
    for (at, count) in all.iter().enumerate() {
        match run(*count) {
            Ok(step) => steps.push(step),
            Err((fault, what)) if at == 0 => {
                return Err(refuse_words(&format!("{fault}, with {what}"), fault.advice()));
            }
            Err((fault, _)) => {
                let was_interrupted = interrupt.has_come();
                let not_run = NotRun { steps: all[at..].to_vec(), why: fault.to_string(), was_interrupted };
                return Ok((steps, Some(not_run)));
            }
        }
    }
    Ok((steps, None))
}

/// One step, with its line of progress.
fn step(plan: &Plan) -> Result<Outcome, Fault> {
    let mut line = ProgressLine::new();
    let outcome = run_whole(plan, &mut |progress| line.tell(progress));
    line.end();
    outcome
}

fn read(file: &Path) -> Result<Workload, String> {
    let shown = file.display();
    let unreadable = |error: &io::Error| format!("error: cannot read `{shown}`: {error}\n");
    let size = std::fs::metadata(file).map_err(|error| unreadable(&error))?.len();
    if size > WORKLOAD_BYTES_MAX as u64 {
        return Err(format!("error: `{shown}` is too long: {WORKLOAD_BYTES_MAX} bytes are the most\n"));
    }
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(&error))?;
    parse(&text).map_err(|errors| draw(&errors, &shown.to_string(), &text, terminal::colour(&io::stderr())))
}

fn urls(options: &Options) -> String {
    let urls: Vec<String> = options.plan.targets.iter().map(|target| target.url.to_string()).collect();
    urls.join(", ")
}

/// Everything to where it is to go.
fn give(options: &Options, run: Run) -> ExitCode {
    let text = tabled(&run);
    let table = match options.what {
        What::Ladder { .. } => ladder_csv(&run),
        What::Orders { .. } => run.tables.iter().map(csv).collect(),
    };
    let troubles = options.tables.give(&table, &run.tables);
    let is_whole = run.outcome.as_ref().is_none_or(|all| all["not_run"].is_null());
    let status = u8::from(run.colour == Colour::Red || !is_whole);
    let what = match &options.what {
        What::Ladder { .. } => "Workload",
        What::Orders { .. } => "Orders",
    };
    let document = Document { title: format!("{what} on {}", urls(options)), runs: vec![run] };
    options.output.give_beside(troubles, &document, &text, status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_that_is_wrong_is_shown_where() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("w.wl");
        std::fs::write(&path, "DEFINE_CLASSES\nA: 90\nDEFINE_REQUESTS\nA:\nGET /a\n").expect("writable");
        let words = read(&path).expect_err("ten per cent are missing");
        assert!(words.contains("the percentages sum to 90") && words.contains("w.wl:2:1"), "{words}");
        assert!(read(Path::new("/nowhere/at/all")).expect_err("nothing").contains("cannot read"));
    }
}
