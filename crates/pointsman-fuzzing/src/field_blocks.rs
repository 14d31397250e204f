//! Field blocks as the generator reads them, for their statuses alone, beside a reading of all that they say.

use pointsman_bench::FieldBlocks;
use pointsman_e2e::Decoder;

pub(crate) const TOKENS: &[&str] = &[
    ":status",
    "\u{1}\u{20}",
    "\u{b}\u{8}\u{3}200",
    "\u{c}@\u{7}:status\u{3}503",
    "\u{a}\u{0}\u{7}:status",
    "\u{5}@\u{1}a\u{1}b",
    "\u{3}?\u{e1}\u{1f}",
    "\u{3}?\u{e2}\u{1f}",
];

/// The blocks of an input: each behind a byte that says how long it is.
///
/// # Panics
/// With the property that does not hold.
pub fn check(mut input: &[u8]) {
    let (mut ours, mut whole) = (FieldBlocks::default(), Decoder::default());
    while let Some((length, behind)) = input.split_first() {
        let (block, rest) = behind.split_at(behind.len().min(usize::from(*length)));
        input = rest;
        let statuses = whole.read(block).map(|fields| {
            let statuses = fields.into_iter().filter(|(name, _)| name == b":status");
            statuses.map(|(_, value)| value).collect::<Vec<_>>()
        });
        match (ours.read(block), statuses) {
            (Ok(said), Some(statuses)) => {
                let said = said.map(|status| status.to_string().into_bytes());
                assert_eq!(statuses, Vec::from_iter(said), "the same is said");
            }
            (Err(_), Some(statuses)) => {
                let is_status = |value: &Vec<u8>| {
                    value.len() == 3
                        && (b'1'..=b'5').contains(&value[0])
                        && value.iter().all(u8::is_ascii_digit)
                };
                let is_wrong = statuses.len() > 1 || statuses.iter().any(|value| !is_status(value));
                // A table of more than 4,096 bytes, which nobody allowed, is said with this byte.
                let is_large = block.contains(&0x3f);
                assert!(is_wrong || is_large, "it is a block: {}", block.escape_ascii());
                return;
            }
            // What nobody asks for is passed over, however it is packed; and what is no block ends a connection.
            (_, None) => return,
        }
        assert!(ours.table_bytes() <= 4096, "a table is as large as it may be");
    }
}
