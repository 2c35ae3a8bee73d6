//! Bench: the vectors closest to another among 100,000 of 384 dimensions, compared with reading as many bytes as are in memory of them.

use std::hint::black_box;

use chorus_embeddings::{VectorStore, normalised};
use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};

const VECTORS: u64 = 100_000;
const DIMENSIONS: usize = 384;
const TOPICS: u64 = 500;
/// As a search asks for.
const NEAREST: usize = 200;
const ROUNDS: usize = 200;
const TARGET_MS: f64 = 3.0;

/// A number between -1 and 1 that depends on a seed.
fn noise(seed: u64) -> f32 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// Vectors of some topics, as texts have them: those of a topic are close to each other.
fn vector(number: u64) -> Vec<f32> {
    let place = |seed: u64, dimension: usize| noise(seed * DIMENSIONS as u64 + dimension as u64);
    let of_topic = |dimension| place(1_000_000_000 + number % TOPICS, dimension);
    let all = (0..DIMENSIONS).map(|dimension| of_topic(dimension) + place(number, dimension)).collect();
    normalised(all).expect("a direction")
}

fn main() {
    use_realtime_scheduler();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("vectors.db");
    let store = VectorStore::open(&path, DIMENSIONS).expect("a store");
    let took = time(|| {
        for batch in (0..VECTORS).collect::<Vec<_>>().chunks(1000) {
            let batch: Vec<_> = batch.iter().map(|number| (*number, vec![vector(*number)])).collect();
            store.insert(&batch).expect("it is written");
        }
    });
    print_report(format_args!("{VECTORS} vectors written in {took:.1?}"));
    drop(store);
    let mut store = None;
    let took = time(|| store = VectorStore::open(&path, DIMENSIONS).ok());
    let store = store.expect("a store");
    print_report(format_args!("opened in {took:.1?}"));
    let signs = vec![1_u64; VECTORS as usize * DIMENSIONS / 64];
    let queries: Vec<_> = (0..ROUNDS as u64).map(|number| vector(VECTORS + number)).collect();
    let mut asked = queries.iter().cycle();
    let floor = || time(|| _ = black_box(black_box(&signs).iter().fold(0_u64, |sum, word| sum.wrapping_add(*word))));
    let ours = || {
        let query = asked.next().expect("a query");
        time(|| assert_eq!(black_box(store.nearest(query, NEAREST)).expect("matches").len(), NEAREST))
    };
    let measured = measure_paired("the 200 closest of 100,000 vectors", f64::INFINITY, ROUNDS, floor, ours);
    let verdict = if measured.ours.as_secs_f64() * 1e3 <= TARGET_MS { "met" } else { "MISSED" };
    print_report(format_args!("{measured}  target {TARGET_MS} ms  {verdict}"));
}
