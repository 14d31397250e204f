//! What a comparison has found, as text for people and as JSON for programs.

use std::sync::Arc;

use pointsman_analysis::{Decider, Differences, Doubt, Holds, RuleSide, Setting, Spoilt, Undecided, Witness};
use pointsman_config::ChangedSetting;
use pointsman_rules::{Audience, Colour, Decision, Outcome, Program, Stickiness, Validate, spelling};
use serde_json::{Value, json};

use crate::check::printed::Printed;
use crate::check::terminal::{Style, cell};
use crate::check::{doubt, plural};

/// Not everything could be settled, and nothing that was differs.
const UNSETTLED: u8 = 3;

/// All listeners.
#[derive(Default)]
pub(crate) struct Report {
    pub(super) compared: Vec<Compared>,
    /// Listeners that stand on one side alone.
    pub(super) only_old: Vec<String>,
    pub(super) only_new: Vec<String>,
    /// What the configurations set otherwise.
    pub(super) settings: Vec<ChangedSetting>,
}

/// The rules of one listener, or two rule sets by themselves.
pub(crate) struct Compared {
    /// Empty where the rules stand alone.
    listener: String,
    groups: Vec<Group>,
    groups_count: usize,
    unknown: Vec<Open>,
    unknown_count: usize,
    validate: Option<(Validate, Validate)>,
    notes: Vec<&'static str>,
    is_equal: bool,
}

/// Requests that are decided otherwise.
struct Group {
    old: Way,
    new: Way,
    printed: Printed,
}

/// What was not settled.
struct Open {
    /// `R1 -> R2 (else)`
    rules: String,
    doubt: Doubt,
}

/// A rule, and what it does with the request that is shown.
struct Way {
    rule: String,
    action: String,
    /// What becomes of the request behind its decision.
    spoilt: Option<String>,
}

impl Compared {
    pub(crate) fn new(
        listener: String,
        [old, new]: [RuleSide<'_>; 2],
        setting: &Setting,
        found: Differences,
        reads_requests: bool,
        reads_otherwise: bool,
    ) -> Compared {
        let mut notes = Vec::new();
        if !reads_requests && !found.are_none() {
            notes.push("its rules are about connections: what they change is not looked for");
        }
        if reads_otherwise {
            notes.push("it reads requests otherwise than before; they are compared as it reads them now");
        }
        if found.reads_otherwise {
            notes.push(
                "by values in a body one of them refuses, and the other does not: of bodies without a media type that is read nothing is said",
            );
        }
        if found.checks_otherwise && found.decide_alike() {
            notes.push(
                "they need not look into the same bodies, or as far, or for the same members of JSON: one that is malformed, or where a member stands twice, may be refused by one of them alone",
            );
        }
        if found.hides_otherwise {
            notes.push(
                "not the same names of fields stand in them: a field with an odd name that reads like one of them may be taken away by one of them alone",
            );
        }
        let keeps_otherwise = setting.keeps_targets && kept_by(old.program) != kept_by(new.program);
        if keeps_otherwise {
            notes.push("clients that stay with a target are known by other things, or in another order: where they go is not compared");
        }
        if setting.keeps_targets && found.groups_count > 0 {
            notes.push("a client that stays with a target goes there instead of where a rule sends it: `sticky_scope` is `listener`");
        }
        let is_equal = found.are_none() && !reads_otherwise && !keeps_otherwise;
        let group = |difference: &pointsman_analysis::Difference| {
            let witness = &difference.witness;
            Group {
                old: Way::new(&old, difference.old, witness, setting),
                new: Way::new(&new, difference.new, witness, setting),
                printed: Printed::new(witness, setting),
            }
        };
        let unknown = |Undecided { old: then, new: now, doubt }: &Undecided| {
            let name = |program: &Program, decider: &Option<Decider>| match decider {
                Some(decider) => name(program, *decider),
                None => "any rule".to_owned(),
            };
            let rules = format!("{} -> {}", name(old.program, then), name(new.program, now));
            Open { rules, doubt: doubt.clone() }
        };
        Compared {
            listener,
            groups: found.groups.iter().map(group).collect(),
            groups_count: found.groups_count,
            unknown: found.undecided.iter().map(unknown).collect(),
            unknown_count: found.undecided_count,
            validate: found.validate,
            notes,
            is_equal,
        }
    }

    fn differs(&self) -> bool {
        self.groups_count > 0 || self.validate.is_some()
    }

    /// The first ways in which decisions differ, each in a line with the first line of its request.
    pub(crate) fn briefly(&self, ways_max: usize) -> impl Iterator<Item = String> {
        self.groups.iter().take(ways_max).map(|Group { old, new, printed }| {
            let Printed { request, options, .. } = printed;
            let request = request.lines().next().unwrap_or_default();
            let with = if options.is_empty() { String::new() } else { format!(" with {options}") };
            let ways = [old, new].map(|way| format!("{} -> {}", way.rule, way.action.trim_end_matches(';')));
            format!("  {} becomes {}, for instance {request}{with}", ways[0], ways[1])
        })
    }

    fn text(&self, text: &mut String, colour: Colour) {
        if !self.listener.is_empty() && !self.is_equal {
            text.push_str(&format!(
                "{}\n\n",
                cell(&format!("listener {}", self.listener), 0, Style::Bold, colour)
            ));
        }
        for Group { old, new, printed } in &self.groups {
            let arrow = |way: &Way| format!("{} -> {}", way.rule, way.action);
            text.push_str(&format!("{}\n", cell(&arrow(old), 0, Style::Red, colour)));
            text.push_str(&format!("  becomes {}\n", cell(&arrow(new), 0, Style::Green, colour)));
            let with = match printed.options.as_str() {
                "" => String::new(),
                options => format!(", with `{options}`"),
            };
            text.push_str(&format!("  for instance{with}:\n"));
            for line in printed.lines() {
                text.push_str(format!("    {line}").trim_end());
                text.push('\n');
            }
            if let Some(note) = printed.note() {
                text.push_str(&format!("  note: {note}\n"));
            }
            for (way, side) in [(old, "OLD"), (new, "NEW")] {
                if let Some(spoilt) = &way.spoilt {
                    text.push_str(&format!("  note: {side}: {spoilt}\n"));
                }
            }
            text.push('\n');
        }
        if let Some(more @ 1..) = self.groups_count.checked_sub(self.groups.len()) {
            text.push_str(&format!("and {} more\n\n", plural(more, "way")));
        }
        if let Some((old, new)) = self.validate {
            text.push_str(&format!("validate {} becomes validate {}\n\n", word(old), word(new)));
        }
        if self.unknown_count > 0 {
            let title = cell("unknown", 0, Style::Yellow, colour);
            text.push_str(&format!("{title}: whether these ever decide otherwise\n"));
            for Open { rules, doubt } in &self.unknown {
                text.push_str(&format!("  {rules}: {}\n", doubt::sentence(doubt)));
            }
            if let Some(more @ 1..) = self.unknown_count.checked_sub(self.unknown.len()) {
                text.push_str(&format!("  and {more} more\n"));
            }
            text.push('\n');
        }
        for note in &self.notes {
            let place = match self.listener.as_str() {
                "" => String::new(),
                listener => format!("of the listener `{listener}`: "),
            };
            text.push_str(&format!("note: {place}{note}\n"));
        }
    }

    fn to_json(&self) -> Value {
        let groups: Vec<_> = self.groups.iter().map(Group::to_json).collect();
        let open = |Open { rules, doubt }: &Open| json!({ "rules": rules, "reason": doubt::to_json(doubt) });
        let unknown: Vec<_> = self.unknown.iter().map(open).collect();
        let mut object = json!({
            "equal": self.is_equal,
            "ways_count": self.groups_count,
            "ways": groups,
            "unknown_count": self.unknown_count,
            "unknown": unknown,
            "notes": self.notes,
        });
        if !self.listener.is_empty() {
            object["listener"] = json!(self.listener);
        }
        if let Some((old, new)) = self.validate {
            object["validate"] = json!({ "old": word(old), "new": word(new) });
        }
        object
    }
}

impl Report {
    fn differs(&self) -> bool {
        let is_alone = !self.only_old.is_empty() || !self.only_new.is_empty();
        is_alone || !self.settings.is_empty() || self.compared.iter().any(Compared::differs)
    }

    fn is_equal(&self) -> bool {
        !self.differs() && self.compared.iter().all(|compared| compared.is_equal)
    }

    /// What came of it, in a word.
    pub(crate) fn verdict(&self) -> &'static str {
        match self.status() {
            0 => "equal",
            1 => "different",
            _ => "not settled",
        }
    }

    /// A difference weighs more than what is not settled.
    pub(super) fn status(&self) -> u8 {
        match self.differs() {
            true => 1,
            false if self.is_equal() => 0,
            false => UNSETTLED,
        }
    }

    pub(crate) fn text(&self, colour: Colour) -> String {
        let mut text = String::new();
        for compared in &self.compared {
            compared.text(&mut text, colour);
        }
        for (names, side) in [(&self.only_old, "OLD"), (&self.only_new, "NEW")] {
            for name in names {
                text.push_str(&format!("the listener `{name}` is only in {side}\n"));
            }
        }
        if !self.settings.is_empty() {
            text.push_str(&format!("{}\n", cell("settings that differ", 0, Style::Bold, colour)));
        }
        for changed in &self.settings {
            text.push_str(&format!("  {}: {changed}\n", changed.owner));
        }
        text
    }

    pub(super) fn json(&self) -> String {
        format!("{:#}\n", self.to_json())
    }

    pub(crate) fn to_json(&self) -> Value {
        let compared: Vec<_> = self.compared.iter().map(Compared::to_json).collect();
        json!({
            "version": 1,
            "equal": self.is_equal(),
            "compared": compared,
            "only_old": self.only_old,
            "only_new": self.only_new,
            "settings": self.settings.iter().map(setting_to_json).collect::<Vec<_>>(),
        })
    }

    /// `different: 2 ways, 1 setting, 1 unknown`
    pub(crate) fn summary(&self) -> String {
        let groups: usize = self.compared.iter().map(|compared| compared.groups_count).sum();
        let unknown: usize = self.compared.iter().map(|compared| compared.unknown_count).sum();
        let verdict = match self.verdict() {
            "equal" => return "equal: every request is decided alike".to_owned(),
            verdict => verdict,
        };
        let settings = self.settings.len();
        let validates = self.compared.iter().filter(|compared| compared.validate.is_some()).count();
        if groups + unknown + settings + validates == 0 {
            return format!("{verdict}: no way was found, and the notes say what may differ all the same");
        }
        let counts = [
            (groups > 0 || validates + settings == 0).then(|| plural(groups, "way")),
            (settings > 0).then(|| plural(settings, "setting")),
            (validates > 0).then(|| "bodies validated otherwise".to_owned()),
            (unknown > 0).then(|| format!("{unknown} unknown")),
        ];
        format!("{verdict}: {}", counts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// `of` and `name` say whose it is.
fn setting_to_json(changed: &ChangedSetting) -> Value {
    let ChangedSetting { owner, key, old, new } = changed;
    let (of, name) = owner.words();
    json!({ "of": of, "name": name, "key": key, "old": old, "new": new })
}

impl Group {
    fn to_json(&self) -> Value {
        let way = |way: &Way| {
            let mut object = json!({ "rule": way.rule, "action": way.action });
            if let Some(spoilt) = &way.spoilt {
                object["note"] = json!(spoilt);
            }
            object
        };
        json!({ "old": way(&self.old), "new": way(&self.new), "witness": self.printed.to_json() })
    }
}

impl Way {
    /// What the rules do with a request, as the production engine says.
    fn new(side: &RuleSide<'_>, decider: Decider, witness: &Witness, setting: &Setting) -> Way {
        let program: &Arc<Program> = side.program;
        let changes_protocol = witness.changes_protocol(setting);
        let action = witness.decided(program, setting, |decision| {
            let audience = decision.outcome.audience();
            let audience = if changes_protocol { audience.of_change() } else { audience };
            action(program, decision, audience, side.default_pool)
        });
        let rule = name(program, decider);
        match witness.spoilt(program, setting) {
            Some(refused @ Spoilt::Refused(_)) => Way { rule, action: refused.to_string(), spoilt: None },
            spoilt => {
                let spoilt = spoilt.map(|spoilt| spoilt.to_string());
                Way { rule, action: action.unwrap_or_default(), spoilt }
            }
        }
    }
}

/// `R1`, or `R1 (else)`, or `R1 (unknown)`.
fn name(program: &Program, decider: Decider) -> String {
    let Some(rule) = program.rule(decider.rule) else { return "(default)".to_owned() };
    match decider.holds {
        Holds::True => rule.label.to_string(),
        Holds::False => format!("{} (else)", rule.label),
        Holds::Unknown => format!("{} (unknown)", rule.label),
    }
}

/// All that is done and comes to something, as rules spell it.
fn action(
    program: &Program,
    decision: &Decision<'_>,
    audience: Audience,
    default_pool: Option<&str>,
) -> String {
    let end = match decision.outcome {
        Outcome::Terminal(terminal) => spelling::terminal(program, terminal),
        Outcome::RouteUnknown { target, cause } => {
            let target = program.targets.get(target.0 as usize).map(ToString::to_string);
            format!("on_unknown routeTo({}): {cause}", target.unwrap_or_default())
        }
        Outcome::Refused(cause) => format!("on_unknown reject, {}: {cause}", cause.status()),
        Outcome::DefaultPool => {
            default_pool.map_or("the default pool".to_owned(), |pool| format!("the default pool {pool}"))
        }
        Outcome::Waits => "nothing yet".to_owned(),
    };
    let noticed = decision.noticed(audience).filter(|(_, idle)| idle.is_none());
    noticed.map(|(effect, _)| format!("{} ", spelling::effect(effect))).collect::<String>() + &end
}

/// What clients stay with targets by, in the order in which they are looked for.
fn kept_by(program: &Program) -> Vec<&Stickiness> {
    let mut kept: Vec<&Stickiness> = Vec::new();
    for sticky in program.stickinesses().filter(|sticky| **sticky != Stickiness::None) {
        if !kept.contains(&sticky) {
            kept.push(sticky);
        }
    }
    kept
}

fn word(validate: Validate) -> &'static str {
    match validate {
        Validate::Stream => "stream",
        Validate::Full => "full",
    }
}
