//! What a pool as a whole has besides its servers, which outlives reloads.

use std::collections::HashMap;
use std::sync::Arc;

use crate::capacity::Queue;
use crate::retry_budget::RetryCounts;

/// The state of a pool.
#[derive(Debug)]
pub(crate) struct PoolState {
    pub(crate) retries: RetryCounts,
    pub(crate) queue: Arc<Queue>,
}

/// The states of pools, by name.
#[derive(Debug)]
pub(crate) struct PoolStates {
    threads: usize,
    by_name: HashMap<Arc<str>, Arc<PoolState>>,
}

impl PoolStates {
    pub(crate) fn new(threads: usize) -> PoolStates {
        PoolStates { threads, by_name: HashMap::new() }
    }

    /// The state of the pool of that name: the same one over reloads.
    pub(crate) fn of(&mut self, pool: &Arc<str>) -> Arc<PoolState> {
        let new = || Arc::new(PoolState { retries: RetryCounts::new(self.threads), queue: Arc::default() });
        self.by_name.entry(pool.clone()).or_insert_with(new).clone()
    }

    /// Forgets those that no generation or thread holds any more.
    pub(crate) fn forget_unused(&mut self) {
        self.by_name.retain(|_, state| Arc::strong_count(state) > 1);
    }
}
