// A hot function, and a lock that is held, in Rust.
use std::hint::black_box;
use std::io::Write;
use std::sync::Mutex;
use std::{env, io, thread, time::Duration};

static TOTALS: Mutex<u64> = Mutex::new(0);

#[inline(never)]
fn digest_rows(n: u64) -> u64 {
    let mut h = n;
    for _ in 0..20000 {
        h = (h ^ (h >> 7)).wrapping_mul(1099511628211);
    }
    h
}

#[inline(never)]
fn book_order(n: u64) {
    let mut sum = TOTALS.lock().unwrap();
    *sum = sum.wrapping_add(n);
    thread::sleep(Duration::from_millis(3));
}

fn main() {
    let lock = env::args().nth(1).unwrap() == "lock";
    for _ in 0..if lock { 6 } else { 1 } {
        thread::spawn(move || {
            let mut n = 0u64;
            loop {
                n = if lock { book_order(n); n + 1 } else { black_box(digest_rows(black_box(n))) + 1 };
            }
        });
    }
    println!("ready");
    io::stdout().flush().unwrap();
    loop {
        thread::park();
    }
}
