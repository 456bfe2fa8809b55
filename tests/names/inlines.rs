// Inlined calls of Rust, generics and closures, for tests/names/test_names.py.
use std::collections::{BTreeMap, HashMap};
use std::fmt;

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);
struct Circle(f64);

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        3.14159 * self.0 * self.0
    }
}

struct Table<K, V> {
    rows: BTreeMap<K, Vec<V>>,
}

impl<K: Ord + Clone, V: Ord + Clone> Table<K, V> {
    fn add(&mut self, key: &K, value: V) {
        let row = self.rows.entry(key.clone()).or_insert_with(Vec::new);
        row.push(value);
        row.sort_by(|a, b| b.cmp(a));
    }

    fn longest(&self) -> usize {
        self.rows.values().map(|r| r.len()).max().unwrap_or(0)
    }
}

impl<K: fmt::Display, V> fmt::Display for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, v) in &self.rows {
            write!(f, "{}:{} ", k, v.len())?;
        }
        Ok(())
    }
}

#[inline(always)]
fn third(x: u64) -> u64 {
    if x % 3 == 0 { x * 7 } else { x / 3 }
}

#[inline(always)]
fn second(x: u64) -> u64 {
    (0..x).map(third).fold(x, |a, b| a ^ b)
}

#[inline(never)]
fn first(x: u64) -> u64 {
    second(x) + second(x / 2)
}

#[inline(never)]
fn words(text: &str) -> HashMap<String, usize> {
    let mut count = HashMap::new();
    for w in text.split_whitespace() {
        *count.entry(w.to_string()).or_insert(0) += 1;
    }
    count
}

fn main() {
    let n = std::env::args().count() as u64;
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(n as f64)), Box::new(Circle(2.0))];
    let mut table = Table { rows: BTreeMap::new() };
    for i in 0..n * 50 {
        table.add(&format!("row {}", i % 7), i);
    }
    println!(
        "{} {} {} {} {:?}",
        first(n * 100),
        shapes.iter().map(|s| s.area()).sum::<f64>(),
        table.longest(),
        table,
        words("a b a c").len()
    );
}
