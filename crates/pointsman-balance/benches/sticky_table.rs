//! The table of sticky clients: what an entry takes of memory, and what a look at it costs, empty, small and with a
//! million clients in it.
#![expect(clippy::print_stdout, reason = "what a benchmark finds is told there")]

use std::hint::black_box;
use std::time::Instant;

use pointsman_balance::{STICKY_ENTRY_BYTES, StickyHash, StickyTable, Whereabouts};

const LOOKS: u32 = 2_000_000;

fn main() {
    let hash = StickyHash::new([7; 16]);
    let client = |number: u32| hash.hash(b"pool", &number.to_le_bytes());
    println!("{STICKY_ENTRY_BYTES} bytes each");
    println!("{:>10} {:>10} {:>10} {:>14} {:>14}", "room for", "clients", "kept", "ns found", "ns not found");
    for (room, clients) in
        [(1 << 16, 0), (1 << 16, 1000), (1 << 16, 40_000), (1 << 20, 700_000), (1_500_000, 1_000_000)]
    {
        let table = StickyTable::new(room, 1800);
        (0..clients).for_each(|number| table.put(client(number), number % 8, Whereabouts::Home, 1));
        // Hashed before, and in an order that no cache guesses.
        let known: Vec<_> =
            (0..LOOKS).map(|look| client(look.wrapping_mul(2_654_435_761) % clients.max(1))).collect();
        let unknown: Vec<_> = (0..LOOKS).map(|look| client(u32::MAX - look)).collect();
        println!(
            "{room:>10} {clients:>10} {:>10} {:>14.1} {:>14.1}",
            table.entries(1).count(),
            ns_each(&table, &known),
            ns_each(&table, &unknown)
        );
    }
}

fn ns_each(table: &StickyTable, clients: &[u64]) -> f64 {
    let begin = Instant::now();
    for client in clients {
        black_box(table.server_of(*client, 2));
    }
    begin.elapsed().as_nanos() as f64 / clients.len() as f64
}
