//! Energy against time.

use super::quotient;

/// Energy-delay product E·T, in joule-seconds. Lower is better. Gonzalez and
/// Horowitz, "Energy dissipation in general purpose microprocessors", IEEE
/// Journal of Solid-State Circuits 31(9), 1996.
#[doc(alias = "ED")]
pub fn energy_delay_js(energy_j: f64, time_s: f64) -> f64 {
    energy_j * time_s
}

/// Energy-delay-squared product E·T², in joule-seconds squared. Lower is
/// better; it does not change with voltage to the first order. Martin,
/// "Towards an energy complexity of computation", Information Processing
/// Letters 77, 2001.
#[doc(alias = "ED squared")]
pub fn energy_delay_squared_js2(energy_j: f64, time_s: f64) -> f64 {
    energy_j * time_s * time_s
}

/// Power-delay product: mean power times time, in joules. Lower is better.
#[doc(alias = "PDP")]
pub fn power_delay_j(mean_power_w: f64, time_s: f64) -> f64 {
    mean_power_w * time_s
}

/// Throughput per watt: instructions per second and watt of mean power, which
/// is instructions per joule. Higher is better; `None` where time or power is
/// not positive or the quotient is not finite.
pub fn throughput_per_watt(instructions: f64, time_s: f64, mean_power_w: f64) -> Option<f64> {
    quotient(quotient(instructions, time_s)?, mean_power_w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_worked_by_hand() {
        // 50 W for 4 s: 200 J.
        let energy_j = power_delay_j(50.0, 4.0);
        assert_eq!(energy_j, 200.0);
        assert_eq!(energy_delay_js(energy_j, 4.0), 800.0);
        assert_eq!(energy_delay_squared_js2(energy_j, 4.0), 3200.0);
        assert_eq!(throughput_per_watt(8e9, 4.0, 50.0), Some(4e7));
    }

    #[test]
    fn throughput_in_no_time_or_without_power_is_undefined() {
        assert_eq!(throughput_per_watt(1.0, 0.0, 1.0), None);
        assert_eq!(throughput_per_watt(1.0, 1.0, 0.0), None);
    }
}
