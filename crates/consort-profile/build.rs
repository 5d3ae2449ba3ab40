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
        .try_get_compiler()
    else {
        return false;
    };
    let mut command = Command::new(compiler.path());
    // QEMU loads the plugin, and needs a shared object from a static Consort, too.
    command.args(compiler.args().iter().filter(|arg| *arg != "-static"));
    command.envs(compiler.env().iter().map(|(name, value)| (name, value)));
    command.args(["-std=c11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-pthread"]);
    command.args(["-fvisibility=hidden", "-Wall", "-Wextra"]);
    command.arg(format!("-DCONSORT_API={api}"));
    command.arg("-o").arg(object).arg("plugin/recorder.c");
    command.status().is_ok_and(|status| status.success())
}
