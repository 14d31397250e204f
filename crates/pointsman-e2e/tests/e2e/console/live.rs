//! The page Live: requests that stand out, and TLS.

use std::time::Duration;

use pointsman_e2e::{Authority, Exchange, Origin, Setup, TlsClient, axe_script, ok, pause};

use super::pictures::check_access;
use super::{Browser, click, sign_in_well};

const RULES: &str = "report: if (path under \"/report\") { routeTo(standard); }\n\
                     broken: if (path under \"/broken\") { routeTo(standard); }\n\
                     else: routeTo(standard);";

/// The slowest are drawn with their rule and where their time went, and the failed ones say what went wrong.
#[test]
fn what_stands_out_is_shown() {
    let origin = Origin::answering("server1", |exchange: &mut Exchange<'_>| match exchange.target() {
        "/report/7" => {
            pause(Duration::from_millis(80));
            ok(exchange)
        }
        "/broken" => {
            exchange.body();
            exchange.answer("503 Service Unavailable", "")
        }
        _ => ok(exchange),
    });
    let switch = Setup::new(2).rules(RULES).with_token().pool("standard", &[&origin]).start();
    let Some(mut browser) = Browser::start(1280, 900) else { return };
    assert_eq!(switch.get("/report/7").status(), 200);
    assert_eq!(switch.get("/").status(), 200);
    browser.visit(switch.admin(), "/console/");
    let row = "document.querySelector('tr[data-rule=report]')";
    browser.wait_until(&format!("!!{row}"));
    assert_eq!(browser.evaluate(&format!("{row}.cells.length")), 6, "who is not known sees no names");
    sign_in_well(&mut browser);
    browser.wait_until(&format!("{row}?.cells[6]?.textContent.endsWith('/report/7')"));
    let took = format!("{row}.cells[1].textContent");
    let took = browser.evaluate(&took).as_str().expect("a text").to_owned();
    let ms: f64 = took.strip_suffix(" ms").expect("milliseconds").parse().expect("a number");
    assert!(ms >= 79.0, "{took}");
    let said = format!("{row}.querySelector('.parts').getAttribute('aria-label')");
    let said = browser.evaluate(&said).as_str().expect("a text").to_owned();
    assert!(said.contains("the server works: ") && said.contains("decided: "), "{said}");
    // What is the server's is drawn.
    let width = format!("{row}.querySelector('rect[data-line=\"3\"]').width.baseVal.valueInSpecifiedUnits");
    assert!(browser.evaluate(&width).as_f64() > Some(0.0));
    click(&mut browser, "tr[data-rule=report] button");
    browser.wait_until("document.querySelector('.facts dl')?.textContent.includes('127.0.0.1')");
    assert_eq!(switch.get("/broken").status(), 503);
    click(&mut browser, "[aria-labelledby=outliers] button:nth-child(2)");
    browser.wait_until("document.querySelector('tr[data-rule=broken]')?.cells[5].textContent === '503'");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn tls_moves() {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup = Setup::new(2).tls(&authority.server(&["shop.example"]), "").with_token();
    let switch = setup.pool("standard", &[&origin]).start();
    let Some(mut browser) = Browser::start(1280, 900) else { return };
    browser.visit(switch.admin(), "/console/");
    let cell =
        |number: u32| format!("document.querySelector('tr[data-tls=shop]')?.cells[{number}].textContent");
    browser.wait_until(&format!("{} === '0'", cell(1)));
    let (old, new) = (TlsClient::v12(&authority).forgetful(), TlsClient::v13(&authority));
    let shake = |trust: &TlsClient| drop(switch.tls_client(trust, "shop.example").expect("a handshake"));
    (0..3).for_each(|_| shake(&old));
    browser.wait_until(&format!("{} > '0'", cell(1)));
    for _ in 0..3 {
        let mut client = switch.tls_client(&new, "shop.example").expect("a handshake");
        assert_eq!(client.get("/").status(), 200);
    }
    browser.wait_until(&format!("{} === '33 %'", cell(3)));
    let versions = browser.evaluate(&cell(4)).as_str().expect("a text").to_owned();
    assert!(versions.contains("TLS 1.3 50 %") && versions.contains("TLS 1.2 50 %"), "{versions}");
    browser.wait_until(&format!("{}.includes('X25519MLKEM768 ')", cell(5)));
    assert_eq!(browser.evaluate("document.querySelectorAll('[aria-labelledby=tls] canvas').length"), 2);
    axe_script().iter().for_each(|axe| check_access(&mut browser, axe, "TLS"));
    assert_eq!(browser.complaints(), [""; 0]);
}
