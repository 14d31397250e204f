//! Who may ask what.

use std::fmt;
use std::net::IpAddr;

use pointsman_config::Admin;
use pointsman_tls::{CertificateFacts, ClientChain};
use serde_json::json;

use crate::page::Page;
use crate::route::{Found, Needs, Route, find};

/// What is known of a request before its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Absent in HTTP/1.0.
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    /// What a browser says of where the page is from that asks (`Sec-Fetch-Site`): also where it shows no origin.
    pub(crate) site: Option<&'a str>,
    pub(crate) authorization: Option<&'a str>,
    /// Who its certificate says that it is, which comes from an authority of the configuration.
    pub(crate) certificate: Option<&'a str>,
    /// What it was shown in the handshake; absent where it speaks plain HTTP.
    pub(crate) shown: Option<&'a [CertificateFacts]>,
    /// Whether it comes from the loopback.
    pub(crate) is_local: bool,
}

impl Asked<'_> {
    /// Whether a web page of another origin has it asked for without reading the answer, as a picture or a link: browsers show no
    /// origin then (https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header).
    fn is_unread(&self) -> bool {
        self.origin.is_none() && matches!(self.site, Some("cross-site" | "same-site"))
    }
}

/// What somebody has shown to be allowed what they ask: to be looked at again where that has waited, since whoever is known
/// may be others by then.
pub struct Credentials {
    needs: Needs,
    authorization: Option<String>,
    certificate: Option<(String, ClientChain)>,
    is_local: bool,
}

impl Credentials {
    pub(crate) fn of(asked: &Asked<'_>, chain: Option<&ClientChain>, needs: Needs) -> Credentials {
        Credentials {
            needs,
            authorization: asked.authorization.map(str::to_owned),
            certificate: asked.certificate.map(str::to_owned).zip(chain.cloned()),
            is_local: asked.is_local,
        }
    }

    /// Whether it is still allowed under these settings.
    ///
    /// # Errors
    /// The answer that it is not: 401, or 403 where nobody is known any more.
    pub fn check(&self, admin: Option<&Admin>) -> Result<(), Page> {
        // The authorities may be others than they were in its handshake, and so may the time be.
        let acceptor = admin.and_then(|admin| admin.tls.as_ref());
        let is_known = |chain| acceptor.is_some_and(|acceptor| acceptor.would_let_in(chain));
        let certificate = self.certificate.as_ref().filter(|(_, chain)| is_known(chain));
        let asked = Asked {
            method: "",
            path: "",
            host: None,
            origin: None,
            site: None,
            authorization: self.authorization.as_deref(),
            certificate: certificate.map(|(holder, _)| holder.as_str()),
            shown: None,
            is_local: self.is_local,
        };
        check_identity(self.needs, &asked, admin)
    }
}

impl fmt::Debug for Credentials {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("needs", &self.needs).finish_non_exhaustive()
    }
}

/// What whoever asks may do, or the answer that they may not.
pub(crate) fn admit(asked: &Asked<'_>, admin: Option<&Admin>) -> Result<&'static Route, Page> {
    check_page(asked, admin)?;
    if asked.is_unread() {
        return Err(Page::problem(
            403,
            "web pages of others may not ask without reading the answer, nor lead here",
        ));
    }
    // What a browser asks before it lets such a page ask (https://fetch.spec.whatwg.org/#cors-preflight-request): it
    // has no token yet, and says nothing of what is there.
    if asked.method == "OPTIONS" && asked.origin.is_some_and(|origin| may_read(origin, admin)) {
        return Err(Page::plain(200, "ask")
            .with_line("Access-Control-Allow-Methods: GET, POST, PUT, PATCH, DELETE")
            .with_line("Access-Control-Allow-Headers: Authorization, Content-Type, If-Match")
            .with_line("Access-Control-Max-Age: 600"));
    }
    match find(asked.method, asked.path) {
        Found::Route(route) => check_identity(route.needs, asked, admin).map(|()| route),
        Found::Methods(methods) => {
            Err(Page::problem(405, format!("there is {methods} alone"))
                .with_line(&format!("Allow: {methods}")))
        }
        Found::Nothing => {
            Err(Page::problem(404, "nothing is there: `/api/v1/openapi.json` says what is where"))
        }
    }
}

/// Whether the page that asks, if one does, may.
pub(crate) fn check_page(asked: &Asked<'_>, admin: Option<&Admin>) -> Result<(), Page> {
    // A web page in a browser on this host could ask under a name of its own (DNS rebinding). Such a page has no token,
    // and a browser shows a certificate only to a name that the listener's own certificate has.
    let is_known = || identity(asked, admin).is_some();
    if asked.host.is_some_and(|host| !is_ours(host, asked.shown, admin)) && !is_known() {
        let detail = "Host must be `localhost`, an address, a name of the certificate, or the host of an origin in \
                      `allowed_origins`";
        return Err(Page::problem(403, detail));
    }
    if asked.origin.is_some_and(|origin| !may_ask(origin, asked, admin)) {
        return Err(Page::problem(
            403,
            "web pages of that origin may not ask: `allowed_origins` names those that may",
        ));
    }
    Ok(())
}

/// Who asks, as far as that was shown: the holder of the certificate, which nobody else can show, before that of a token.
pub(crate) fn identity<'a>(asked: &Asked<'a>, admin: Option<&'a Admin>) -> Option<&'a str> {
    // Where the configuration asks for certificates no more nobody knows any longer whom to believe.
    let certificate = asked.certificate.filter(|_| admin.is_some_and(Admin::asks_for_certificates));
    certificate.or_else(|| holder(asked.authorization, admin))
}

/// Who that is, what they may do, and what could be shown to do more.
pub(crate) fn access_page(who: Option<&str>, admin: Option<&Admin>) -> Page {
    let tokens = admin.is_some_and(|admin| !admin.tokens.are_none()).then_some("token");
    let certificates = admin.is_some_and(Admin::asks_for_certificates).then_some("certificate");
    let takes: Vec<&str> = tokens.into_iter().chain(certificates).collect();
    let may = if who.is_some() { "change" } else { "view" };
    Page::json(&json!({ "version": 1, "who": who, "may": may, "takes": takes }))
}

/// Who shows a token, if somebody does.
fn holder<'a>(authorization: Option<&str>, admin: Option<&'a Admin>) -> Option<&'a str> {
    let (scheme, token) = authorization?.split_once(' ')?;
    let token = token.trim_matches(' ');
    admin?.tokens.holder(token.as_bytes()).filter(|_| scheme.eq_ignore_ascii_case("bearer"))
}

fn check_identity(needs: Needs, asked: &Asked<'_>, admin: Option<&Admin>) -> Result<(), Page> {
    let is_free = needs == Needs::Read && asked.is_local;
    if is_free || identity(asked, admin).is_some() {
        return Ok(());
    }
    if admin.is_none_or(Admin::knows_nobody) {
        let detail = "it needs a token, and nobody has one: `token_file` of `[admin]` is not set";
        return Err(Page::problem(403, detail));
    }
    let asks_for_certificates = admin.is_some_and(Admin::asks_for_certificates);
    let detail = match asked.authorization {
        None if asks_for_certificates => {
            "it needs a token, `Authorization: Bearer TOKEN`, or a client certificate of `client_ca`"
        }
        None => "it needs a token: `Authorization: Bearer TOKEN`",
        Some(_) => "the token is not known",
    };
    Err(Page::problem(401, detail).with_line("WWW-Authenticate: Bearer realm=\"pointsman\""))
}

fn is_ours(authority: &str, shown: Option<&[CertificateFacts]>, admin: Option<&Admin>) -> bool {
    let host = host_of(authority);
    let named = shown.unwrap_or_default();
    if named.iter().any(|certificate| certificate.is_for(&host.to_ascii_lowercase())) {
        return true;
    }
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_allowed = |origin: &str| {
        origin.split_once("://").is_some_and(|(_, authority)| host_of(authority).eq_ignore_ascii_case(host))
    };
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok()
        || admin.is_some_and(|admin| admin.allowed_origins.iter().any(|origin| is_allowed(origin)))
}

/// Without the port.
fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// The listener's own pages, and those that the operator names.
fn may_ask(origin: &str, asked: &Asked<'_>, admin: Option<&Admin>) -> bool {
    let scheme = if asked.shown.is_some() { "https://" } else { "http://" };
    let own = |host: &str| origin.strip_prefix(scheme).is_some_and(|own| own.eq_ignore_ascii_case(host));
    asked.host.is_some_and(own) || may_read(origin, admin)
}

/// Whether a web page of another origin may ask, and read the answer.
pub(crate) fn may_read(origin: &str, admin: Option<&Admin>) -> bool {
    admin.is_some_and(|admin| admin.allowed_origins.iter().any(|known| known.eq_ignore_ascii_case(origin)))
}

#[cfg(test)]
mod tests {
    use pointsman_config::{AdminClient, AdminUse, Plan};

    use super::*;
    use crate::routes::ROUTES;

    const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";

    /// What a configuration with a token, or without one, says of the admin listener.
    fn admin(keys: &str) -> std::sync::Arc<Admin> {
        admin_with(keys, "")
    }

    /// The same beside a file of certificates.
    fn admin_with(keys: &str, pem: &str) -> std::sync::Arc<Admin> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("pointsman.toml");
        let text = format!(
            "[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\npool = \"p\"\n[pool.p]\n\
             servers = [\"127.0.0.1:1\"]\n[admin]\nbind = \"127.0.0.1:9090\"\n{keys}\n"
        );
        std::fs::write(&path, text).expect("a writable folder");
        std::fs::write(folder.path().join("tokens"), format!("deploy {TOKEN}\n")).expect("a writable folder");
        std::fs::write(folder.path().join("pem"), pem).expect("a writable folder");
        let client =
            AdminClient::of(&path, AdminUse::Change).unwrap_or_else(|_| panic!("it is good: {keys}"));
        let has_token = client.expect("there is an admin listener").token.is_some();
        assert_eq!(has_token, keys.contains("token_file"), "{keys}");
        let reader = AdminClient::of(&path, AdminUse::Read).unwrap_or_else(|_| panic!("it is good: {keys}"));
        assert!(reader.is_some_and(|client| client.token.is_none()), "on the loopback reading needs none");
        let loaded = Plan::load(&path, None).unwrap_or_else(|_| panic!("it is good: {keys}"));
        loaded.plan.admin.expect("there is an admin listener")
    }

    fn admin_with_token() -> std::sync::Arc<Admin> {
        admin("token_file = \"tokens\"")
    }

    fn status(asked: &Asked<'_>, admin: Option<&Admin>) -> u16 {
        admit(asked, admin).map_or_else(|page| page.status(), |_| 200)
    }

    const READ: Asked<'_> = Asked {
        method: "GET",
        path: "/metrics",
        host: Some("localhost:9090"),
        origin: None,
        site: None,
        authorization: None,
        certificate: None,
        shown: None,
        is_local: true,
    };

    #[test]
    fn pages_are_read_under_the_hosts_own_name() {
        let admin = admin("allowed_origins = [\"https://Console.example:8443\"]");
        let check =
            |asked: Asked<'_>, expected| assert_eq!(status(&asked, Some(&admin)), expected, "{asked:?}");
        for host in ["localhost", "127.0.0.1", "[::1]:9090", "LOCALHOST:1", "console.example:9090"] {
            check(Asked { host: Some(host), ..READ }, 200);
        }
        for host in ["rebound.example", "", "localhost.rebound.example", "console.example.rebound.example"] {
            check(Asked { host: Some(host), ..READ }, 403);
        }
        check(Asked { host: None, ..READ }, 200);
        // A page behind a rebound name has no token, so that a token is enough under any name.
        let with_token = admin_with_token();
        let good = format!("Bearer {TOKEN}");
        let scrape = Asked { host: Some("pointsman:9090"), authorization: Some(&good), ..READ };
        for is_local in [true, false] {
            assert_eq!(status(&Asked { is_local, ..scrape }, Some(&with_token)), 200);
            let wrong = Asked { is_local, authorization: Some("Bearer x"), ..scrape };
            assert_eq!(status(&wrong, Some(&with_token)), 403);
        }
        for origin in ["http://localhost:9090", "https://console.example:8443"] {
            check(Asked { origin: Some(origin), ..READ }, 200);
        }
        for origin in
            ["http://a", "null", "https://localhost:9090", "http://localhost", "http://console.example:8443"]
        {
            check(Asked { origin: Some(origin), ..READ }, 403);
        }
        for site in ["cross-site", "same-site"] {
            check(Asked { site: Some(site), ..READ }, 403);
            check(Asked { site: Some(site), origin: Some("https://console.example:8443"), ..READ }, 200);
            check(Asked { site: Some(site), origin: Some("https://page.example"), ..READ }, 403);
        }
        for site in ["same-origin", "none"] {
            check(Asked { site: Some(site), ..READ }, 200);
        }
        let preflight = Asked { method: "OPTIONS", origin: Some("https://console.example:8443"), ..READ };
        check(preflight, 200);
        check(Asked { origin: Some("https://page.example"), ..preflight }, 403);
        check(Asked { origin: None, ..preflight }, 405);
        check(Asked { path: "/other", ..READ }, 404);
        check(Asked { method: "POST", ..READ }, 405);
    }

    /// The same with TLS that asks clients for certificates.
    fn admin_of_certificates() -> std::sync::Arc<Admin> {
        let authority =
            rcgen::generate_simple_self_signed(["admin.example".to_owned()]).expect("a certificate");
        let pem = authority.cert.pem() + &authority.signing_key.serialize_pem();
        admin_with("tls = { certificate = \"pem\", key = \"pem\", client_ca = \"pem\" }", &pem)
    }

    /// A certificate is as good as a token; where the configuration asks for none any more it is nothing.
    #[test]
    fn certificates_are_as_good_as_tokens() {
        let (with, without) = (admin_of_certificates(), admin("token_file = \"tokens\""));
        let shown = with.tls.as_ref().expect("it speaks TLS").certificates();
        for route in ROUTES {
            let path = route.path.replace(['{', '}'], "");
            let asked = Asked { method: route.method, path: &path, shown: Some(shown), ..READ };
            for is_local in [true, false] {
                let is_free = is_local && route.needs == Needs::Read;
                let stranger = Asked { is_local, ..asked };
                assert_eq!(status(&stranger, Some(&with)), if is_free { 200 } else { 401 }, "{stranger:?}");
                let known = Asked { certificate: Some("CN=ops"), ..stranger };
                assert_eq!(status(&known, Some(&with)), 200, "{known:?}");
                assert_eq!(identity(&known, Some(&with)), Some("CN=ops"));
                assert_eq!(status(&known, Some(&without)), if is_free { 200 } else { 401 }, "{known:?}");
                assert_eq!(status(&known, None), if is_free { 200 } else { 403 }, "{known:?}");
                let page = Asked { origin: Some("https://page.example"), ..known };
                assert_eq!(status(&page, Some(&with)), 403, "{page:?}");
            }
        }
    }

    #[test]
    fn every_route_asks_who_it_is() {
        let (with, without) = (admin("token_file = \"tokens\""), admin(""));
        let other = admin_of_certificates();
        let good = format!("Bearer {TOKEN}");
        let wrong = [
            "",
            "Bearer",
            "Bearer ",
            &good[..good.len() - 1],
            &good.replace("Bearer", "Basic"),
            TOKEN,
            "Bearer x",
        ];
        for route in ROUTES {
            let path = route.path.replace(['{', '}'], "");
            let asked = Asked { method: route.method, path: &path, ..READ };
            let changes = route.needs == Needs::Change;
            for is_local in [true, false] {
                let asked = Asked { is_local, ..asked };
                let is_free = is_local && !changes;
                let shown = Asked { authorization: Some(&good), ..asked };
                let again = |admin: Option<&Admin>| {
                    let checked = Credentials::of(&shown, None, route.needs).check(admin);
                    checked.map_or_else(|page| page.status(), |()| 200)
                };
                assert_eq!(again(Some(&with)), 200, "{asked:?}");
                assert_eq!(again(Some(&other)), if is_free { 200 } else { 401 }, "{asked:?}");
                assert_eq!(again(None), if is_free { 200 } else { 403 }, "{asked:?}");
                for given in wrong.iter().copied().map(Some).chain([None]) {
                    let asked = Asked { authorization: given, ..asked };
                    assert_eq!(status(&asked, Some(&with)), if is_free { 200 } else { 401 }, "{asked:?}");
                }
                let asked = Asked { authorization: Some(&good), ..asked };
                assert_eq!(status(&asked, Some(&with)), 200, "{asked:?}");
                for nobody in [Some(&*without), None] {
                    assert_eq!(status(&asked, nobody), if is_free { 200 } else { 403 }, "{asked:?}");
                }
                let asked = Asked { origin: Some("https://page.example"), ..asked };
                assert_eq!(status(&asked, Some(&with)), 403, "{asked:?}");
            }
        }
        assert_eq!(holder(Some(&good), Some(&with)), Some("deploy"));
        assert_eq!(holder(Some(&good.replace("Bearer", "bearer")), Some(&with)), Some("deploy"));
    }
}
