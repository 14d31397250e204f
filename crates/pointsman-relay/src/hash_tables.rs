//! The tables of pools that balance by them. They are made with a plan, off the way of any request.

use std::collections::HashMap;
use std::sync::Arc;

use pointsman_balance::{HashMethod, Maglev, StickyHash};
use pointsman_config::Pool;

/// The tables of the last plan, by their pools: one whose servers are the same is not made again.
#[derive(Default)]
pub(crate) struct HashTables {
    made: HashMap<Arc<str>, Made>,
}

#[derive(Clone)]
struct Made {
    of: Of,
    table: Arc<Maglev>,
}

/// All that a table hangs on.
#[derive(Clone, PartialEq, Eq)]
struct Of {
    /// Identities and weights.
    servers: Vec<(u64, u32)>,
    entries: u32,
}

impl HashTables {
    /// The tables of these pools, in their order.
    pub(crate) fn of(&mut self, pools: &[Pool], sticky: &StickyHash) -> Vec<Option<Arc<Maglev>>> {
        let previous = std::mem::take(&mut self.made);
        let mut table = |pool: &Pool| {
            let hash = pool.balancing.hash.as_ref().filter(|hash| hash.method == HashMethod::Maglev)?;
            let servers =
                pool.servers.iter().map(|server| (identity(sticky, &pool.name, &server.name), server.weight));
            let of = Of { servers: servers.collect(), entries: hash.table_entries };
            let kept = previous.get(&pool.name).filter(|kept| kept.of == of).cloned();
            let made = kept.unwrap_or_else(|| {
                let table = Arc::new(Maglev::new(&of.servers, of.entries));
                Made { of, table }
            });
            let table = made.table.clone();
            self.made.insert(pool.name.clone(), made);
            Some(table)
        };
        pools.iter().map(&mut table).collect()
    }
}

/// What tells a server apart where hashes choose: the same on every node and after every reload.
pub(crate) fn identity(sticky: &StickyHash, pool: &str, server: &str) -> u64 {
    sticky.hash(pool.as_bytes(), server.as_bytes())
}
