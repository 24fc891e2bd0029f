//! Has the linker fold functions of the same code into one: 173 MB of a module are 181 without, and a wheel is under 60.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    // Rust's own linker for this system, lld, knows how. Others may not: an option that they do not know is an error.
    let is_own = told("TARGET") == "x86_64-unknown-linux-gnu"
        && told("RUSTC_LINKER").is_empty()
        && !told("CARGO_ENCODED_RUSTFLAGS").contains("ld");
    if is_own && told("PROFILE") == "release" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--icf=all");
    }
}
