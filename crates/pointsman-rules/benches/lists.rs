//! Lists of networks of many sizes: what a network takes of memory, and what a look-up costs.
//!
//! `cargo bench -p pointsman-rules --bench lists`. Each look-up waits for the one before it. *Hot*: the same 16 addresses
//! all the time. *Random*: any address, in one list that nothing else uses the cache beside. *Cold*: in any of so many
//! copies that no cache holds them, which is what it costs beside other work; it can be compared over all sizes.
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

use std::hash::BuildHasher as _;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use foldhash::fast::FixedState;
use pointsman_rules::NetworkList;

const SIZES: [u64; 4] = [1, 1_000, 40_000, 1_000_000];
const LOOKS: usize = 1 << 20;
const BATCH: usize = 512;
/// Several times what the cache of a large machine holds.
const COLD_BYTES: usize = 256 << 20;

/// A list of so many networks, and addresses to ask it for, every other one in a network of it.
struct Shape {
    name: &'static str,
    network: fn(u64) -> (IpAddr, IpAddr),
}

const SHAPES: [Shape; 4] = [
    Shape { name: "IPv4, spread", network: |number| fourth(random(number) as u32) },
    Shape { name: "IPv4, crowded", network: |number| fourth(crowded(number, 32) as u32) },
    Shape { name: "IPv6, spread", network: |number| sixth(0x2 << 60 | random(number) >> 4) },
    Shape { name: "IPv6, crowded", network: |number| sixth(0x2 << 60 | crowded(number, 60)) },
];

fn main() {
    println!(
        "{:<14} {:>9} {:>9} {:>8} {:>9} {:>7} {:>7} {:>7}",
        "", "networks", "ranges", "bytes", "built ms", "hot", "random", "cold"
    );
    for shape in &SHAPES {
        for size in SIZES {
            shape.say(size);
        }
    }
}

impl Shape {
    fn say(&self, size: u64) {
        let networks: Vec<_> = (0..size).map(self.network).collect();
        let begin = Instant::now();
        let list = NetworkList::new(networks);
        let built = begin.elapsed();
        let bytes = list.memory_bytes();
        let asked: Vec<_> = (0..LOOKS as u64).map(|look| self.asked(look, size)).collect();
        let hot: Vec<_> = asked.iter().copied().take(16).cycle().take(LOOKS).collect();
        let copies = vec![list.clone(); (COLD_BYTES / (bytes + size_of_val(&list))).max(1)];
        let [hot, random, cold] = [(1, &hot), (1, &asked), (copies.len(), &asked)].map(|(lists, asked)| {
            let list = |look| (random(look) % lists as u64) as usize;
            let asked: Vec<_> = asked.iter().zip(0..).map(|(address, look)| (list(look), *address)).collect();
            ns_each(&copies[..lists], &asked)
        });
        println!(
            "{:<14} {size:>9} {:>9} {:>8.1} {:>9.1} {hot:>7.1} {random:>7.1} {cold:>7.1}",
            self.name,
            list.len(),
            bytes as f64 / list.len() as f64,
            built.as_secs_f64() * 1e3,
        );
    }

    /// An address that is asked for: of a network that is in the list, or of one that is probably not.
    fn asked(&self, look: u64, size: u64) -> IpAddr {
        let number = random(look ^ 0xa5a5 << 40);
        let is_known = number & 1 == 0;
        (self.network)(if is_known { (number >> 1) % size } else { size + (number >> 1) }).0
    }
}

/// What a look-up took in the fastest quarter of all batches: the machine had other things to do in some of them.
fn ns_each(lists: &[NetworkList], asked: &[(usize, IpAddr)]) -> f64 {
    let batch = |asked: &[(usize, IpAddr)]| {
        let begin = Instant::now();
        let mut found = false;
        for (list, address) in asked {
            // Which one is asked depends on the answer before, though it comes to the same.
            found = lists[list + (black_box(usize::from(found)) & 2)].has(*address);
        }
        black_box(found);
        begin.elapsed().as_nanos() as f64 / asked.len() as f64
    };
    let mut batches: Vec<f64> = asked.chunks_exact(BATCH).map(batch).collect();
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 4]
}

/// A number that another number always gives.
fn random(number: u64) -> u64 {
    FixedState::with_seed(7).hash_one(number)
}

/// A number of so many bits. Half of them begin with one of 4 beginnings of 8 bits, and half of those of each go on
/// with one of 4 for 8 further bits, and so on: as addresses are given to providers, and by them to customers.
fn crowded(number: u64, bits: u32) -> u64 {
    let mut seed = random(number);
    let mut crowd = 0;
    for level in 1..=u64::from(bits / 8) {
        let digit = if seed & 1 == 0 {
            random(crowd << 8 | level << 2 | seed >> 1 & 3) & 0xff
        } else {
            seed >> 8 & 0xff
        };
        crowd = crowd << 8 | digit;
        seed = random(seed);
    }
    crowd << (bits % 8) | seed & ((1 << (bits % 8)) - 1)
}

/// Of networks of IPv4 most are single addresses, and some have 256.
fn fourth(bits: u32) -> (IpAddr, IpAddr) {
    let hosts = if bits.is_multiple_of(4) { 0xff } else { 0 };
    (Ipv4Addr::from_bits(bits & !hosts).into(), Ipv4Addr::from_bits(bits | hosts).into())
}

/// What an access provider gives to a customer: a /64, or a /48.
fn sixth(bits: u64) -> (IpAddr, IpAddr) {
    let hosts = if bits.is_multiple_of(4) { (1u128 << 80) - 1 } else { (1 << 64) - 1 };
    let bits = u128::from(bits) << 64;
    (Ipv6Addr::from_bits(bits & !hosts).into(), Ipv6Addr::from_bits(bits | hosts).into())
}
