//! A search as a report shows it.

use std::collections::BTreeMap;

use pointsman_measure::chart::{Axis, Chart, Line};
use pointsman_measure::report::{Figure, Run};
use pointsman_measure::search::{CurvePoint, Findings, Goal, Limit, Phase, Rate};
use pointsman_measure::statistics::Interval;
use pointsman_measure::table::{Cell, Table};
use serde_json::{Value, json};

use super::{Counted, Ending, Found, Tried};
use crate::interrupt::mark_interrupted;
use crate::json::{interval, negotiated};
use crate::provenance::provenance;
use crate::report::{AGREED, agreed, band, chart};

impl Counted {
    /// What is counted, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Counted::Requests => "requests",
            Counted::Handshakes => "handshakes",
        }
    }
}

impl Found {
    /// The run as a report shows it, under this name.
    pub fn report(&self, name: &str) -> Run {
        let mut run = provenance(name, &self.machine);
        run.settings = self.settings();
        run.colour = self.colour();
        run.reasons = self.reasons();
        run.answer = self.answer();
        run.outcome = Some(self.json());
        mark_interrupted(&mut run, self.how_far().as_deref());
        let Some(findings) = self.findings() else {
            run.tables = vec![self.trials_table()];
            run.tables.extend(self.agreed());
            return run;
        };
        run.figures = self.figures(findings);
        run.charts = vec![self.achieved(findings), self.latency(findings)];
        run.tables = vec![self.curve_table(findings), self.trials_table()];
        run.tables.extend(self.agreed());
        run
    }

    /// How far it was when it was interrupted, if it was.
    fn how_far(&self) -> Option<String> {
        self.was_interrupted
            .then(|| format!("what is known is of {} trials that had ended by then", self.trials.len()))
    }

    /// What handshakes of all trials agreed on, if there were any.
    fn agreed(&self) -> Option<Table> {
        Some(agreed(AGREED, &self.negotiated)).filter(|table| !table.rows.is_empty())
    }

    /// What was found, in a sentence or two.
    pub fn answer(&self) -> String {
        let Some(findings) = self.findings() else { return "Nothing was found.".to_owned() };
        let what = self.counted.name();
        let of = |rate: &Rate| {
            let at_least = if rate.limit == Limit::Server { "" } else { "at least " };
            format!("{at_least}{} {what} a second{}", said(&rate.answered_per_s), end(rate.limit))
        };
        let peak = findings.peak.as_ref().map(|peak| format!("At the most {} are answered. ", of(peak)));
        let knee = findings.knee.as_ref().map(|(_, interval)| {
            format!(" Latency rises out of proportion from {} a second on.", said(interval))
        });
        let goal = &self.asked.goal;
        format!(
            "{}Within the goal (99th percentile up to {} ms) {} are sustained.{}",
            peak.unwrap_or_default(),
            goal.p99_us_max as f64 / 1e3,
            of(&findings.sustained),
            knee.unwrap_or_default(),
        )
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let Goal { p99_us_max, errors_share_max, achieved_share_min, warm_up_ms, coarse_ms, fine_ms, .. } =
            self.asked.goal;
        let mut settings = self.asked.plan.settings();
        // Of trials: the plan's own are those of no trial.
        settings.retain(|name, _| !name.starts_with("load.") && name != "time_s" && name != "warm_up_s");
        let of_search = [
            ("goal.p99_ms_max", p99_us_max as f64 / 1e3),
            ("goal.failed_percent_max", errors_share_max * 100.0),
            ("goal.answered_percent_min", achieved_share_min * 100.0),
            ("goal.rate_min", self.asked.goal.rate_min),
            ("goal.rate_max", self.asked.goal.rate_max),
            ("goal.width_percent", self.asked.goal.width * 100.0),
            ("trial.warm_up_s", warm_up_ms as f64 / 1e3),
            ("trial.coarse_s", coarse_ms as f64 / 1e3),
            ("trial.fine_s", fine_ms as f64 / 1e3),
        ];
        settings.extend(of_search.map(|(name, value)| (name.to_owned(), value.to_string())));
        settings.insert("load.loop".to_owned(), "open".to_owned());
        settings.insert("load.arrivals".to_owned(), self.asked.arrivals.name().to_owned());
        settings
    }

    fn figures(&self, findings: &Findings) -> Vec<Figure> {
        let unit = format!("{}/s", self.counted.name());
        let rate = |name: &str, interval: &Interval| Figure {
            name: name.to_owned(),
            unit: unit.clone(),
            value: Some(interval.estimate),
            interval: Some((interval.low, interval.high)),
        };
        let plain = |name: &str, unit: &str, value: Option<f64>| Figure {
            name: name.to_owned(),
            unit: unit.to_owned(),
            value,
            interval: None,
        };
        let missing = |name: &str| Figure { name: name.to_owned(), unit: unit.clone(), ..Figure::default() };
        let peak = findings.peak.as_ref().map(|peak| rate("peak", &peak.answered_per_s));
        let knee = findings.knee.as_ref().map(|(_, interval)| rate("knee", interval));
        let mut figures = vec![
            rate("sustained", &findings.sustained.answered_per_s),
            knee.unwrap_or_else(|| missing("knee")),
            peak.unwrap_or_else(|| missing("peak")),
        ];
        if let Some(us) = self.server_us_at_peak() {
            figures.push(plain("server's CPU at the peak", &format!("µs/{}", self.counted.one()), Some(us)));
        }
        figures.push(plain("hysteresis", "%", findings.hysteresis_share.map(|share| share * 100.0)));
        if let Some(ceiling) = &self.asked.ceiling {
            figures.push(plain("generator before null servers", "requests/s", Some(ceiling.per_s)));
        }
        figures
    }

    /// The mean over the trials at the peak.
    fn server_us_at_peak(&self) -> Option<f64> {
        let at_peak = self.trials.iter().filter(|tried| tried.judged.trial.phase == Phase::Peak);
        let costs: Vec<f64> =
            at_peak.filter(|tried| tried.judged.counts()).filter_map(|tried| tried.server_us).collect();
        (!costs.is_empty()).then(|| costs.iter().sum::<f64>() / costs.len() as f64)
    }

    fn achieved(&self, findings: &Findings) -> Chart {
        let curve = by_offered(&findings.curve);
        let points = |of: fn(&CurvePoint) -> f64| -> Vec<(f64, f64)> {
            curve.iter().map(|point| (point.offered_per_s, of(point))).collect()
        };
        // A load of a single trial has no interval.
        let band = band(curve.iter().map(|point| (point.offered_per_s, point.achieved_per_s.bounds)));
        let all = points(|point| point.offered_per_s);
        let ends = all.iter().take(1).chain(all.last()).copied().collect();
        let lines = vec![
            Line {
                name: "answered".to_owned(),
                points: points(|point| point.achieved_per_s.value),
                band,
                ..Line::default()
            },
            Line { name: "all that is demanded".to_owned(), points: ends, ..Line::default() },
            self.red_trials(),
        ];
        let what = self.counted.name();
        chart(
            "achieved",
            "Demanded against answered",
            Axis::from_zero(format!("demanded, {what}/s")),
            Axis::from_zero(format!("answered, {what}/s")),
            lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
        )
    }

    /// What was seen and is no result.
    fn red_trials(&self) -> Line {
        let red = self.trials.iter().filter(|tried| !tried.judged.counts()).map(|tried| tried.judged.seen);
        let mut points: Vec<(f64, f64)> = red.map(|seen| (seen.offered_per_s, seen.achieved_per_s)).collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        Line { name: "red: no result".to_owned(), points, is_scattered: true, ..Line::default() }
    }

    fn latency(&self, findings: &Findings) -> Chart {
        let curve = by_offered(&findings.curve);
        let line = |name: &str, of: fn(&CurvePoint) -> u64| Line {
            name: name.to_owned(),
            points: curve.iter().map(|point| (point.offered_per_s, of(point) as f64 / 1e3)).collect(),
            ..Line::default()
        };
        chart(
            "latency-by-load",
            "Response time by load",
            Axis::from_zero(format!("demanded, {}/s", self.counted.name())),
            Axis::logarithmic("response time, ms"),
            vec![
                line("median", |point| point.p50_us),
                line("90th percentile", |point| point.p90_us),
                line("99th percentile", |point| point.p99_us),
            ],
        )
    }

    /// The curve as rows, in ascending order of load.
    pub fn curve_table(&self, findings: &Findings) -> Table {
        let columns = [
            "demanded/s",
            "answered/s",
            "from",
            "to",
            "p50, ms",
            "p90, ms",
            "p99, ms",
            "failed, %",
            "trials",
        ];
        let rows = findings.curve.iter().map(|point| {
            let answered = point.achieved_per_s;
            let cells = [
                Some(point.offered_per_s),
                Some(answered.value),
                answered.bounds.map(|(low, _)| low),
                answered.bounds.map(|(_, high)| high),
                Some(point.p50_us as f64 / 1e3),
                Some(point.p90_us as f64 / 1e3),
                Some(point.p99_us as f64 / 1e3),
                Some(point.errors_share * 100.0),
                Some(f64::from(point.trials)),
            ];
            cells.map(|value| value.map_or(Cell::Empty, |value| Cell::Number(short(value)))).to_vec()
        });
        Table {
            title: "Demanded against answered".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }

    fn trials_table(&self) -> Table {
        let columns = [
            "trial",
            "phase",
            "demanded/s",
            "answered/s",
            "p99, ms",
            "failed, %",
            "client",
            "goal",
            "server's CPU, µs",
        ];
        Table {
            title: "All trials in their order".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: self.trials.iter().map(row).collect(),
        }
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let trials: Vec<Value> = self.trials.iter().map(trial).collect();
        let (ending, findings) = match &self.ending {
            Ending::Found(findings) => ("found", found(findings)),
            Ending::None(why) => ("none", json!({"why": self.why_none(why)})),
            Ending::Void { rate_per_s, voids } => {
                let words: Vec<&str> = voids.iter().map(|void| void.sentence.as_str()).collect();
                ("void", json!({"rate": rate_per_s, "why": words}))
            }
        };
        json!({
            "version": 1, "kind": "find", "counted": self.counted.name(), "ending": ending, "result": findings,
            "seconds": self.seconds, "waited_seconds": self.waited_seconds, "cut_short": self.cut.is_some(), "cut_by": self.cut.as_ref().map(|cut| cut.by.name()), "ceiling_per_second": self.asked.ceiling.as_ref().map(|ceiling| ceiling.per_s),
            "addresses": self.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "negotiated": negotiated(&self.negotiated), "trials": trials,
        })
    }
}

impl Counted {
    fn one(self) -> &'static str {
        match self {
            Counted::Requests => "request",
            Counted::Handshakes => "handshake",
        }
    }
}

/// In ascending order of what was offered, as lines go: a load that was asked for may have been offered a little less than
/// the one below it.
fn by_offered(curve: &[CurvePoint]) -> Vec<&CurvePoint> {
    let mut sorted: Vec<&CurvePoint> = curve.iter().collect();
    sorted.sort_by(|left, right| left.offered_per_s.total_cmp(&right.offered_per_s));
    sorted
}

/// A figure and where it lies.
fn said(interval: &Interval) -> String {
    let digits = usize::from(interval.estimate < 100.0);
    let Interval { estimate, low, high } = interval;
    format!("{estimate:.digits$} ({low:.digits$} to {high:.digits$})")
}

fn end(limit: Limit) -> &'static str {
    match limit {
        Limit::Server => "",
        Limit::Client => ", for above that the generator was not in control,",
        Limit::RateMax => ", for more was not tried,",
    }
}

/// As many digits as tell something.
fn short(value: f64) -> f64 {
    if value.abs() >= 1_000.0 { value.round() } else { (value * 100.0).round() / 100.0 }
}

fn row(tried: &Tried) -> Vec<Cell> {
    let (trial, seen) = (&tried.judged.trial, &tried.judged.seen);
    let number = |value: f64| Cell::Number(short(value));
    let goal = match tried.judged.shortfall {
        _ if !tried.voids.is_empty() => "void".to_owned(),
        None => "met".to_owned(),
        Some(shortfall) => format!("missed: {shortfall:?}").to_lowercase(),
    };
    vec![
        number(f64::from(trial.number) + 1.0),
        trial.phase.to_string().as_str().into(),
        number(seen.offered_per_s),
        number(seen.achieved_per_s),
        number(seen.p99_us as f64 / 1e3),
        number(seen.errors_share * 100.0),
        tried.verdict.colour.to_string().as_str().into(),
        goal.as_str().into(),
        tried.server_us.map_or(Cell::Empty, number),
    ]
}

fn trial(tried: &Tried) -> Value {
    let (trial, seen) = (&tried.judged.trial, &tried.judged.seen);
    let reasons: Vec<&str> = tried.verdict.reasons.iter().map(|reason| reason.text.as_str()).collect();
    json!({
        "number": trial.number, "phase": trial.phase.to_string(), "rate": trial.rate_per_s,
        "seconds": trial.measured_ms as f64 / 1e3, "seed": trial.seed,
        "offered": seen.offered_per_s, "achieved": seen.achieved_per_s, "failed_share": seen.errors_share,
        "p50_us": seen.p50_us, "p90_us": seen.p90_us, "p99_us": seen.p99_us,
        "colour": tried.verdict.colour.to_string(), "reasons": reasons,
        "shortfall": tried.judged.shortfall.map(|shortfall| format!("{shortfall:?}").to_lowercase()),
        "server_us": tried.server_us,
        "voids": tried.voids.iter().map(|void| void.sentence.as_str()).collect::<Vec<_>>(),
    })
}

fn found(findings: &Findings) -> Value {
    let rate = |rate: &Rate| {
        json!({
            "answered": interval(&rate.answered_per_s), "demanded": rate.demanded_per_s,
            "limit": match rate.limit {
                Limit::Server => "server",
                Limit::Client => "client",
                Limit::RateMax => "rate_max",
            },
        })
    };
    json!({
        "sustained": rate(&findings.sustained),
        "knee": findings.knee.as_ref().map(|(_, knee)| interval(knee)),
        "peak": findings.peak.as_ref().map(rate),
        "hysteresis_share": findings.hysteresis_share,
    })
}

#[cfg(test)]
mod tests {
    use pointsman_measure::search::{NoResult, Record as Judged, Seen, Trial};
    use pointsman_measure::statistics::Estimate;
    use pointsman_measure::verdict::{Colour, SelfMeasures, verdict};

    use super::super::{Cut, CutBy, Find};
    use super::*;
    use crate::{Load, Machine, Plan};

    fn ended(ending: Ending, cut: Option<Cut>) -> Found {
        let plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
        let (arrivals, goal) = (crate::Arrivals::Poisson, Goal::default());
        Found {
            asked: Find { plan, arrivals, goal, within: None, ceiling: None },
            counted: Counted::Requests,
            ending,
            trials: Vec::new(),
            negotiated: Vec::new(),
            addresses: Vec::new(),
            machine: Machine::look(),
            began_unix_s: 0,
            seconds: 1.0,
            waited_seconds: 0.0,
            cut,
            was_interrupted: false,
        }
    }

    #[test]
    fn a_search_that_was_cut_short_says_so_whatever_it_found() {
        let of_time = |missing: &[Phase]| Some(Cut { by: CutBy::Time, missing: missing.to_vec() });
        let none = ended(Ending::None(NoResult::OutOfTrials), of_time(&[Phase::Ramp])).report("it");
        assert_eq!(
            (none.colour, &*none.reasons),
            (Colour::Red, &["the time was up before a boundary was found".to_owned()][..])
        );
        let json = none.outcome.expect("all");
        assert_eq!((&json["result"]["why"], &json["cut_short"]), (&json!(none.reasons[0]), &json!(true)));
        let used_up = ended(Ending::None(NoResult::OutOfTrials), None).report("it");
        assert!(used_up.reasons[0].starts_with("the trials were used up"), "{:?}", used_up.reasons);
        let sustained = Rate {
            answered_per_s: Interval { estimate: 100.0, low: 99.0, high: 101.0 },
            demanded_per_s: 100.0,
            limit: Limit::Server,
        };
        let findings =
            Findings { sustained, knee: None, peak: None, curve: Vec::new(), hysteresis_share: None };
        let found = |cut| {
            let mut found = ended(Ending::Found(Box::new(findings.clone())), cut);
            found.trials = vec![tried()];
            found.report("it")
        };
        let whole = found(None);
        assert_eq!((whole.colour, whole.reasons.len()), (Colour::Green, 0));
        let used_up = found(Some(Cut { by: CutBy::Trials, missing: vec![Phase::Peak] }));
        let expected =
            "the trials were used up before the search was at its end: no more trials of peak were run";
        assert_eq!((used_up.colour, &*used_up.reasons), (Colour::Amber, &[expected.to_owned()][..]));
        let cut = found(of_time(&[Phase::Sweep, Phase::Zoom, Phase::Peak]));
        assert_eq!(
            (cut.colour, &*cut.reasons),
            (
                Colour::Amber,
                &["the time was up before the search was at its end: no more trials of sweep, zoom, peak were run"
                    .to_owned()][..]
            )
        );
        // What was not looked for is not nothing.
        let hysteresis = cut.figures.iter().find(|figure| figure.name == "hysteresis").expect("a figure");
        assert_eq!(hysteresis.value, None);
        let json = cut.outcome.expect("all");
        assert_eq!((&json["result"]["hysteresis_share"], &json["cut_short"]), (&Value::Null, &json!(true)));
        assert_eq!(json["cut_by"], "time");
    }

    #[test]
    fn where_the_time_is_up_there_are_no_trials_either() {
        let (none, some) = (&[][..], &[Phase::Zoom, Phase::Peak][..]);
        let cut = |by, missing: &[Phase]| Some(Cut { by, missing: missing.to_vec() });
        assert_eq!(Cut::of(false, none), None);
        assert_eq!(Cut::of(false, some), cut(CutBy::Trials, some));
        assert_eq!(Cut::of(true, some), cut(CutBy::Time, some));
        assert_eq!(Cut::of(true, &[Phase::Ramp]), cut(CutBy::Time, &[Phase::Ramp]));
    }

    /// A trial that counts.
    fn tried() -> Tried {
        let trial = Trial {
            number: 0,
            phase: Phase::Ramp,
            rate_per_s: 100.0,
            warm_up_ms: 0,
            measured_ms: 1_000,
            seed: 1,
        };
        let seen = Seen {
            offered_per_s: 100.0,
            achieved_per_s: 100.0,
            edge_per_s: 0.0,
            errors_share: 0.0,
            p50_us: 1,
            p90_us: 1,
            p99_us: 1,
            control: Colour::Green,
            is_disturbed: false,
        };
        let judged = Judged { trial, seen, shortfall: None };
        let verdict = verdict(&SelfMeasures::default());
        Tried { judged, verdict, server_us: None, voids: Vec::new() }
    }

    #[test]
    fn lines_go_on_by_what_was_offered() {
        let point = |rate_per_s: f64, offered_per_s: f64| CurvePoint {
            rate_per_s,
            trials: 1,
            offered_per_s,
            achieved_per_s: Estimate::plain(offered_per_s),
            errors_share: 0.0,
            p50_us: 1,
            p90_us: 1,
            p99_us: 1,
        };
        let curve = [point(100.0, 100.4), point(100.5, 100.1), point(90.0, 90.0)];
        let offered: Vec<f64> = by_offered(&curve).iter().map(|point| point.offered_per_s).collect();
        assert_eq!(offered, [90.0, 100.1, 100.4]);
    }
}
