//! Purchase orders of any size.

use std::fmt::Write as _;

/// An order with so many items that it has about this many bytes.
pub(crate) fn of_bytes(bytes: usize) -> String {
    let mut order = String::with_capacity(bytes + 4096);
    order.push_str(HEAD);
    for number in 0_u32.. {
        if order.len() + TAIL.len() >= bytes {
            break;
        }
        let product = PRODUCTS[number as usize % PRODUCTS.len()];
        let (quantity, cents) = (number % 17 + 1, number * 37 % 100_000);
        write!(
            order,
            "    <item partNum=\"{:03}-{:04}\" line=\"{number}\">\n      \
             <productName>{product}</productName>\n      <quantity>{quantity}</quantity>\n      \
             <price currency=\"EUR\">{}.{:02}</price>\n      <shipDate>2026-{:02}-{:02}</shipDate>\n    </item>\n",
            number % 1000,
            number * 7 % 10_000,
            cents / 100,
            cents % 100,
            number % 12 + 1,
            number % 28 + 1,
        )
        .expect("strings take everything");
    }
    order.push_str(TAIL);
    order
}

const PRODUCTS: &[&str] = &[
    "Lawnmower, electric",
    "Baby monitor",
    "Lapis necklace &amp; ring",
    "Sturdy shelves of oak, 180 cm by 90 cm",
    "Café crème, 12 tins",
];

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<purchase xmlns="urn:example:purchase" id="po-2026-118" date="2026-11-22">
  <customer type="gold">
    <name>Alice Smith</name>
    <address country="US"><street>123 Maple Street</street><city>Mill Valley</city><zip>90952</zip></address>
  </customer>
  <!-- Hurry, my lawn is going wild! -->
  <items>
"#;

const TAIL: &str = "  </items>\n  <totalAmount currency=\"EUR\">52001.50</totalAmount>\n</purchase>\n";
