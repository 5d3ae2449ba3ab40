//! The registry of presets: one line per machine.

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*]
    };
}

/// Names and texts.
pub(super) const PRESETS: &[(&str, &str)] = presets![
    "bulldozer-6282se",
    "power7",
    "power8",
    "acmp-1+1",
    "acmp-1+3",
    "acmp-1+7",
    "acmp-1+15",
    "acmp-2+6",
    "acmp-4+12",
    "acmp-8+24",
    "xeon-e5320",
    "core2-q9550",
    "core-i9-12900k",
    "epyc-7763",
    "rk3588",
    "xeon-silver-4110",
    "xeon-5120",
    "core-i7-6700",
    "xeon-e5-2630v4",
    "odroid-xu3",
    "jetson-tx2",
    "apple-m1",
    "ryzen-9-7950x3d",
];
