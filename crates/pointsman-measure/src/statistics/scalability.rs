//! The universal scalability law: how throughput grows, and falls again, with concurrency.

/// C(N) = γ N / (1 + α (N − 1) + β N (N − 1)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalability {
    /// γ: throughput of one client.
    pub unit: f64,
    /// α, from 0: contention, the share of the work that has to queue.
    pub contention: f64,
    /// β, from 0: crosstalk, what each pair costs to agree.
    pub crosstalk: f64,
    /// The share of the variance that the law explains, at most 1.
    pub r_squared: f64,
}

impl Scalability {
    /// The throughput that the law has for `clients`.
    pub fn throughput(&self, clients: f64) -> f64 {
        self.unit * clients
            / (1.0 + self.contention * (clients - 1.0) + self.crosstalk * clients * (clients - 1.0))
    }

    /// N*: how many clients have the greatest throughput, sqrt((1 − α) / β). None where it grows without end.
    pub fn clients_at_peak(&self) -> Option<f64> {
        (self.crosstalk > 0.0 && self.contention < 1.0)
            .then(|| ((1.0 - self.contention) / self.crosstalk).sqrt())
    }
}

const STEPS_MAX: usize = 200;

/// Least squares of the law (Gunther: Guerrilla capacity planning, 2007, chapter 5; three parameters as in arXiv
/// 0808.1431) over pairs of clients and throughput: first the linear form N / C(N), then Levenberg-Marquardt on C(N)
/// itself, with α and β kept from falling below 0.
///
/// None of fewer than three different numbers of clients, and of throughputs that are not above 0.
pub fn scalability(points: &[(f64, f64)]) -> Option<Scalability> {
    let sound = points.iter().all(|(n, c)| *n >= 1.0 && *c > 0.0 && n.is_finite() && c.is_finite());
    let mut clients: Vec<f64> = points.iter().map(|point| point.0).collect();
    clients.sort_unstable_by(f64::total_cmp);
    clients.dedup();
    if !sound || clients.len() < 3 {
        return None;
    }
    let mut law = linear(points)?;
    let mut damping = 1e-3;
    let mut far = squares(&law, points);
    for _ in 0..STEPS_MAX {
        let Some(next) = step(&law, points, damping) else { break };
        let farther = squares(&next, points);
        if farther < far {
            let gained = far - farther;
            (law, far, damping) = (next, farther, damping / 4.0);
            if gained <= far * 1e-12 {
                break;
            }
        } else if damping > 1e12 {
            break;
        } else {
            damping *= 4.0;
        }
    }
    let throughputs: Vec<f64> = points.iter().map(|point| point.1).collect();
    let whole = super::variance(&throughputs) * (throughputs.len() - 1) as f64;
    let r_squared = if whole == 0.0 { 1.0 } else { 1.0 - far / whole };
    Some(Scalability { r_squared, ..law })
}

/// N / C = 1/γ + (α/γ) (N − 1) + (β/γ) N (N − 1), weighted so that errors of C count alike.
fn linear(points: &[(f64, f64)]) -> Option<Scalability> {
    let rows = points.iter().map(|(n, c)| ([1.0, n - 1.0, n * (n - 1.0)], n / c, (c * c / n).powi(2)));
    let [inverse, of_contention, of_crosstalk] = normal_equations(rows, 0.0)?;
    let inverse =
        if inverse > 0.0 { inverse } else { points.iter().map(|(n, c)| n / c).fold(f64::INFINITY, f64::min) };
    let (contention, crosstalk) = ((of_contention / inverse).max(0.0), (of_crosstalk / inverse).max(0.0));
    Some(Scalability { unit: 1.0 / inverse, contention, crosstalk, r_squared: 0.0 })
}

/// One step of Levenberg-Marquardt in the logarithm of γ and in α and β.
fn step(law: &Scalability, points: &[(f64, f64)], damping: f64) -> Option<Scalability> {
    let rows = points.iter().map(|(n, c)| {
        let fitted = law.throughput(*n);
        let by_contention = -fitted * fitted * (n - 1.0) / (law.unit * n);
        ([fitted, by_contention, by_contention * n], c - fitted, 1.0)
    });
    let [unit, contention, crosstalk] = normal_equations(rows, damping)?;
    Some(Scalability {
        unit: law.unit * unit.clamp(-1.0, 1.0).exp(),
        contention: (law.contention + contention).max(0.0),
        crosstalk: (law.crosstalk + crosstalk).max(0.0),
        r_squared: 0.0,
    })
}

fn squares(law: &Scalability, points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(n, c)| (c - law.throughput(*n)).powi(2)).sum()
}

/// Solves weighted least squares of three unknowns by Cramer's rule; `damping` grows the diagonal by that share.
fn normal_equations(rows: impl Iterator<Item = ([f64; 3], f64, f64)>, damping: f64) -> Option<[f64; 3]> {
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for (row, value, weight) in rows {
        for (i, left) in row.iter().enumerate() {
            right[i] += weight * left * value;
            for (j, other) in row.iter().enumerate() {
                matrix[i][j] += weight * left * other;
            }
        }
    }
    // Columns differ by orders of magnitude: each is brought to a diagonal of 1.
    let scale: [f64; 3] = std::array::from_fn(|i| matrix[i][i].sqrt());
    if scale.iter().any(|scale| !scale.is_normal()) {
        return None;
    }
    let scaled: [[f64; 3]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| matrix[i][j] / (scale[i] * scale[j]) + if i == j { damping } else { 0.0 })
    });
    let whole = determinant(&scaled);
    let solved: [f64; 3] = std::array::from_fn(|column| {
        let mut replaced = scaled;
        for (i, row) in replaced.iter_mut().enumerate() {
            row[column] = right[i] / scale[i];
        }
        determinant(&replaced) / whole / scale[column]
    });
    solved.iter().all(|value| value.is_finite()).then_some(solved)
}

fn determinant(m: &[[f64; 3]; 3]) -> f64 {
    m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Random;

    /// The ladder of WebBench: 1, 4, 8 … 60 clients.
    fn ladder() -> impl Iterator<Item = f64> {
        std::iter::once(1.0).chain((1..=15).map(|step| f64::from(step) * 4.0))
    }

    proptest! {
        #[test]
        fn an_exact_curve_gives_its_parameters_back(
            unit in 1.0_f64..10_000.0,
            contention in 0.0_f64..0.3,
            crosstalk in 0.0001_f64..0.01,
        ) {
            let law = Scalability { unit, contention, crosstalk, r_squared: 1.0 };
            let points: Vec<(f64, f64)> = ladder().map(|n| (n, law.throughput(n))).collect();
            let found = scalability(&points).expect("enough points");
            prop_assert!((found.unit / unit - 1.0).abs() < 1e-4, "{:?}", found);
            prop_assert!((found.contention - contention).abs() < 1e-4, "{:?}", found);
            prop_assert!((found.crosstalk - crosstalk).abs() < 1e-5, "{:?}", found);
            prop_assert!(found.r_squared > 0.9999);
        }
    }

    #[test]
    fn noise_moves_the_peak_little() {
        let law = Scalability { unit: 100.0, contention: 0.05, crosstalk: 0.002, r_squared: 1.0 };
        let truth = law.clients_at_peak().expect("a peak");
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let points: Vec<(f64, f64)> =
                ladder().map(|n| (n, law.throughput(n) * (1.0 + 0.02 * random.normal()))).collect();
            let found = scalability(&points).and_then(|found| found.clients_at_peak()).expect("a peak");
            assert!((found / truth - 1.0).abs() < 0.2, "{seed}: {found} and not {truth}");
        }
    }

    #[test]
    fn a_line_has_no_peak_and_nothing_no_law() {
        let points: Vec<(f64, f64)> = ladder().map(|n| (n, 7.0 * n)).collect();
        let found = scalability(&points).expect("enough points");
        assert!((found.unit - 7.0).abs() < 1e-3 && found.contention < 1e-6, "{found:?}");
        assert!(found.clients_at_peak().is_none_or(|clients| clients > 1_000.0), "{found:?}");
        assert_eq!(scalability(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(scalability(&[(1.0, 1.0), (1.0, 1.0), (1.0, 2.0), (2.0, 2.0)]), None);
        assert_eq!(scalability(&[(1.0, 0.0), (2.0, 2.0), (3.0, 2.0)]), None);
    }
}
