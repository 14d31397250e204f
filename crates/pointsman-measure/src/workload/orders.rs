//! Purchase orders in XML that grow by their items: what a content switch has to read before it decides.

use std::fmt::Write;

/// Items of the orders where nobody says how many: from half a kilobyte to half a megabyte.
pub const ITEMS: [u32; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];

/// An order has so many items at most: some 10 MB.
pub const ITEMS_MAX: u32 = 100_000;

/// A purchase order of so many items. The same number gives the same bytes.
pub fn order(items: u32) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<purchaseOrder number=\"4711\" date=\"2001-10-20\">\n\
         \x20 <shipTo><name>Alice Smith</name><street>123 Maple Street</street><city>Mill Valley</city></shipTo>\n\
         \x20 <billTo><name>Robert Smith</name><street>8 Oak Avenue</street><city>Old Town</city></billTo>\n  <items>\n",
    );
    let mut sum = 0;
    for item in 1..=items {
        let (quantity, cents) = (item % 9 + 1, u64::from(item) * 37 % 9_000 + 995);
        sum += u64::from(quantity) * cents;
        let (whole, rest) = (cents / 100, cents % 100);
        // Memory takes what is written to it.
        let (Ok(()) | Err(_)) = writeln!(
            text,
            "    <item part=\"{:03}-AA\"><name>Part {item}</name><quantity>{quantity}</quantity><price>{whole}.{rest:02}</price></item>",
            item % 1_000
        );
    }
    let (Ok(()) | Err(_)) =
        write!(text, "  </items>\n  <total>{}.{:02}</total>\n</purchaseOrder>\n", sum / 100, sum % 100);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_grow_by_their_items() {
        let small = order(1);
        assert_eq!(small.matches("<item ").count(), 1);
        assert!(small.contains("<total>20.64</total>"), "{small}");
        let sizes = ITEMS.map(|items| order(items).len());
        assert!(sizes[0] < 600 && (300_000..600_000).contains(&sizes[11]), "{sizes:?}");
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(order(7), order(7));
    }
}
