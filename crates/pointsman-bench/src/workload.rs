//! What WebBench's workloads are asked with: targets and classes of a plan, and orders that grow.

use pointsman_measure::workload::{Method, Workload, order};

use crate::{Body, Class, Fault, Plan, Target, Url};

impl Plan {
    /// Asks what a workload says, in place of the plan's own targets: its paths at their one place, with their fields, and
    /// with their body in requests of POST. Where there is a second target, it is the same place over TLS.
    ///
    /// # Errors
    /// A URL with a path of its own; a workload whose shares cannot be told apart.
    pub fn of_workload(self, workload: &Workload) -> Result<Plan, Fault> {
        if let Some(own) = self.targets.iter().find(|target| target.url.target != "/") {
            return Err(Fault::new(format!("`{}` has a path of its own", own.url))
                .help("paths are the workload's: give scheme, host and port alone"));
        }
        let too_many =
            || Fault::new("a class has so many requests that its share cannot be told from the others");
        let weights = workload.weights().ok_or_else(too_many)?;
        let (mut targets, mut classes) = (Vec::new(), Vec::new());
        for (class, weight) in workload.classes().iter().zip(weights) {
            let from = targets.len();
            for request in &class.requests {
                targets.extend(self.targets.iter().map(|place| Target {
                    url: Url { target: request.target.clone(), ..place.url.clone() },
                    weight,
                    method: request.method.as_str().to_owned(),
                    headers: place.headers.clone(),
                    body: match (request.method, &place.body) {
                        // A POST of nothing says so.
                        (Method::Post, Body::None) => Body::Bytes(Vec::new()),
                        (Method::Post, body) => body.clone(),
                        _ => Body::None,
                    },
                }));
            }
            classes.push(Class {
                name: class.name.clone(),
                targets: (from..targets.len()).collect(),
                right_status: class.expects_not_found().then_some(404),
            });
        }
        Ok(Plan { targets, classes, ..self })
    }

    /// Sends an order of so many items to each of the plan's targets, and returns its bytes, too.
    #[must_use]
    pub fn of_order(mut self, items: u32) -> (Plan, usize) {
        let text = order(items);
        let bytes = text.len();
        for target in &mut self.targets {
            "POST".clone_into(&mut target.method);
            if !target.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                target.headers.push(("Content-Type".to_owned(), "application/xml".to_owned()));
            }
            target.body = Body::Bytes(text.clone().into_bytes());
        }
        (self, bytes)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_measure::workload::parse;

    use super::*;
    use crate::Load;

    const WORKLOAD: &str =
        "DEFINE_CLASSES\nA: 80\nCLASS_404: 20\nDEFINE_REQUESTS\nA:\nGET /a\nPOST /b\nCLASS_404:\nHEAD /c\n";

    fn plan(urls: &[&str]) -> Plan {
        let target = |url: &&str| Target {
            url: Url::parse(url).expect(url),
            weight: 1,
            method: "GET".into(),
            headers: vec![("X-A".into(), "b".into())],
            body: Body::None,
        };
        Plan::new(urls.iter().map(target).collect(), Load::Closed { clients: 1 })
    }

    #[test]
    fn a_workload_becomes_targets_and_classes() {
        let workload = parse(WORKLOAD).expect("a workload");
        let plan =
            plan(&["http://127.0.0.1:81", "https://127.0.0.1:82"]).of_workload(&workload).expect("good");
        let asked: Vec<String> =
            plan.targets.iter().map(|target| format!("{} {}", target.method, target.url)).collect();
        let expected = [
            "GET http://127.0.0.1:81/a",
            "GET https://127.0.0.1:82/a",
            "POST http://127.0.0.1:81/b",
            "POST https://127.0.0.1:82/b",
            "HEAD http://127.0.0.1:81/c",
            "HEAD https://127.0.0.1:82/c",
        ];
        assert_eq!(asked, expected);
        // 40 % each for two, 20 % for one.
        assert!(plan.targets[0].weight / 2 - plan.targets[4].weight < 2);
        assert_eq!(plan.targets[2].body, Body::Bytes(Vec::new()));
        let classes: Vec<_> =
            plan.classes.iter().map(|class| (class.targets.as_slice(), class.right_status)).collect();
        assert_eq!(classes, [(&[0, 1, 2, 3][..], None), (&[4, 5][..], Some(404))]);
    }

    #[test]
    fn paths_are_the_workloads() {
        let workload = parse(WORKLOAD).expect("a workload");
        assert!(plan(&["http://127.0.0.1/x"]).of_workload(&workload).is_err());
    }

    #[test]
    fn an_order_is_sent_to_its_place() {
        let (plan, bytes) = plan(&["http://127.0.0.1/orders"]).of_order(10);
        let target = &plan.targets[0];
        assert_eq!((target.method.as_str(), target.headers[1].1.as_str()), ("POST", "application/xml"));
        assert!(matches!(&target.body, Body::Bytes(body) if body.len() == bytes));
    }
}
