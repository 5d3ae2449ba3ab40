//! Compiles the scheduler's kernel part where the feature `bpf` asks for it.

#[cfg(feature = "bpf")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=src/bpf");
    libbpf_cargo::SkeletonBuilder::new()
        .source("src/bpf/scheduler.bpf.c")
        // Version 3 of the instructions has the atomic operations that the scheduler uses.
        .clang_args(["-mcpu=v3", "-Wall", "-Werror"])
        .build_and_generate(out.join("scheduler.skel.rs"))?;
    Ok(())
}

#[cfg(not(feature = "bpf"))]
fn main() {}
