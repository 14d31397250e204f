//! The keys of how names are looked up.

use super::{Default, Key, Kind, Table};
use crate::limits::DNS_LIMIT_KEYS;

pub(super) static DNS: Table = Table {
    header: "[dns]",
    doc: "How the names of servers are looked up ([guide](../guide/balancing.md#servers-that-have-names)). A reload may \
          change all of it.",
    groups: &[
        &[
            Key {
                name: "servers",
                kind: Kind::Texts("addresses such as `127.0.0.53:53`"),
                default: Default::Words("those of `/etc/resolv.conf`"),
                doc: "Who is asked, one after the other. With this key nothing of `/etc/resolv.conf` holds, its \
                      `search` neither: names are taken as they are written. `/etc/hosts` is looked at first all \
                      the same.",
            },
            Key {
                name: "at_start",
                kind: Kind::Word(&["refuse", "wait"]),
                default: Default::Word("refuse"),
                doc: "What becomes of a name that has no answer when a configuration is loaded. `refuse`: the switch \
                      does not start, or the reload is refused. `wait`: its servers get nothing until there is one.",
            },
            Key {
                name: "family",
                kind: Kind::Word(&["any", "ipv4", "ipv6", "both"]),
                default: Default::Word("any"),
                doc: "Which addresses count. `any`: those of IPv4, and those of IPv6 where there is none. `both`: those \
                      of IPv4 and of IPv6 behind them.",
            },
        ],
        DNS_LIMIT_KEYS,
    ],
};
