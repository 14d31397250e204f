//! Orders that are decided before they have come whole.

use super::{JSON, Shop, XML, head, json_order_first, xml_order_first};

pointsman_e2e::for_threads!(a_large_order_is_bound_by_its_first_bytes);

const LARGE: usize = 10 * 1024 * 1024;
const FIRST: usize = 1024;

/// The server has the head before the client has sent the second KiB.
fn a_large_order_is_bound_by_its_first_bytes(threads: usize) {
    let shop = Shop::start(threads);
    for (count, (media_type, body)) in
        [(XML, xml_order_first(LARGE, 60_000)), (JSON, json_order_first(LARGE, 60_000))].iter().enumerate()
    {
        let mut client = shop.client();
        client.send(head(media_type, body.len()));
        client.send(&body[..FIRST]);
        shop.fast.wait_for_requests(count + 1);
        client.send(&body[FIRST..]);
        let answer = client.response();
        assert_eq!((answer.status(), answer.server()), (200, "fast"), "{}", answer.text());
        assert!(shop.fast.last().body.bytes == *body, "{media_type}: it changed on its way");
    }
    assert_eq!(shop.standard.count(), 0);
}
