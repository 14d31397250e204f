//! The reference says what the code does: below its mark it is generated.
//!
//! `UPDATE_EXPECT=1` writes that part anew.

use std::error::Error;
use std::{env, fs};

const PAGE: &str = "../../docs/reference/configuration.md";
const MARK: &str = "<!-- From here on the text is the key tables of crates/pointsman-config, as its `reference()` prints them. -->\n";

#[test]
fn the_page_has_every_key() -> Result<(), Box<dyn Error>> {
    let page = fs::read_to_string(PAGE)?;
    let (head, keys) = page.split_once(MARK).ok_or("no mark where the keys begin")?;
    let expected = format!("\n{}", pointsman_config::reference());
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(PAGE, format!("{head}{MARK}{expected}"))?;
    } else {
        assert!(keys == expected, "UPDATE_EXPECT=1 cargo test -p pointsman-config writes the keys anew");
    }
    Ok(())
}
