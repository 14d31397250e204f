//! The sets, each in the manner of those who write such.

use super::{Set, route};

/// All of them.
pub(crate) fn all() -> Vec<Set> {
    vec![
        shop(),
        api_gateway(),
        tenants(),
        language_models(),
        moved_pages(),
        branches(),
        images(),
        app_versions(),
        devices(),
        departments(),
        campaigns(),
        promotions(),
        sections(),
    ]
}

/// Departments of a shop by path, orders by what they come to, the papers' way.
fn shop() -> Set {
    Set::new("shop")
        .rules(300, |at| {
            let condition = format!("host == \"shop.example\" && path under \"/c/cat{at}\"");
            route(&format!("C{at}"), &condition, &format!("shop{}", at % 6))
        })
        .rules(200, |at| {
            let (from, to) = (at * 500, (at + 1) * 500);
            let amount = "first(xml.purchase/totalAmount)";
            let condition = format!("path == \"/order\" && {amount} > {from} && {amount} <= {to}");
            route(&format!("O{at}"), &condition, &format!("orders{}", at % 3))
        })
        // Two bands together leave nothing of a third one across their border.
        .fault(
            "unreachable",
            "Across: if (path == \"/order\" && first(xml.purchase/totalAmount) in (10400..10600)) { routeTo(fast); }",
            &["O20", "O21"],
        )
        .fault(
            "unreachable",
            "Sale: if (host == \"shop.example\" && path startsWith \"/c/cat7/sale\") { routeTo(sale); }",
            &["C7"],
        )
        .rule("Big: if (path == \"/order\" && first(xml.purchase/totalAmount) > 100000) { routeTo(fast); }")
        .rule("else: routeTo(standard);")
}

/// Services by method and path.
fn api_gateway() -> Set {
    Set::new("API gateway")
        .rules(250, |at| {
            let condition = format!("method == \"GET\" && path matches \"^/v1/svc{at}/[0-9]+$\"");
            route(&format!("G{at}"), &condition, &format!("svc{}", at % 9))
        })
        .rules(250, |at| {
            let condition = format!("method in [\"POST\", \"PUT\"] && path under \"/v1/svc{at}\"");
            route(&format!("P{at}"), &condition, &format!("svc{}-write", at % 9))
        })
        .fault(
            "unreachable",
            "Item: if (method == \"GET\" && path == \"/v1/svc41/77\") { routeTo(cache); }",
            &["G41"],
        )
        .fault(
            "contradiction",
            "Both: if (method == \"GET\" && method == \"HEAD\" && path under \"/v2\") { routeTo(v2); }",
            &[],
        )
        .rule("New: if (method == \"GET\" && path under \"/v2\") { routeTo(v2); }")
        .rule("else: reject(404);")
}

/// One host a tenant.
fn tenants() -> Set {
    Set::new("tenants")
        .rules(3000, |at| {
            let condition = format!("host == \"t{at}.example.com\"");
            route(&format!("T{at}"), &condition, &format!("shard{}", at % 16))
        })
        .fault("unreachable", "Again: if (host == \"t234.example.com\") { routeTo(shard3); }", &["T234"])
        .fault(
            "unreachable",
            "Some: if (host in [\"t5.example.com\", \"t6.example.com\"] && path under \"/api\") { routeTo(api); }",
            &["T5", "T6"],
        )
        .rule("else: reject(421);")
}

/// What a request asks of a gateway for language models.
fn language_models() -> Set {
    Set::new("language models")
        .setting("on_unknown reject;")
        .rules(220, |at| {
            let condition = format!("path == \"/v1/chat/completions\" && json.model == \"model-{at}\"");
            route(&format!("M{at}"), &condition, &format!("gpu{}", at % 12))
        })
        .fault(
            "unreachable",
            "Mini: if (path == \"/v1/chat/completions\" && json.model == \"model-9\" && json.stream == true) { routeTo(stream); }",
            &["M9"],
        )
        .fault(
            "contradiction",
            "Hot: if (path == \"/v1/embeddings\" && json.temperature > 2 && json.temperature < 0) { reject(400); }",
            &[],
        )
        .rule("Rest: if (path == \"/v1/chat/completions\") { reject(404, \"no such model\"); }")
        .rule("else: routeTo(web);")
}

/// Pages that moved.
fn moved_pages() -> Set {
    Set::new("moved pages")
        .rules(900, |at| {
            format!("P{at}: if (path == \"/old/{at}.html\") {{ redirect(301, \"/new/{at}\"); }}")
        })
        .fault(
            "unreachable",
            "Twice: if (path == \"/old/17.html\") { redirect(301, \"/other/17\"); }",
            &["P17"],
        )
        .fault("contradiction", "Case: if (lower(path) == \"/Old\") { redirect(301, \"/new\"); }", &[])
        .rule("Rest: if (path under \"/old\") { respond(410, \"gone\"); }")
        .rule("else: routeTo(web);")
}

/// Branches of a bank by network.
fn branches() -> Set {
    Set::new("branches")
        .rules(240, |at| {
            let condition = format!("srcip in [10.{at}.0.0/16] && path under \"/teller\"");
            route(&format!("B{at}"), &condition, &format!("core{}", at % 4))
        })
        .fault(
            "unreachable",
            "Half: if (srcip in [10.8.0.0/15] && path == \"/teller/cash\") { routeTo(core9); }",
            &["B8", "B9"],
        )
        .rule("Teller: if (path under \"/teller\") { reject(403); }")
        .fault(
            "unreachable",
            "Head: if (srcip == 192.0.2.10 && path == \"/teller\") { routeTo(core0); }",
            &["Teller"],
        )
        .rule("else: routeTo(public);")
}

/// Hosts of images.
fn images() -> Set {
    Set::new("images")
        .rules(200, |at| {
            let condition =
                format!("host endsWith \".cdn{at}.example\" && path matches \"\\.(gif|jpe?g|png)$\"");
            route(&format!("I{at}"), &condition, &format!("img{}", at % 5))
        })
        .fault(
            "unreachable",
            "Jpeg: if (host like \"eu-*.cdn14.example\" && path endsWith \".jpeg\") { routeTo(jpeg); }",
            &["I14"],
        )
        .fault(
            "contradiction",
            "Ends: if (path endsWith \".svg\" && path endsWith \".webp\") { routeTo(vector); }",
            &[],
        )
        .rule("else: routeTo(web);")
}

/// Versions of an app.
fn app_versions() -> Set {
    Set::new("app versions")
        .rules(400, |at| {
            let condition = format!("first(header[\"x-app-version\"]) startsWith \"{at}.\"");
            route(&format!("V{at}"), &condition, &format!("app{}", 1 + at % 7))
        })
        .fault(
            "unreachable",
            "Patch: if (first(header[\"x-app-version\"]) matches \"^12\\.[0-9]+\\.[0-9]+$\") { routeTo(app12); }",
            &["V12"],
        )
        .fault("unreachable", "Exact: if (first(header[\"x-app-version\"]) == \"39.0\") { reject(426); }", &["V39"])
        .rule("else: routeTo(app0);")
}

/// Devices by the port that they call.
fn devices() -> Set {
    Set::new("devices")
        .rules(1000, |at| {
            route(&format!("D{at}"), &format!("dstport == {}", 20000 + at), &format!("iot{}", at % 20))
        })
        .fault(
            "unreachable",
            "Low: if (dstport in [20100..20102]) { routeTo(iot99); }",
            &["D100", "D101", "D102"],
        )
        .fault("contradiction", "None: if (dstport > 70000) { reject(); }", &[])
        .fault("contradiction", "Paper: if (srcport > 5000 && srcport < 4000) { reject(); }", &[])
        .rule("else: discard();")
}

/// Forms by department.
fn departments() -> Set {
    Set::new("departments")
        .rules(260, |at| {
            let condition = format!("path == \"/contact\" && first(form[\"department\"]) == \"d{at}\"");
            route(&format!("F{at}"), &condition, &format!("desk{}", at % 8))
        })
        .fault(
            "unreachable",
            "Urgent: if (path == \"/contact\" && first(form[\"department\"]) == \"d3\" && form[\"urgent\"] == \"1\") { routeTo(now); }",
            &["F3"],
        )
        .rule("else: routeTo(web);")
}

/// Campaigns, told by a key of the query, and an effect that is no reason to stop.
fn campaigns() -> Set {
    Set::new("campaigns")
        .rule("Trace: if (header[\"x-trace\"] exists) { setHeader(\"x-traced\", \"1\"); }")
        .rules(320, |at| {
            let condition = format!("first(query[\"campaign\"]) == \"k{at}\"");
            route(&format!("K{at}"), &condition, &format!("land{}", at % 10))
        })
        .fault("conflict", "Mobile: if (path under \"/m\") { routeTo(mobile); }", &["K0"])
        .rule("else: routeTo(web);")
}

/// Pages with products, and customers who see others of them.
fn promotions() -> Set {
    Set::new("promotions")
        .rule("Gold: if (cookie[\"gold\"] == \"1\") { routeTo(gold); }")
        .rules(300, |at| {
            route(&format!("P{at}"), &format!("path == \"/p/{at}\""), &format!("shop{}", at % 4))
        })
        .due("conflict", "P0", &["Gold"])
        .rule("else: routeTo(web);")
}

/// Sections that are jumped to.
fn sections() -> Set {
    let mut set = Set::new("sections");
    let count = 60;
    for at in 0..count {
        let next = at + 1;
        set = set
            .rule(&format!(
                "S{at}: if (host == \"s{at}.example\") {{ goto A{at}; }} else {{ goto S{next}; }}"
            ))
            .rule(&route(&format!("A{at}"), "path under \"/api\"", &format!("api{at}")))
            .rule(&route(
                &format!("B{at}"),
                "!(path under \"/api\") && method == \"GET\"",
                &format!("read{at}"),
            ))
            .rule(&format!("W{at}: {{ routeTo(write{at}); }}"));
        if at == 5 {
            set = set.fault("unreachable", "Lost: if (path == \"/lost\") { routeTo(lost); }", &["W5"]);
        }
    }
    set.rule(&format!("S{count}: {{ reject(404); }}"))
}
