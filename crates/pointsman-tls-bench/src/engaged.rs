//! Was the accelerator engaged? What can be seen of it from outside, and what is said of it.
//!
//! Something that computes for this machine saves its cores time. So the CPU time of an operation beside its wall-clock
//! time tells where the work is done, whatever anybody claims. Instructions of the cores are no accelerator in this sense:
//! what they save is in the CPU time already, and only a run without them shows how much.

use crate::operation::{Primitive, Signature};

/// From this share of the time on cores are what does the work.
const CORES_SHARE_MIN: f64 = 0.9;
/// Up to this share something else does the greater part.
const ELSEWHERE_SHARE_MAX: f64 = 0.5;

/// Where an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the cores of this machine, 90 % of the time and more.
    Cores,
    /// Some here, some not.
    Partly,
    /// Not here: the cores work at most half of the time.
    Elsewhere,
}

/// What was seen, and what was claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Engaged {
    /// Where it is done.
    pub place: Place,
    /// The share of the time in which a core worked on it, waiting for a core left out.
    pub cpu_share: f64,
    /// What the token says of the mechanism (`CKF_HW`); nothing where nobody claims anything.
    pub claims_hardware: Option<bool>,
}

impl Engaged {
    /// From the share of the time in which a core worked on it.
    pub fn of(cpu_share: f64, claims_hardware: Option<bool>) -> Engaged {
        let place = match cpu_share {
            share if share >= CORES_SHARE_MIN => Place::Cores,
            share if share <= ELSEWHERE_SHARE_MAX => Place::Elsewhere,
            _ => Place::Partly,
        };
        Engaged { place, cpu_share, claims_hardware }
    }

    /// One word, or a few.
    pub fn word(&self) -> &'static str {
        match (self.place, self.claims_hardware) {
            (Place::Cores, Some(true)) => "NOT engaged",
            (Place::Cores, _) => "cores",
            (Place::Partly, _) => "partly",
            (Place::Elsewhere, _) => "engaged",
        }
    }

    /// The same as a sentence.
    pub fn sentence(&self) -> String {
        let share = format!("a core works on it {:.0} % of the time", (self.cpu_share * 100.0).min(100.0));
        match (self.place, self.claims_hardware) {
            (Place::Cores, Some(true)) => {
                format!("not engaged: the token says that it has hardware for this, and {share}")
            }
            (Place::Cores, Some(false)) => {
                format!("no accelerator: the token does it in software, and {share}")
            }
            (Place::Cores, None) => format!("no accelerator: {share}"),
            (Place::Partly, _) => format!("partly engaged: {share}"),
            (Place::Elsewhere, Some(false)) => {
                format!("engaged: {share}; the token does not say that it has hardware for this")
            }
            (Place::Elsewhere, _) => format!("engaged: {share}"),
        }
    }
}

/// The instructions of this processor that are made for a primitive, of what the kernel says that it has.
pub fn instructions(primitive: Primitive, flags: &[String]) -> Vec<String> {
    let made_for: &[&str] = match primitive {
        Primitive::Signature(Signature::Rsa2048 | Signature::Rsa3072 | Signature::Rsa4096) => {
            &["bmi2", "adx", "avx512ifma"]
        }
        Primitive::Signature(_) | Primitive::Exchange(_) => &["bmi2", "adx", "avx2"],
        Primitive::Cipher(crate::operation::Cipher::ChaCha20Poly1305, _) => &["avx2", "avx512f", "asimd"],
        Primitive::Cipher(..) => &["aes", "pclmulqdq", "vaes", "vpclmulqdq", "avx512f", "pmull"],
        Primitive::Schedule(_) => &["sha_ni", "sha2", "sha512"],
    };
    made_for
        .iter()
        .filter(|name| flags.iter().any(|flag| flag == *name))
        .map(|name| (*name).to_owned())
        .collect()
}

/// What the kernel says that the first processor has; nothing where it says nothing.
pub fn processor_flags() -> Vec<String> {
    flags_of(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

/// `flags` on x86, `Features` on Arm.
fn flags_of(cpuinfo: &str) -> Vec<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    let flags = line.and_then(|line| line.split_once(':')).map_or("", |(_, flags)| flags);
    flags.split_ascii_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Cipher;

    #[test]
    fn what_is_done_is_believed_and_not_what_is_claimed() {
        for (share, claims, word, begins) in [
            (1.0, None, "cores", "no accelerator: a core works on it 100 %"),
            (0.95, Some(true), "NOT engaged", "not engaged: the token says"),
            (0.97, Some(false), "cores", "no accelerator: the token does it in software"),
            (0.7, Some(true), "partly", "partly engaged: a core works on it 70 %"),
            (0.05, Some(true), "engaged", "engaged: a core works on it 5 %"),
            (0.05, Some(false), "engaged", "engaged: a core works on it 5 % of the time; the token"),
        ] {
            let engaged = Engaged::of(share, claims);
            assert_eq!(engaged.word(), word);
            assert!(engaged.sentence().starts_with(begins), "{}", engaged.sentence());
        }
    }

    #[test]
    fn instructions_are_those_that_are_there() {
        let x86 = flags_of("processor\t: 0\nflags\t\t: fpu aes pclmulqdq avx2 avx512ifma\n");
        assert_eq!(instructions(Primitive::Cipher(Cipher::Aes128Gcm, 16), &x86), ["aes", "pclmulqdq"]);
        assert_eq!(instructions(Primitive::Signature(Signature::Rsa2048), &x86), ["avx512ifma"]);
        let arm = flags_of("Features\t: fp asimd aes pmull sha2\n");
        assert_eq!(instructions(Primitive::Cipher(Cipher::ChaCha20Poly1305, 16), &arm), ["asimd"]);
        assert_eq!(flags_of(""), Vec::<String>::new());
    }
}
