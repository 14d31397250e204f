//! Who accepts on which of the sockets that share an address: each thread on one at least, and nobody changes its own
//! without need.

/// The new owner of each socket, of which `team` is to have some; there are no fewer sockets than threads, and a socket
/// that is open is never closed for it: what waits to be accepted waits at that one.
///
/// The kernel shares connections out over sockets alike, so each thread has as many as any other, or one more.
pub(super) fn owners(now: &[Option<usize>], team: &[usize]) -> Vec<usize> {
    let (each, over) = (now.len() / team.len(), now.len() % team.len());
    let mut counts = vec![0; team.len()];
    let mut over_left = over;
    let mut may_have = |at: usize, counts: &mut Vec<usize>| {
        let is_over = counts[at] == each && over_left > 0;
        over_left -= usize::from(is_over);
        let may = counts[at] < each || is_over;
        counts[at] += usize::from(may);
        may
    };
    let kept: Vec<Option<usize>> = now
        .iter()
        .map(|owner| {
            let at = team.iter().position(|thread| Some(*thread) == *owner)?;
            may_have(at, &mut counts).then_some(at)
        })
        .collect();
    let mut given = |kept: Option<usize>| {
        // Those that have none come first.
        let poorest = || (0..team.len()).min_by_key(|&at| counts[at]).unwrap_or_default();
        let at = kept.unwrap_or_else(poorest);
        counts[at] += usize::from(kept.is_none());
        team[at]
    };
    kept.into_iter().map(&mut given).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(now: &[Option<usize>], team: &[usize], expected: &[usize]) {
        assert_eq!(owners(now, team), expected, "{now:?} {team:?}");
    }

    #[test]
    fn threads_that_stay_keep_theirs() {
        let four = [0, 1, 2, 3].map(Some);
        check(&four, &[0, 1, 2, 3], &[0, 1, 2, 3]);
        check(&four, &[0, 1], &[0, 1, 0, 1]);
        check(&[Some(0), Some(1), Some(0), Some(1)], &[0, 1, 4, 5], &[0, 1, 4, 5]);
        check(&four, &[0, 1, 2], &[0, 1, 2, 0]);
        check(&[Some(0), Some(1), None, None], &[0, 1, 2, 3], &[0, 1, 2, 3]);
        check(&[None; 3], &[7], &[7, 7, 7]);
        check(&[Some(1), None], &[1, 2], &[1, 2]);
    }

    /// From any number of threads to any other, again and again.
    #[test]
    fn nobody_has_none_and_nobody_two_more_than_another() {
        let mut now = vec![None; 8];
        for step in 0..200_usize {
            let first = step * 7 % 5;
            let team: Vec<_> = (first..=first + step * 13 % 8).collect();
            let new = owners(&now, &team);
            let counts = team.iter().map(|thread| new.iter().filter(|owner| *owner == thread).count());
            let counts: Vec<_> = counts.collect();
            let (least, most) = (counts.iter().min().copied(), counts.iter().max().copied());
            assert!(least > Some(0) && most <= least.map(|least| least + 1), "{counts:?}");
            assert_eq!(counts.iter().sum::<usize>(), now.len());
            now = new.into_iter().map(Some).collect();
        }
    }
}
