//! Compiles the plugin, once per generation of QEMU's interface. Without a C compiler the crate
//! builds all the same and says at use what is missing.

use std::path::Path;
use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=plugin");
    let out = std::env::var("OUT_DIR")?;
    for api in [1, 2] {
        let object = Path::new(&out).join(format!("recorder-{api}.so"));
        if !compile(api, &object) {
            println!("cargo::warning=no C compiler: `consort profile` will not work");
            std::fs::write(&object, [])?;
        }
    }
    Ok(())
}

fn compile(api: u32, object: &Path) -> bool {
    let Ok(compiler) = cc::Build::new()
        .opt_level(2)
        .cargo_warnings(false)
        // The plugin is loaded into QEMU, also by a static Consort.
        .static_crt(false)
        .try_get_compiler()
    else {
        return false;
    };
    let mut command: Command = compiler.to_command();
    command.args(["-std=c11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-pthread"]);
    command.args(["-fvisibility=hidden", "-Wall", "-Wextra"]);
    command.arg(format!("-DCONSORT_API={api}"));
    command.arg("-o").arg(object).arg("plugin/recorder.c");
    command.status().is_ok_and(|status| status.success())
}
