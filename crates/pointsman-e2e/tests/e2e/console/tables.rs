//! The history of a server, the sticky table, classes of bandwidth, and certificates.

use pointsman_e2e::{Authority, Origin, Setup, TlsClient, axe_script, sha256_hex};

use super::pictures::check_access;
use super::rules::press_button;
use super::{Browser, Shop, click, open, sign_in_well};
use crate::servers_at_run_time::set;
use crate::sticky_by_hand::{KEPT, begun, servers};

#[track_caller]
fn check(browser: &mut Browser, page: &str, complaints: &[&str]) {
    axe_script().iter().for_each(|axe| check_access(browser, axe, page));
    // A browser notes each answer that is a refusal.
    let said = browser.complaints();
    let are_known = said.iter().zip(complaints).all(|(said, known)| said.contains(known));
    assert!(said.len() == complaints.len() && are_known, "{said:?}");
}

#[test]
fn a_server_tells_what_has_become_of_it() {
    let shop = Shop::start();
    let Some(mut browser) = shop.open("#/servers") else { return };
    set(&shop.switch, "server1", "draining", "?why=a%20new%20disk");
    set(&shop.switch, "server1", "enabled", "");
    click(&mut browser, "[data-server='standard/server1'] th button");
    let rows = "[...document.querySelectorAll('dialog[open] tr[data-change]')].map(row => row.dataset.change).join()";
    browser.wait_until(&format!("{rows}.startsWith('up,draining')"));
    let why = "document.querySelector('dialog[open] tr[data-change=draining] .why').textContent";
    assert_eq!(browser.evaluate(why), "set by deploy: a new disk");
    // It goes on while it is open.
    set(&shop.switch, "server1", "disabled", "");
    browser.wait_until(&format!("{rows}.startsWith('disabled,up,draining')"));
    let parts = "document.querySelectorAll('dialog[open] .timeline rect[data-mood]').length";
    // From the start, when it was up.
    browser.wait_until(&format!("{parts} === 4"));
    check(&mut browser, "the history of a server", &[]);
    click(&mut browser, "dialog[open] .buttons button");
    browser.wait_until("!document.querySelector('dialog.history')");
}

#[test]
fn the_sticky_table_is_paged_and_forgotten() {
    const MORE: usize = 80;
    let servers = servers();
    let (switch, _) = begun(2, &servers);
    (0..MORE).for_each(|number| drop(switch.get(&format!("/login/more{number}"))));
    let Some(mut browser) = open(switch.admin(), "#/sticky") else { return };
    let rows = "document.querySelectorAll('tr[data-client]').length";
    browser.wait_until(&format!("{rows} === 100"));
    assert_eq!(browser.evaluate("document.querySelectorAll('tr[data-client] button').length"), 0);
    press_button(&mut browser, "Next");
    browser.wait_until(&format!("{rows} === {}", KEPT + MORE - 100));
    press_button(&mut browser, "Before");
    browser.wait_until(&format!("{rows} === 100"));
    sign_in_well(&mut browser);
    let first = browser.evaluate("document.querySelector('tr[data-client]').dataset.client");
    let first = first.as_str().expect("a hash");
    click(&mut browser, &format!("[aria-label='Forget {first}']"));
    browser.wait_until(&format!("!document.querySelector('[data-client=\"{first}\"]')"));
    let remembered = || switch.metric("pointsman_sticky_clients", &[]);
    assert_eq!(remembered(), (KEPT + MORE - 1) as f64);
    press_button(&mut browser, "s1");
    browser.wait_until(&format!(
        "{rows} > 0 && [...document.querySelectorAll('tr[data-client]')].every(row => row.cells[1].textContent === 's1')"
    ));
    let of_s1 = browser.evaluate(rows).as_f64().expect("a number");
    press_button(&mut browser, "Forget all of standard/s1…");
    assert_eq!(remembered(), (KEPT + MORE - 1) as f64, "it is asked first");
    press_button(&mut browser, "Forget all of standard/s1");
    browser.wait_until(&format!("{rows} === 0"));
    assert_eq!(remembered(), (KEPT + MORE - 1) as f64 - of_s1);
    press_button(&mut browser, "All");
    browser.wait_until(&format!("{rows} > 0"));
    press_button(&mut browser, "Forget all of standard…");
    press_button(&mut browser, "Forget all of standard");
    browser.wait_until("document.querySelector('.none')?.textContent === 'Nobody is remembered here.'");
    assert_eq!(remembered(), 0.0);
    check(&mut browser, "the sticky table", &[]);
}

#[test]
fn bandwidth_moves() {
    let origin = Origin::answering("one", |exchange| exchange.answer("200 OK", &"x".repeat(900_000)));
    let classes = "[bandwidth.link]\nceiling_bytes_per_second = 1_000_000\n\
                   [bandwidth.slow]\nparent = \"link\"\nguaranteed_bytes_per_second = 20_000\n\
                   ceiling_bytes_per_second = 150_000\nburst_bytes = 65_536\n";
    let setup = Setup::new(2).rules("R1: { bandwidth(slow); }").pool("standard", &[&origin]);
    let switch = setup.raw(classes).start();
    let Some(mut browser) = open(switch.admin(), "#/bandwidth") else { return };
    let cell = |class: &str, number: u32| {
        format!(
            "[...document.querySelector('tr[data-class={class}]')?.cells[{number}].childNodes ?? []].at(-1)?.textContent"
        )
    };
    browser.wait_until(&format!("{} === '0 B/s, 0 %'", cell("slow", 1)));
    assert_eq!(browser.evaluate(&cell("link", 4)), "1.0 MB/s");
    assert_eq!(browser.evaluate(&cell("slow", 3)), "20 kB/s");
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().word(1), "200");
    for class in ["slow", "link"] {
        browser.wait_until(&format!("/^[1-9][0-9.]* kB/.test({})", cell(class, 1)));
    }
    browser.wait_until(&format!("{} === '1'", cell("slow", 5)));
    let mood = "document.querySelector('tr[data-class=slow] .parts rect[data-mood]')?.dataset.mood";
    browser.wait_until(&format!("{mood} === 'warn'"));
    assert_eq!(browser.evaluate("document.querySelectorAll('canvas').length"), 2);
    drop(client);
    browser.wait_until(&format!("{} === '0'", cell("slow", 5)));
    check(&mut browser, "bandwidth", &[]);
}

#[test]
fn a_certificate_is_replaced() {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let pair = authority.server(&["shop.example", "www.shop.example"]);
    let setup = Setup::new(2).tls(&pair, "").with_token().pool("standard", &[&origin]);
    let switch = setup.start();
    let Some(mut browser) = open(switch.admin(), "#/certificates") else { return };
    let cell =
        |number: u32| format!("document.querySelector('tr[data-certificate]')?.cells[{number}].textContent");
    browser.wait_until(&format!("{} === 'shop.examplewww.shop.example'", cell(0)));
    assert_eq!(browser.evaluate(&cell(2)), "listener shop");
    let left = browser.evaluate(&cell(1)).as_str().expect("a text").to_owned();
    let shown = switch.admin_shows("/api/v1/certificates")["certificates"][0].clone();
    let days = shown["days_left"].as_u64().expect("it is good");
    assert!(left.contains(&format!("{days} days left")), "{left}");
    sign_in_well(&mut browser);
    click(&mut browser, "tr[data-certificate] button");
    browser.wait_until("document.activeElement.id === 'pem'");
    browser.type_text("-----BEGIN CERTIFICATE-----\nnone\n");
    click(&mut browser, "dialog[open] button.main");
    browser.wait_until("document.querySelector('dialog[open] .said').textContent.startsWith('not done: ')");
    check(&mut browser, "a certificate is replaced", &["422"]);
    browser.evaluate("document.querySelector('#pem').select()");
    let next = authority.server(&["shop.example"]);
    browser.type_text(&format!("{}{}", next.certificate, next.key));
    click(&mut browser, "dialog[open] button.main");
    let said = "document.querySelector('.notice').textContent";
    browser.wait_until(&format!("{said}.includes('it is no more for www.shop.example')"));
    browser.wait_until(&format!("{} === 'shop.example'", cell(0)));
    let shown = switch.admin_shows("/api/v1/certificates")["certificates"][0].clone();
    assert_eq!(shown["fingerprint"], sha256_hex(&next.der));
    assert_eq!(browser.evaluate("!!document.querySelector('#pem')"), false, "no key stays on the page");
    let mut client = switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
    assert_eq!(client.get("/").status(), 200);
    check(&mut browser, "certificates", &["422"]);
}
