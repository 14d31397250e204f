//! What the demo says around its requests: what runs, and what to try.

use std::path::Path;

use super::site::{HOST, Origins, Site};
use super::switch::Addresses;

/// What runs where.
pub(super) fn opening(addresses: &Addresses, origins: &Origins) -> String {
    let mut text = String::from("a content switch before five small servers\n\n");
    let rows = [
        (format!("https://{HOST}:{}", addresses.tls.port()), "the switch, with a throw-away certificate"),
        (format!("http://{}", addresses.plain), "the switch without TLS, by the same rules"),
    ];
    for (place, what) in rows {
        text.push_str(&format!("  {place:<26}{what}\n"));
    }
    let pools = ["pool standard", "pools standard and images", "pool fast", "pool llama", "pool mistral"];
    for (origin, pools) in origins.iter().zip(pools) {
        text.push_str(&format!("  {:<26}{}, in {pools}\n", origin.address.to_string(), origin.name));
    }
    text.push('\n');
    text
}

/// What to try.
pub(super) fn try_it(addresses: &Addresses, site: &Site) -> String {
    let (authority, rules) = (word(&site.authority()), word(&site.rules()));
    let (config, request) = (word(&site.config()), word(&site.request()));
    let https = format!("https://{HOST}:{}", addresses.tls.port());
    let curl = format!("curl --cacert {authority}");
    let this = std::env::current_exe().map_or_else(|_| "pointsman".to_owned(), |path| word(&path));
    let (plain, admin, token) = (addresses.plain, addresses.admin, site.token());
    format!(
        "
try it, from another terminal:

  {curl} {https}/
  {curl} {https}/photo.jpg
  {curl} --cookie customer=gold {https}/
  {curl} -H content-type:text/xml -d '<purchase><totalAmount>60000</totalAmount></purchase>' {https}/orders
  {curl} -H content-type:text/xml -d '<purchase><totalAmount>60000</totalAmount></torn>' {https}/orders
  {curl} -H content-type:application/json -d '{{\"model\":\"mistral-small\"}}' {https}/v1/chat/completions
  {curl} --location --include {https}/old/shelf
  curl http://{plain}/hello
  curl http://{admin}/metrics

watch what comes, in a browser; to change something there, sign in with the token:

  http://{admin}/console/
  {token}

change the rules in an editor, and the next request goes by them; a mistake changes nothing and is shown here:

  {rules}
  {config}

ask why, and after how many bytes of the body:

  {this} explain {config} {request}

measure it, and open the result in the console:

  {this} bench load {https}/ --ca {authority} --header 'User-Agent: bench' --rate 50 --time 5s --save bench.json

the demo's own visitors go on asking, some slowly, some for what is broken; what others ask for shows here, until Ctrl-C:

"
    )
}

/// A path as one word of a shell.
fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_safe_in_a_shell() {
        for (path, expected) in
            [("/tmp/a-b_c.d", "/tmp/a-b_c.d"), ("/tmp/a b", "'/tmp/a b'"), ("/a'b", "'/a'\\''b'")]
        {
            assert_eq!(word(Path::new(path)), expected);
        }
    }
}
