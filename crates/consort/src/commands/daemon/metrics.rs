//! Metrics for Prometheus, on a loopback port and only if the configuration has one.

use super::page_server::PageServer;
use super::snapshot::DaemonTotals;
use anyhow::{Result, anyhow};
use consort_core::trial::EffectEstimate;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// Media type of OpenMetrics text.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The page of metrics, renewed each turn and served by a thread of its own.
pub(super) struct MetricsPage {
    page: Arc<Mutex<String>>,
}

impl MetricsPage {
    /// Serves `/metrics` at a loopback address.
    ///
    /// # Errors
    /// The address is not loopback, or is taken.
    pub(super) fn serve(at: SocketAddr) -> Result<Self> {
        Self::check(at)?;
        let mut server =
            PageServer::listen(at).map_err(|e| anyhow!("metrics.listen = {at}: {e}"))?;
        let page = Arc::new(Mutex::new(String::new()));
        let served = page.clone();
        std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                let page = || {
                    served
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clone()
                };
                server.serve("/metrics", KIND, page);
            })?;
        Ok(Self { page })
    }

    /// Checks that others cannot reach an address.
    pub(super) fn check(at: SocketAddr) -> Result<()> {
        match at.ip().is_loopback() {
            true => Ok(()),
            false => Err(anyhow!(
                "metrics.listen = {at}: metrics name programs and users of this host, so the \
                 address must be a loopback one, such as 127.0.0.1:9464"
            )),
        }
    }

    /// Shows these totals from now on.
    pub(super) fn show(&self, totals: &DaemonTotals) {
        let text = text(totals);
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// Returns the page as OpenMetrics text.
fn text(totals: &DaemonTotals) -> String {
    let mut registry = Registry::with_prefix("consort");
    let policy = Info::new(vec![("policy", totals.policy.clone())]);
    registry.register(
        "daemon",
        "The policy for what is given none of its own",
        policy,
    );
    let counters = [
        ("plans", "Plans that were made", totals.plans),
        ("moves", "Threads sent to another place", totals.moves),
        ("nudges", "Nudges of threads", totals.nudges),
        (
            "undone",
            "Plans undone because progress fell",
            totals.undone,
        ),
    ];
    for (name, help, value) in counters {
        registry.register(name, help, ConstCounter::new(value));
    }
    registry.register_with_unit(
        "own_cpu",
        "CPU time of the daemon and its guardian",
        Unit::Seconds,
        ConstCounter::new(totals.own_cpu_s),
    );
    let gauges = [
        ("programs", "Programs that are managed", totals.programs),
        ("threads", "Threads of these", totals.threads),
    ];
    for (name, help, value) in gauges {
        registry.register(name, help, ConstGauge::new(value));
    }
    if let Some(adherence) = totals.adherence {
        let help = "Share of the running time of threads with a place that they spent there";
        registry.register("adherence_ratio", help, ConstGauge::new(adherence));
    }
    if let Some(effect) = totals.effect {
        register_effect(&mut registry, "overall_effect_ratio", |of| {
            ConstGauge::new(of(&effect))
        });
    }
    if !totals.effects.is_empty() {
        register_effect(&mut registry, "effect_ratio", |of| {
            let family = Family::<Vec<(&str, String)>, Gauge<f64, AtomicU64>>::default();
            for (name, pid, effect) in &totals.effects {
                let labels = vec![("program", name.clone()), ("pid", pid.to_string())];
                family.get_or_create(&labels).set(of(effect));
            }
            family
        });
    }
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = encode(&mut text, &registry);
    text
}

/// Registers an effect and both ends of its interval.
fn register_effect<M: Metric>(
    registry: &mut Registry,
    name: &str,
    metric: impl Fn(fn(&EffectEstimate) -> f64) -> M,
) {
    let help = "Progress with management over progress without";
    registry.register(name, help, metric(|effect| effect.ratio));
    let low = "Lower end of its 95 percent interval";
    registry.register(format!("{name}_low"), low, metric(|effect| effect.low));
    let high = "Upper end of its 95 percent interval";
    registry.register(format!("{name}_high"), high, metric(|effect| effect.high));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference of the book lists metrics from this snapshot.
    #[test]
    fn the_page_has_every_metric() {
        let effect = EffectEstimate {
            ratio: 1.03,
            low: 1.01,
            high: 1.05,
            pairs: 12,
        };
        let text = text(&DaemonTotals {
            policy: "workover".to_owned(),
            plans: 3,
            own_cpu_s: 0.25,
            adherence: Some(0.9),
            effect: Some(effect),
            effects: vec![("redis".to_owned(), 7, effect)],
            ..DaemonTotals::default()
        });
        insta::assert_snapshot!(text);
    }

    #[test]
    fn addresses_that_others_can_reach_are_refused() {
        let error = MetricsPage::serve("0.0.0.0:0".parse().unwrap())
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("must be a loopback one"),
            "{error}"
        );
    }
}
