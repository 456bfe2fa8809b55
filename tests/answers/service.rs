// A small service in Rust whose trouble is known: service MODE [ARGUMENT]. "ready" on stdout when it works.
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::{collections::HashMap, env, io, thread, time::Duration};

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

#[inline(never)]
fn keep_ticket(all: &mut Vec<Vec<u8>>, n: u64) {
    all.push(vec![n as u8 | 1; 16384]);
    thread::sleep(Duration::from_millis(2));
}

#[inline(never)]
fn append_ledger(to: &File, n: u64) {
    let line = [b'a' + (n % 26) as u8; 4096];
    to.write_all_at(&line, n % 64 * 4096).unwrap();
    to.sync_all().unwrap();
}

#[inline(never)]
fn ask_pricing(peer: &mut TcpStream) {
    let mut answer = [0u8; 64];
    peer.write_all(b"how much").unwrap();
    assert!(peer.read(&mut answer).unwrap() > 0);
}

#[inline(never)]
fn cache_put(cache: &mut HashMap<u64, Vec<u8>>, n: u64) {
    cache.insert(n % 4096, vec![n as u8 | 1; 16384]);
}

fn forever(mut work: impl FnMut(u64) + Send + 'static) {
    thread::spawn(move || {
        for n in 0u64.. {
            work(n);
        }
    });
}

fn main() {
    let mode = env::args().nth(1).unwrap_or_default();
    let argument = env::args().nth(2).unwrap_or_default();
    match mode.as_str() {
        "hot" => forever(|n| {
            black_box(digest_rows(black_box(n)));
        }),
        "lock" => (0..6).for_each(|_| forever(book_order)),
        "leak" => {
            let mut all = Vec::new();
            forever(move |n| keep_ticket(&mut all, n));
        }
        "disk" => {
            let to = File::create(argument).unwrap();
            forever(move |n| append_ledger(&to, n));
        }
        "peer" => {
            let mut peer = TcpStream::connect(format!("127.0.0.1:{argument}")).unwrap();
            forever(move |_| ask_pricing(&mut peer));
        }
        "cache" => {
            let mut cache = HashMap::new();
            (0..4096).for_each(|n| cache_put(&mut cache, n));
            forever(move |n| {
                cache_put(&mut cache, n);
                thread::sleep(Duration::from_micros(500));
            });
        }
        "idle" => {}
        _ => std::process::exit(2),
    }
    println!("ready");
    io::stdout().flush().unwrap();
    loop {
        thread::park();
    }
}
