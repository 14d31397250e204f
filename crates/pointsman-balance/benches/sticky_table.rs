//! The table of sticky clients: what an entry takes of memory, and what a look at it costs, empty, small and with a
//! million clients in it.
//!
//! `cargo bench -p pointsman-balance --bench sticky_table`. Each look waits for the one before it. *Hot*: 16 clients all the
//! time. *Random*: any client that is in the table, or any that is not, of one table that nothing else uses the cache beside.
//! *Cold*: the same of so many tables that no cache holds them, which is what it costs beside other work; it can be compared
//! over all sizes.
#![expect(clippy::print_stdout, reason = "what a benchmark finds is told there")]

use std::hint::black_box;
use std::time::Instant;

use pointsman_balance::{STICKY_ENTRY_BYTES, StickyHash, StickyTable, Whereabouts};

const LOOKS: usize = 1 << 20;
const BATCH: usize = 512;
/// Several times what the cache of a large machine holds.
const COLD_BYTES: usize = 256 << 20;

fn main() {
    println!("{STICKY_ENTRY_BYTES} bytes for each that there is room for; ns of a look");
    println!(
        "{:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "room for", "clients", "kept", "hot", "random", "(unknown)", "cold", "(unknown)"
    );
    let hash = StickyHash::new([7; 16]);
    for (room, clients) in
        [(1 << 16, 0), (1500, 1000), (60_000, 40_000), (1 << 20, 700_000), (1_500_000, 1_000_000)]
    {
        say(room, clients, &|number| hash.hash(b"pool", &number.to_le_bytes()));
    }
}

fn say(room: u32, clients: u32, client: &dyn Fn(u32) -> u64) {
    let copies = (COLD_BYTES / (room as usize * STICKY_ENTRY_BYTES)).max(1);
    let tables: Vec<_> = (0..copies)
        .map(|_| {
            let table = StickyTable::new(room, 1800);
            (0..clients).for_each(|number| table.put(client(number), number % 8, Whereabouts::Home, 1));
            table
        })
        .collect();
    // Hashed before, and in an order that no cache guesses.
    let scattered = |look: usize| (look as u32).wrapping_mul(2_654_435_761);
    let known: Vec<_> = (0..LOOKS).map(|look| client(scattered(look) % clients.max(1))).collect();
    let unknown: Vec<_> = (0..LOOKS).map(|look| client(u32::MAX - look as u32)).collect();
    let hot: Vec<_> = known.iter().copied().take(16).cycle().take(LOOKS).collect();
    let ns =
        [(1, &hot), (1, &known), (1, &unknown), (copies, &known), (copies, &unknown)].map(|(of, clients)| {
            let table = |look| (client(scattered(look)) % of as u64) as usize;
            let asked: Vec<_> =
                clients.iter().enumerate().map(|(look, client)| (table(look), *client)).collect();
            ns_each(&tables[..of], &asked)
        });
    let kept = tables.first().map_or(0, |table| table.entries(1).count());
    print!("{room:>10} {clients:>9} {kept:>9}");
    ns.iter().for_each(|ns| print!(" {ns:>9.1}"));
    println!();
}

/// What a look took in the fastest quarter of all batches: the machine had other things to do in some of them.
fn ns_each(tables: &[StickyTable], asked: &[(usize, u64)]) -> f64 {
    let batch = |asked: &[(usize, u64)]| {
        let begin = Instant::now();
        let mut server = 0;
        for (table, client) in asked {
            // Which table is asked depends on the answer before, though it comes to the same: there are 8 servers.
            let kept = tables[table + (black_box(server) >> 8) as usize].server_of(*client, 2);
            server = kept.map_or(0, |kept| kept.server);
        }
        black_box(server);
        begin.elapsed().as_nanos() as f64 / asked.len() as f64
    };
    let mut batches: Vec<f64> = asked.chunks_exact(BATCH).map(batch).collect();
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 4]
}
