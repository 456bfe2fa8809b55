//! blazesym as the other tools are asked: `PATH TAB ADDRESS` lines on standard input, those of one file
//! together; functions, inlined calls, files and lines on standard output, as addr2line prints them.

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};
use std::io::{self, BufRead, BufWriter, Write};

fn place(out: &mut impl Write, code: Option<&CodeInfo>) -> io::Result<()> {
    match code {
        Some(c) => writeln!(out, "{}:{}", c.to_path().display(), c.line.unwrap_or(0)),
        None => writeln!(out, "??:0"),
    }
}

/// Did it read the file?
fn name(symbolizer: &Symbolizer, path: &str, addrs: &[u64], out: &mut impl Write) -> io::Result<bool> {
    let source = Source::Elf(Elf::new(path));
    let symbols = match symbolizer.symbolize(&source, Input::VirtOffset(addrs)) {
        Ok(symbols) => symbols,
        Err(e) => {
            eprintln!("{path}: {e:#}");
            return Ok(false);
        }
    };
    for (addr, symbol) in addrs.iter().zip(symbols) {
        writeln!(out, "{addr:#x}")?;
        let Symbolized::Sym(symbol) = symbol else {
            writeln!(out, "??\n??:0")?;
            continue;
        };
        for call in symbol.inlined.iter().rev() {
            writeln!(out, "{}", call.name)?;
            place(out, call.code_info.as_ref())?;
        }
        writeln!(out, "{}", symbol.name)?;
        place(out, symbol.code_info.as_deref())?;
    }
    Ok(true)
}

fn main() -> io::Result<()> {
    let symbolizer = Symbolizer::new();
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut path, mut addrs, mut any) = (String::new(), Vec::new(), false);
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some((file, addr)) = line.split_once('\t') else { continue };
        if file != path {
            if !addrs.is_empty() {
                any |= name(&symbolizer, &path, &addrs, &mut out)?;
            }
            path = file.to_string();
            addrs.clear();
        }
        addrs.push(u64::from_str_radix(addr.trim_start_matches("0x"), 16).expect("an address in hex"));
    }
    if !addrs.is_empty() {
        any |= name(&symbolizer, &path, &addrs, &mut out)?;
    }
    out.flush()?;
    std::process::exit(if any { 0 } else { 1 })
}
