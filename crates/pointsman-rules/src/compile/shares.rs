//! `split(90: stable, 10: canary)`: several targets, each with its share.

use std::cmp::Reverse;

use crate::ast::{self, Name};
use crate::parser::shorten;
use crate::{Share, Span, TargetName};

use super::Compiler;
use super::targets::Idle;

/// How many targets one `split` may name: each request asks all of them.
const TARGETS_MAX: usize = 100;

/// Digits behind the point of a percentage: a part is a hundredth of a percent.
const DECIMALS_MAX: usize = 2;

impl Compiler<'_> {
    /// The shares of a `split` that are more than nothing, in their order.
    pub(super) fn split(&mut self, at: Span, written: &[ast::Share]) -> Option<Vec<Share>> {
        if written.len() > TARGETS_MAX {
            let message =
                format!("a split has at most {TARGETS_MAX} targets, and this one has {}", written.len());
            self.error(at, message, "split into pools, and let each pool share among its servers");
            return None;
        }
        let mut named: Vec<(u32, TargetName)> = Vec::with_capacity(written.len());
        let mut is_whole = true;
        for share in written {
            let (parts, target) = (self.parts(&share.percent), self.target_name(&share.target));
            let (Some(parts), Some(target)) = (parts, target) else {
                is_whole = false;
                continue;
            };
            if named.iter().any(|(_, known)| *known == target) {
                let message = format!("`{}` stands twice in this split", shorten(&share.target.text));
                self.error(share.target.span, message, "write it once, with both shares added up");
                is_whole = false;
            }
            named.push((parts, target));
        }
        if !is_whole {
            return None;
        }
        let total: u32 = named.iter().map(|(parts, _)| parts).sum();
        if total != Share::WHOLE {
            let shown = Share { target: crate::TargetId(0), parts: total }.percent().to_string();
            self.error(
                at,
                format!("the shares add up to {shown}, and not to 100"),
                "a share is a percentage",
            );
            return None;
        }
        for (_, target) in named.extract_if(.., |(parts, _)| *parts == 0) {
            self.targets.add_idle(target, Idle::NoShare);
        }
        // However it was written, the same split is equal to itself.
        named.sort_by(|(parts, target), (other_parts, other)| {
            (Reverse(parts), &target.pool, &target.server).cmp(&(
                Reverse(other_parts),
                &other.pool,
                &other.server,
            ))
        });
        Some(
            named
                .into_iter()
                .map(|(parts, target)| Share { target: self.targets.id(target), parts })
                .collect(),
        )
    }

    /// A percentage, in hundredths.
    fn parts(&mut self, written: &Name) -> Option<u32> {
        let parts = hundredths(&written.text).filter(|parts| *parts <= Share::WHOLE);
        if parts.is_none() {
            let message = format!("`{}` is no share", shorten(&written.text));
            self.error(written.span, message, "a share is a percentage from 0 to 100, as `10` or `0.25`");
        }
        parts
    }
}

/// A number with at most two digits behind its point, times a hundred.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(decimals) || decimals.len() > DECIMALS_MAX {
        return None;
    }
    let decimals = format!("{decimals:0<DECIMALS_MAX$}").parse::<u32>().ok()?;
    whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(decimals)
}

#[cfg(test)]
mod tests {
    use super::hundredths;

    #[test]
    fn percentages() {
        for (text, expected) in [
            ("90", Some(9000)),
            ("0", Some(0)),
            ("0.5", Some(50)),
            ("33.33", Some(3333)),
            ("100.00", Some(10_000)),
            ("0.005", None),
            ("-1", None),
            ("+1", None),
            ("1e1", None),
            ("5.", None),
            (".5", None),
            ("99999999999", None),
            ("42949672", Some(4_294_967_200)),
            ("42949673", None),
        ] {
            assert_eq!(hundredths(text), expected, "{text}");
        }
    }
}
