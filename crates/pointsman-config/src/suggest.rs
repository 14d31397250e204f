//! "Did you mean …?": what somebody who misspelled a name may have wanted.

/// ``did you mean `x`?``, or else what is there to choose from.
pub(crate) fn did_you_mean(written: &str, candidates: &[&str], plural: &str) -> String {
    match suggestion(written, candidates) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => choices(candidates, plural),
    }
}

/// The candidate that is spelled most like `written`, if any is close.
fn suggestion<'c>(written: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // Nobody misspells a name this long, and the distance costs the product of both lengths.
    const LENGTH_MAX: usize = 64;
    if written.len() > LENGTH_MAX {
        return None;
    }
    let folded = written.to_lowercase().replace('-', "_");
    let near = written.chars().count().div_ceil(3);
    candidates
        .iter()
        .copied()
        .filter(|candidate| candidate.len() <= LENGTH_MAX)
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &candidate.replace('-', "_")), candidate))
        .filter(|(distance, _)| *distance <= near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// ``the keys are `a`, `b` and `c` ``.
fn choices(candidates: &[&str], plural: &str) -> String {
    const SHOWN_MAX: usize = 20;
    let quoted: Vec<String> = candidates.iter().map(|candidate| format!("`{candidate}`")).collect();
    match quoted.as_slice() {
        [] => format!("there are no {plural}"),
        [only] => format!("there is only {only}"),
        all if all.len() > SHOWN_MAX => {
            format!("the {plural} are {} and {} more", all[..SHOWN_MAX].join(", "), all.len() - SHOWN_MAX)
        }
        [rest @ .., last] => format!("the {plural} are {} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_close_or_absent() {
        let keys = ["head_ms_max", "head_bytes_max", "idle_ms_max"];
        assert_eq!(suggestion("head_ms_mx", &keys), Some("head_ms_max"));
        assert_eq!(suggestion("head-ms-max", &keys), Some("head_ms_max"));
        assert_eq!(suggestion("Head_Bytes_Max", &keys), Some("head_bytes_max"));
        assert_eq!(suggestion("colour", &keys), None);
        assert_eq!(suggestion("", &keys), None);
    }

    #[test]
    fn choices_are_listed_as_in_a_sentence() {
        assert_eq!(did_you_mean("zzz", &[], "pools"), "there are no pools");
        assert_eq!(did_you_mean("zzz", &["fast"], "pools"), "there is only `fast`");
        assert_eq!(
            did_you_mean("zzz", &["fast", "slow", "lame"], "pools"),
            "the pools are `fast`, `slow` and `lame`"
        );
    }
}
