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
    let made = compiler.to_command();
    let mut command = Command::new(made.get_program());
    // QEMU loads the plugin, and needs a shared object from a static Consort, too.
    command.args(made.get_args().filter(|arg| *arg != "-static"));
    let set = made
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    command.envs(set);
    command.args(["-std=c11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-pthread"]);
    command.args(["-fvisibility=hidden", "-Wall", "-Wextra"]);
    command.arg(format!("-DCONSORT_API={api}"));
    command.arg("-o").arg(object).arg("plugin/recorder.c");
    command.status().is_ok_and(|status| status.success())
}
