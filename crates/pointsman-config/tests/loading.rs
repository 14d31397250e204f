//! What a loaded plan holds, and what a reload keeps.

use std::error::Error;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use pointsman_balance::{Algorithm, Level};
use pointsman_config::{
    Answers, BandwidthClass, Bind, BodyLimits, Colour, Direction, EncodedSlash, ForwardedMode, Found, Http2,
    Listener, ListenerLimits, Loaded, LogDestination, Lookup, Member, OddNames, Pipeline, Plan, PoolIndex,
    PoolLimits, Problems, ProxyProtocol, ProxyVersion, ServerIndex, ServerProtocol, Target, changed,
};
use pointsman_rules::{Members, Program};
use pointsman_shape::Rate;
use pointsman_telemetry::{LogForm, LogStyle, Sample};

use pointsman_view::{BodyKind, BodyLabel, BodyOptions, ContentLimits, Server, Servers};

type TestResult = Result<(), Box<dyn Error>>;

/// Where a listener listens, and whom it believes there.
fn check_places(shop: &Listener) {
    assert_eq!(shop.binds.len(), 5);
    assert_eq!(shop.binds[1].to_string(), "[::1]:8080");
    assert!(matches!(&shop.binds[4], Bind::Unix(path) if path.ends_with("testdata/config/shop.sock")));
    assert_eq!((shop.ipv6_only, shop.unix_mode, shop.trusts_unix), (true, 0o600, true));
    assert_eq!(shop.proxy_protocol, ProxyProtocol::Required);
}

/// How its bodies are read, and what the rules name in them.
fn check_bodies(shop: &Listener) {
    let limits = ContentLimits {
        depth_max: 1,
        attributes_max: 2,
        name_bytes_max: 3,
        value_bytes_max: 4,
        parameters_max: 6,
    };
    let readings = Servers::NONE.with(Server::Go).with(Server::Php);
    let label = BodyLabel::Believed;
    let options =
        BodyOptions { kind: BodyKind::Sniff, label, readings, limits, decoded_bytes_max: 7_000_000_000 };
    assert_eq!((shop.body_options, shop.body_limits), (options, written_body_limits()));
    assert!(shop.body_paths.is_some(), "`everything.rules` names a field of the body");
}

fn check_process(plan: &Plan) {
    assert_eq!((plan.threads, plan.upstream_idle_connections_max), (Some(4), 100));
    assert_eq!((plan.drain_ms_max, plan.tunnel_drain_ms_max, plan.watch_ms), (0, 5, 0));
    assert_eq!((plan.connections_max, plan.buffer_bytes_max), (Some(100_000), Some(64 * 1024 * 1024)));
    assert_eq!(plan.hold_total_bytes_max, 2_000_000);
    assert_eq!((plan.mirrors_max, plan.mirror_bytes_max, plan.mirror_ms_max), (10, 2048, 3));
    assert_eq!(plan.sticky_key, Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]));
    let log = plan.access_log.as_ref().expect("there is one");
    assert_eq!(log.destination, LogDestination::StandardOutput);
    let sample = Sample::per_million(5000);
    assert_eq!(log.style, LogStyle { form: LogForm::Combined, details: false, sample });
    let traces = plan.traces.as_ref().expect("there are some");
    assert_eq!((&*traces.endpoint.authority(), &*traces.endpoint.path), ("[::1]:4318", "/v1/traces"));
    assert_eq!((&*traces.service, traces.sample), ("edge", Sample::per_million(10_000)));
    let admin = plan.admin.as_ref().map(|admin| (admin.bind, admin.metrics_rules_max));
    assert_eq!(admin, "127.0.0.1:0".parse().ok().map(|bind| (bind, 20)));
    let class = |name: &str, parent, ceiling, burst_bytes, direction| BandwidthClass {
        name: name.into(),
        parent,
        guaranteed_bytes_per_second: 2_000_000,
        ceiling_bytes_per_second: Some(ceiling),
        burst_bytes,
        direction,
    };
    let link = class("link", None, 10_000_000, 3_000_000, Direction::ToClient);
    let gold = class("gold", Some(0), 5_000_000, 1_000_000, Direction::Both);
    assert_eq!(plan.bandwidth, [link, gold]);
    let limits: Vec<_> =
        plan.limits.iter().map(|limit| (&*limit.name, limit.keys_max, limit.status)).collect();
    assert_eq!(limits, [("api", 1000, 503), ("idle", 100_000, 429)]);
    assert_eq!(
        plan.limits[0].key.as_ref().map(ToString::to_string).as_deref(),
        Some("header[\"x-api-key\"]")
    );
    let rate = |count, period_s: u64, burst| {
        let [count, burst] = [count, burst].map(|number| NonZeroU32::new(number).expect("some"));
        Rate::new(count, period_s * 1_000_000_000, burst)
    };
    assert_eq!((plan.limits[0].rate, plan.limits[1].rate), (rate(50, 1, 100), rate(1, 60, 1)));
}

fn check_lists(program: &Program) {
    let lists: Vec<_> = program.lists().into_iter().map(|list| (&*list.name, &list.members)).collect();
    let [("blocked", Members::Networks(blocked)), ("plans", Members::Texts(plans))] = lists[..] else {
        panic!("{lists:?}");
    };
    let ranges: Vec<_> = blocked.ranges().map(|(first, last)| format!("{first}-{last}")).collect();
    assert_eq!(ranges, ["192.0.2.0-192.0.2.255", "203.0.113.0-203.0.113.255"]);
    assert!(plans.has(b"gold") && plans.has(b"silver") && plans.len() == 2);
}

#[test]
fn every_key_arrives() -> TestResult {
    let Loaded { plan, warnings, files, rule_sets, .. } =
        shown(Plan::check_only(Path::new("../../testdata/config/everything.toml")))?;
    assert!(warnings.is_empty(), "{}", warnings.render(Colour::Never));
    assert_eq!(files.len(), 4);
    assert!(!changed(&files));

    check_process(&plan);

    let shop = plan.listener_named("shop").ok_or("no listener `shop`")?;
    check_places(shop);
    assert_eq!(shop.default_pool, Some(PoolIndex(0)));
    assert_eq!(shop.trusted_proxies, ["10.0.0.0/8".parse()?, "192.168.0.1/32".parse()?, "::1/128".parse()?]);
    assert_eq!((shop.x_forwarded, shop.forwarded), (ForwardedMode::Replace, ForwardedMode::Append));
    assert_eq!((shop.encoded_slash, shop.merge_slashes), (EncodedSlash::Refuse, true));
    assert_eq!((shop.tls.is_none(), shop.http2), (true, Http2::On));
    assert_eq!(
        (shop.odd_names, shop.named_fields.concat().as_str()),
        (OddNames::Keep, "x-api-keyx-rolex_user")
    );
    assert_eq!(shop.pipeline, Pipeline::Latest);
    assert_eq!(shop.upgrades, ["websocket", "foo/2"].map(Box::from));
    assert_eq!(shop.limits, written_limits());
    check_bodies(shop);
    let program = shop.program.as_ref().ok_or("no program")?;
    assert_eq!(program.targets.len(), shop.targets.len());
    assert!(rule_sets.iter().any(|set| Arc::ptr_eq(&set.program, program)));
    check_lists(program);
    assert_eq!(shop.mirrors, [("fast".into(), PoolIndex(1))]);
    let target =
        |pool, server: Option<u32>| Target { pool: PoolIndex(pool), server: server.map(ServerIndex) };
    assert_eq!(shop.targets, [target(0, Some(1)), target(1, None), target(1, Some(0))]);
    let back = plan.listener_named("back").ok_or("no listener `back`")?;
    assert_eq!((back.default_pool, back.http2), (None, Http2::Only));
    assert!(back.body_paths.is_none(), "`decides-all.rules` names nothing of the body");

    let standard = plan.pool(PoolIndex(0));
    assert_eq!((&*standard.name, standard.balancing.algorithm), ("standard", Algorithm::WeightedRoundRobin));
    let names: Vec<&str> = standard.servers.iter().map(|server| &*server.name).collect();
    assert_eq!(names, ["127.0.0.1:9001", "big", "[::1]:9003", "localhost:9004"]);
    assert_eq!(standard.proxy_protocol, Some(ProxyVersion::V2));
    assert_eq!(standard.protocol, ServerProtocol::Http2);
    let big = standard.server(ServerIndex(1));
    assert_eq!((big.address, big.weight), (Some("127.0.0.1:9002".parse()?), 3));
    let levels: Vec<_> = standard.servers.iter().map(|server| server.level).collect();
    assert_eq!(levels, [Level::Local, Level::Distant, Level::Local, Level::Local]);
    assert_eq!(big.connections_max, 7);
    assert_eq!(standard.limits, written_pool_limits());
    Ok(())
}

/// The limits of the pool `standard` in `everything.toml`.
fn written_pool_limits() -> PoolLimits {
    PoolLimits {
        outlier_failures_max: 65_535,
        outlier_ms: 1,
        outlier_ms_max: 86_400_000,
        outlier_ejected_percent_max: 100,
        connect_ms_max: 1,
        response_ms_max: 2,
        body_ms_max: 3,
        write_ms_max: 4,
        idle_ms_max: 5,
        idle_connections_max: 0,
        http2_streams_max: 8,
        http2_stream_window_bytes: 16_384,
        zone_threshold_percent: 60,
        panic_threshold_percent: 50,
        slow_start_ms: 7,
        queue_max: 0,
        queue_ms_max: 8,
        tries_max: 2,
        retries_percent_max: 1500,
        retries_per_second_min: 3,
        try_ms_max: 9,
        hedge_ms: 6,
        request_ms_max: 10,
        head_bytes_max: 1024,
        headers_max: 1,
    }
}

/// The limits of the listener `shop` in `everything.toml`.
fn written_body_limits() -> BodyLimits {
    BodyLimits {
        body_depth_max: 1,
        body_attributes_max: 2,
        body_name_bytes_max: 3,
        body_value_bytes_max: 4,
        body_parameters_max: 6,
        body_decoded_bytes_max: 7_000_000_000,
        hold_bytes_max: 16_385,
    }
}

fn written_limits() -> ListenerLimits {
    ListenerLimits {
        http2_streams_max: 7,
        http2_stream_window_bytes: 65_536,
        http2_window_bytes: 131_072,
        connections_max: 16,
        connections_per_address_max: 8,
        handshakes_per_address_per_second_max: 9,
        head_bytes_max: 4096,
        headers_max: 256,
        target_bytes_max: 1024,
        body_bytes_max: 1_000_000_000_000,
        requests_max: 1000,
        pipeline_requests_max: 2,
        pipeline_bytes_max: 1024,
        proxy_header_ms_max: 9,
        handshake_ms_max: 1,
        head_ms_max: 2,
        idle_ms_max: 3,
        body_ms_max: 4,
        body_bytes_per_second_min: 0,
        half_closed_ms_max: 5,
        tunnel_idle_ms_max: 6,
        write_ms_max: 86_400_000,
    }
}

#[test]
fn defaults_hold_where_nothing_is_written() -> TestResult {
    let plan = shown(Plan::check_only(Path::new("../../testdata/config/minimal.toml")))?.plan;
    assert_eq!((plan.threads, plan.connections_max, plan.sticky_key), (None, None, None));
    assert_eq!((plan.buffer_bytes_max, plan.hold_total_bytes_max), (None, 256 * 1024 * 1024));
    assert_eq!((plan.drain_ms_max, plan.watch_ms, plan.upstream_idle_connections_max), (30_000, 1000, 8192));
    assert_eq!(plan.tunnel_drain_ms_max, 20_000);
    assert!(plan.access_log.is_none() && plan.traces.is_none() && plan.admin.is_none());
    let [listener] = plan.listeners.as_slice() else { return Err("not one listener".into()) };
    assert_eq!((listener.x_forwarded, listener.forwarded), (ForwardedMode::Append, ForwardedMode::Off));
    assert_eq!((listener.encoded_slash, listener.merge_slashes), (EncodedSlash::Keep, false));
    assert_eq!((listener.odd_names, listener.named_fields.len()), (OddNames::Drop, 0));
    assert_eq!((listener.body_options, listener.body_paths.is_none()), (BodyOptions::default(), true));
    assert_eq!(listener.pipeline, Pipeline::Hold);
    assert_eq!(listener.upgrades, [Box::from("websocket")]);
    assert_eq!(listener.limits, ListenerLimits::default());
    assert_eq!(listener.body_limits, BodyLimits::default());
    assert_eq!(listener.default_pool, Some(PoolIndex(0)));
    let [pool] = plan.pools.as_slice() else { return Err("not one pool".into()) };
    assert_eq!((pool.balancing.algorithm, pool.limits), (Algorithm::RoundRobin, PoolLimits::default()));
    assert_eq!(
        (pool.servers[0].weight, pool.proxy_protocol, pool.protocol),
        (1, None, ServerProtocol::Http1)
    );
    assert!(pool.servers[0].tls.is_none());
    Ok(())
}

/// Tokens that others on the machine can read or change are theirs, too.
#[test]
fn tokens_are_for_their_owner() -> TestResult {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir()?;
    let (path, tokens) = (folder.path().join("pointsman.toml"), folder.path().join("tokens"));
    fs::write(
        &path,
        "[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\npool = \"p\"\n\
         [pool.p]\nservers = [\"127.0.0.1:9001\"]\n\
         [admin]\nbind = \"127.0.0.1:0\"\ntoken_file = \"tokens\"\n",
    )?;
    fs::write(&tokens, "000102030405060708090a0b0c0d0e0f\n")?;
    let modes = [
        (0o600, None),
        (0o640, None),
        (0o604, Some("read `")),
        (0o602, Some("write `")),
        (0o666, Some("read and write `")),
    ];
    for (mode, expected) in modes {
        fs::set_permissions(&tokens, fs::Permissions::from_mode(mode))?;
        let said = shown(Plan::check_only(&path))?.warnings.render(Colour::Never);
        let is_expected =
            expected.map_or(said.is_empty(), |what| said.contains(&format!("can {what}tokens`")));
        assert!(is_expected, "{mode:o}: {said}");
    }
    Ok(())
}

#[test]
fn every_file_is_watched() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pointsman.toml");
    let [certificate, key, ca] = ["a.crt", "a.key", "ca.crt"].map(|name| folder.path().join(name));
    let rules = folder.path().join("a.rules");
    let issued = rcgen::generate_simple_self_signed(["a.example".to_owned()])?;
    fs::write(&certificate, issued.cert.pem())?;
    fs::write(&ca, issued.cert.pem())?;
    fs::write(&key, issued.signing_key.serialize_pem())?;
    fs::write(&rules, "else: routeTo(standard);\n")?;
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "000102030405060708090a0b0c0d0e0f\n")?;
    fs::write(
        &path,
        "[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\nrules = \"a.rules\"\n\
         tls = { certificate = \"a.crt\", key = \"a.key\" }\n\
         [pool.standard]\nservers = [\"127.0.0.1:9001\"]\ntls = { ca = \"ca.crt\" }\n\
         [admin]\nbind = \"127.0.0.1:0\"\ntoken_file = \"tokens\"\n\
         [list.blocked]\nfile = \"networks\"\n",
    )?;
    let list = folder.path().join("networks");
    fs::write(&list, "192.0.2.0/24\n")?;
    let first = shown(Plan::load(&path, None))?;
    assert!(first.plan.listeners[0].is_tls());
    assert!(first.plan.pools[0].servers[0].tls.is_some());
    let second = shown(Plan::load(&path, Some(&first.plan)))?;
    assert_eq!(first.plan.pools, second.plan.pools, "an equal connector takes the place of the first");
    for file in [&path, &certificate, &key, &ca, &rules, &tokens, &list] {
        assert!(!changed(&second.files));
        let content = fs::read(file)?;
        fs::write(file, "something else")?;
        assert!(changed(&second.files), "{}", file.display());

        let problems = Plan::load(&path, Some(&second.plan)).err().ok_or("loaded in spite of it")?;
        assert!(!changed(problems.watched()), "a refused plan knows what it was refused for");
        fs::write(file, content)?;
        assert!(changed(problems.watched()), "{}", file.display());
    }
    Ok(())
}

/// A pool's own certificate is looked at as a listener's is, but for names, which servers do not look for.
#[test]
fn a_certificate_for_servers_that_expires() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pointsman.toml");
    let mut params = rcgen::CertificateParams::new(Vec::new())?;
    (params.not_before, params.not_after) =
        (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
    let key = rcgen::KeyPair::generate()?;
    fs::write(folder.path().join("us.crt"), params.self_signed(&key)?.pem())?;
    fs::write(folder.path().join("us.key"), key.serialize_pem())?;
    fs::write(
        &path,
        "[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\npool = \"standard\"\n\
         [pool.standard]\nservers = [\"127.0.0.1:9001\"]\n\
         tls = { ca = \"us.crt\", certificate = \"us.crt\", key = \"us.key\" }\n",
    )?;
    let text = shown(Plan::load(&path, None))?.warnings.render(Colour::Never);
    assert!(text.contains("us.crt` expired ") && text.matches("warning").count() == 1, "{text}");
    Ok(())
}

#[test]
fn a_configuration_that_cannot_be_read() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pointsman.toml");
    for content in [None, Some(&b"\xff"[..]), Some(&[b'#'; 16 * 1024 * 1024 + 1])] {
        if let Some(content) = content {
            fs::write(&path, content)?;
        }
        let problems = Plan::check_only(&path).err().ok_or("loaded in spite of it")?;
        assert!(problems.is_unreadable() && problems.has_errors());
        assert_eq!(problems.diagnostics().count(), 1);
        let text = problems.render(Colour::Never);
        assert!(text.starts_with("error: cannot read `") && text.lines().count() == 1, "{text}");
    }
    Ok(())
}

/// Nobody is asked for names while a plan is loaded; what is known of them is joined with it.
#[test]
fn names_of_servers() -> TestResult {
    let source = "[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\npool = \"standard\"\n[pool.standard]\n\
         servers = [\"127.0.0.1:80\", \"no-such-host.invalid:81\", \"Web.example.:82\", \"web.example.:83\"]\n";
    let loaded = shown(Plan::from_texts(source, ""))?;
    let lookup = |name: &str| Lookup::Addresses(name.into());
    assert_eq!(loaded.plan.lookups(), [lookup("no-such-host.invalid"), lookup("web.example.")]);
    let addresses = |plan: &Plan| {
        let servers = plan.pools[0].servers.iter();
        servers.map(|server| server.address.map(|address| address.to_string())).collect::<Vec<_>>()
    };
    let known = Some("127.0.0.1:80".to_owned());
    assert_eq!(addresses(&loaded.plan), [known.clone(), None, None, None]);
    let found = Found::Addresses(vec!["192.0.2.1".parse()?, "2001:db8::1".parse()?]);
    let joined = loaded.plan.with_answers(&Answers::from([(lookup("web.example."), found)]));
    let web = |port: u16| Some(format!("192.0.2.1:{port}"));
    assert_eq!(addresses(&joined), [known.clone(), None, web(82), web(83)]);
    assert_eq!(&*joined.pools[0].servers[2].name, "Web.example.:82", "it is called as it was written");
    // Of what is not known any more nothing is left.
    assert_eq!(addresses(&joined.with_answers(&Answers::new())), [known, None, None, None]);

    assert!(loaded.unanswered(|_| None).is_none());
    let why = |asked: &Lookup| (*asked == lookup("web.example.")).then(|| "because".to_owned());
    let problems = loaded.unanswered(why).ok_or("nothing is wrong")?;
    assert_eq!(problems.diagnostics().count(), 2, "each place");
    let text = problems.render(Colour::Never);
    assert!(text.contains("cannot look up `web.example.`: because") && text.contains("^^^"), "{text}");
    Ok(())
}

/// What a service stands for stands behind the servers that are written, wherever it is written itself.
#[test]
fn servers_of_services() -> TestResult {
    let source = "[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\nrules = \"r\"\n[pool.standard]\n\
         balance = \"weighted-round-robin\"\nservers = [{ service = \"_http._tcp.Shop.example\", connections_max = 5 }, \
         { name = \"b\", address = \"127.0.0.1:80\" }]\n";
    let loaded = shown(Plan::from_texts(
        source,
        "R1: if (path == \"/\") { routeTo(standard.b); }\nelse: routeTo(standard);\n",
    ))?;
    let service = Lookup::Services("_http._tcp.shop.example".into());
    assert_eq!(loaded.plan.lookups(), std::slice::from_ref(&service));
    let servers = |plan: &Plan| {
        let servers = plan.pools[0].servers.iter();
        let shown = servers.map(|server| {
            let address = server.address.map(|address| address.to_string()).unwrap_or_default();
            format!("{} {address} {} {:?}", server.name, server.connections_max, server.level)
        });
        shown.collect::<Vec<_>>()
    };
    let written = "b 127.0.0.1:80 0 Local".to_owned();
    let waiting = "_http._tcp.shop.example  5 Local".to_owned();
    assert_eq!(servers(&loaded.plan), [written.clone(), waiting.clone()]);
    let rule = loaded.plan.listeners[0].targets.iter().find_map(|target| target.server);
    assert_eq!(loaded.plan.pools[0].server(rule.ok_or("no server")?).name, "b".into());

    let member = |priority, port, target| Member::new((priority, 1, port), target).ok_or("no server");
    let members = vec![member(1, 81, "one.example")?, member(2, 82, "two.example")?];
    let one = Lookup::Addresses("one.example.".into());
    let two = Lookup::Addresses("two.example.".into());
    let mut answers = Answers::from([
        (service, Found::Services(members)),
        (one.clone(), Found::Addresses(vec!["192.0.2.1".parse()?])),
    ]);
    let joined = loaded.plan.with_answers(&answers);
    let first = "one.example:81 192.0.2.1:81 5 Local".to_owned();
    assert_eq!(servers(&joined), [written.clone(), first.clone()]);
    assert_eq!(joined.lookups()[..1], [one]);
    answers.insert(two, Found::Addresses(vec!["192.0.2.2".parse()?]));
    let joined = joined.with_answers(&answers);
    let second = "two.example:82 192.0.2.2:82 5 Backup(0)".to_owned();
    assert_eq!(servers(&joined), [written.clone(), first, second]);
    assert_eq!(servers(&joined.with_answers(&Answers::new())), [written, waiting]);
    Ok(())
}

fn shown(loaded: Result<Loaded, Problems>) -> Result<Loaded, String> {
    loaded.map_err(|problems| problems.render(Colour::Never))
}

/// What generated inputs name is not opened; what they say is read as from files.
#[test]
fn texts_alone_make_the_plan_that_files_make() -> TestResult {
    let [source, rules] = ["everything.toml", "everything.rules"]
        .map(|name| fs::read_to_string(Path::new("../../testdata/config").join(name)));
    let source = source?
        .replace("file = \"everything.networks\"\n", "")
        .replace("decides-all.rules\"", "everything.rules\"\npool = \"fast\"");
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pointsman.toml");
    fs::write(&path, &source)?;
    let rules = rules?;
    fs::write(folder.path().join("everything.rules"), &rules)?;
    let of_files = Plan::load(&path, None).map_err(|problems| problems.render(Colour::Never))?;
    let of_texts = Plan::from_texts(&source, &rules).map_err(|problems| problems.render(Colour::Never))?;
    // A text has no folder.
    let of_files = format!("{:?}", of_files.plan).replace(&format!("{}/", folder.path().display()), "");
    assert!(format!("{:?}", of_texts.plan) == of_files, "{:?}\n{of_files}", of_texts.plan);
    assert!(of_texts.files.is_empty());
    for outside in [
        "tls = { certificate = \"c\", key = \"k\" }\npool = \"fast\"\n[pool.fast]\nservers = [\"127.0.0.1:1\"]",
        "pool = \"fast\"\n[pool.fast]\nservers = [\"127.0.0.1:1\"]\n[list.l]\nfile = \"l\"",
        "pool = \"fast\"\n[pool.fast]\nservers = [\"127.0.0.1:1\"]\ntls = { verify = false }",
    ] {
        let source = format!("[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\n{outside}");
        assert!(Plan::from_texts(&source, "").is_err_and(|problems| problems.has_errors()), "{outside}");
    }
    Ok(())
}
