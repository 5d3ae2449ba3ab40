//! Tests of what every drawing must show. `CONSORT_FIGURES=DIR` keeps the drawings for looking at.

use super::*;
use crate::figure::*;
use proptest::prelude::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn bar(value: f64, ci95: f64) -> Option<Bar> {
    let ci95 = Some(ci95);
    Some(Bar { value, ci95 })
}

fn bars() -> Figure {
    let series = |name: &str, values: [f64; 4]| BarSeries {
        name: name.to_owned(),
        bars: values.iter().map(|v| bar(*v, 0.02)).collect(),
    };
    let bars = BarChart {
        category: "Workload".to_owned(),
        value: Axis::linear("Speedup over aggregate", None),
        baseline: 1.0,
        groups: names(&[
            "hmmer+povray",
            "mcf+sphinx3",
            "h264ref+povray",
            "gobmk+bwaves",
        ]),
        series: vec![
            series("aggregate", [1.0, 1.0, 1.0, 1.0]),
            series("linux", [1.07, 1.03, 1.05, 0.98]),
            series("workover", [1.16, 1.09, 1.12, 1.01]),
        ],
    };
    let text = "Four instances of each program on eight cores; the bar at 1 is the baseline, \
                so bars below it are losses.";
    Figure::new(
        "bars",
        "Speedup by workload & policy",
        text,
        10,
        Plot::Bars(bars),
    )
    .unwrap()
}

fn many_bars() -> Figure {
    let groups: Vec<String> = (0..26).map(|n| format!("{n}-a-program-name")).collect();
    let series = |index: usize| BarSeries {
        name: format!("a policy with a long name, number {index}"),
        bars: (0..26)
            .map(|g| (g != 3).then(|| Bar::exact((g * (index + 1)) as f64 / 40.0)))
            .collect(),
    };
    let bars = BarChart {
        category: "Program".to_owned(),
        value: Axis::linear("FPU usage", Some("share of cycles")),
        baseline: 0.0,
        groups,
        series: (0..MAX_SERIES).map(series).collect(),
    };
    Figure::new("many-bars", "Many bars", "", 1, Plot::Bars(bars)).unwrap()
}

fn points(series: usize, ci95: Option<f64>) -> PointSeries {
    let point = |exponent: i32| {
        let x = f64::from(1 << exponent);
        let y = x * (series + 1) as f64 * 0.3;
        FigurePoint { x, y, ci95 }
    };
    PointSeries {
        name: format!("policy {series}"),
        points: (4..=10).map(point).collect(),
    }
}

fn lines() -> Figure {
    let lines = LineChart {
        x: Axis::log("Cores", None),
        y: Axis::log("Decision time", Some("µs")),
        series: (0..4).map(|s| points(s, Some(6.0))).collect(),
    };
    let text = "Both axes are logarithmic.";
    Figure::new(
        "lines",
        "Decision time by cores",
        text,
        5,
        Plot::Lines(lines),
    )
    .unwrap()
}

fn scatter() -> Figure {
    let spread = |series: usize| {
        let at = |n: u32| {
            let x = 1.0 + f64::from(n * 7 % 20) / 10.0;
            FigurePoint::exact(
                x,
                x + f64::from((n * 13 + series as u32 * 5) % 11) / 20.0 - 0.25,
            )
        };
        PointSeries {
            name: format!("machine {series}"),
            points: (0..30).map(at).collect(),
        }
    };
    let scatter = ScatterChart {
        x: Axis::linear("Measured slowdown", None),
        y: Axis::linear("Predicted slowdown", None),
        series: (0..3).map(spread).collect(),
        diagonal: true,
    };
    Figure::new(
        "scatter",
        "Predicted against measured",
        "",
        3,
        Plot::Scatter(scatter),
    )
    .unwrap()
}

fn heat(size: usize) -> Figure {
    let programs: Vec<String> = (0..size).map(|n| format!("program-{n}")).collect();
    let cell = |row: usize, column: usize| {
        (row != column).then(|| 1.0 + (row * column) as f64 / (size * size) as f64)
    };
    let map = HeatMap {
        x: "Co-runner".to_owned(),
        y: "Program".to_owned(),
        value: Axis::linear("Slowdown", None),
        columns: programs.clone(),
        rows: programs,
        cells: (0..size)
            .map(|r| (0..size).map(|c| cell(r, c)).collect())
            .collect(),
    };
    let key = format!("heat-{size}");
    Figure::new(&key, "Slowdown of pairs", "", 2, Plot::HeatMap(map)).unwrap()
}

fn tornado() -> Figure {
    let row = |name: &str, values: [f64; 2]| TornadoRow {
        name: name.to_owned(),
        values,
    };
    let plot = Tornado {
        value: Axis::linear("STP of ours over theirs", None),
        baseline: 1.05,
        threshold: Some(1.0),
        ends: ["0.7 times".to_owned(), "1.3 times".to_owned()],
        rows: vec![
            row("memory.latency_ns", [0.97, 1.1]),
            row("core.units.load_store.latency_cycles", [1.07, 1.02]),
            row("both to one side", [1.08, 1.06]),
            row("nothing", [1.05, 1.05]),
        ],
    };
    Figure::new("tornado", "Swings", "", 3, Plot::Tornado(plot)).unwrap()
}

fn all() -> Vec<Figure> {
    vec![
        bars(),
        many_bars(),
        lines(),
        scatter(),
        heat(3),
        heat(24),
        tornado(),
        spans(),
    ]
}

#[test]
fn drawings_are_well_formed_and_reproducible() {
    for figure in all() {
        let svg = draw(&figure).unwrap();
        assert!(
            svg.starts_with("<svg role=\"img\" aria-label=\""),
            "{svg:.80}"
        );
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(
            !svg.contains("NaN") && !svg.contains("inf"),
            "{}",
            figure.key()
        );
        assert_eq!(svg, draw(&figure).unwrap());
        if let Ok(folder) = std::env::var("CONSORT_FIGURES") {
            let path = std::path::Path::new(&folder).join(format!("{}.svg", figure.key()));
            std::fs::write(path, svg).unwrap();
        }
    }
}

/// Every text and box starts on the sheet.
fn stays_inside(svg: &str) -> bool {
    let height = attribute(svg, "<svg", "height").unwrap();
    let on_sheet = |tag: &str| {
        let x = attribute(tag, "", "x").unwrap();
        let y = attribute(tag, "", "y").unwrap();
        (0.0..=900.0).contains(&x) && (0.0..=height).contains(&y)
    };
    let mut tags = svg
        .split('<')
        .filter(|tag| tag.starts_with("text ") || tag.starts_with("rect "));
    tags.all(on_sheet)
}

#[test]
fn nothing_lies_outside_the_sheet() {
    for figure in all() {
        assert!(stays_inside(&draw(&figure).unwrap()), "{}", figure.key());
    }
    assert!(!stays_inside(r#"<svg height="9"><text x="1" y="10">"#));
}

/// Numbers of every size that a figure takes, often equal or near each other.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1e100),
        -10.0..10.0,
        1e-300..1e-290,
        1e15..1.000_1e15
    ]
}

fn interval() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![Just(None), number().prop_map(|v| Some(v.abs()))]
}

fn some_bars() -> impl Strategy<Value = Plot> {
    (1usize..30, 1..=MAX_SERIES, number()).prop_flat_map(|(groups, series, baseline)| {
        let bar =
            prop::option::of((number(), interval()).prop_map(|(value, ci95)| Bar { value, ci95 }));
        let one = (".{0,40}", prop::collection::vec(bar, groups));
        let one = one.prop_map(|(name, bars)| BarSeries { name, bars });
        let series = prop::collection::vec(one, series);
        let groups = prop::collection::vec(".{0,40}", groups);
        (groups, series).prop_map(move |(groups, series)| {
            let (category, value) = (String::new(), Axis::linear("v", None));
            Plot::Bars(BarChart {
                category,
                value,
                baseline,
                groups,
                series,
            })
        })
    })
}

fn some_points(joined: bool, log: bool) -> impl Strategy<Value = Plot> {
    let value = move || number().prop_map(move |v| if log { v.abs() + 1e-300 } else { v });
    let point = (value(), value(), interval()).prop_map(|(x, y, ci95)| FigurePoint { x, y, ci95 });
    let one = (".{0,40}", prop::collection::vec(point, 1..10));
    let one = one.prop_map(|(name, points)| PointSeries { name, points });
    let axis = move |title| Axis {
        log,
        ..Axis::linear(title, None)
    };
    prop::collection::vec(one, 1..=MAX_SERIES).prop_map(move |series| {
        let (x, y) = (axis("x"), axis("y"));
        let diagonal = true;
        if joined {
            Plot::Lines(LineChart { x, y, series })
        } else {
            Plot::Scatter(ScatterChart {
                x,
                y,
                series,
                diagonal,
            })
        }
    })
}

fn some_map() -> impl Strategy<Value = Plot> {
    (1usize..12, 1usize..12).prop_flat_map(|(rows, columns)| {
        let cells = prop::collection::vec(prop::option::of(number()), columns);
        let cells = prop::collection::vec(cells, rows);
        let names = |count| prop::collection::vec(".{0,40}", count);
        (names(rows), names(columns), cells).prop_map(|(rows, columns, cells)| {
            let (x, y, value) = (String::new(), String::new(), Axis::linear("v", None));
            Plot::HeatMap(HeatMap {
                x,
                y,
                value,
                columns,
                rows,
                cells,
            })
        })
    })
}

fn some_tornado() -> impl Strategy<Value = Plot> {
    let row = (".{0,80}", [number(), number()]);
    let row = row.prop_map(|(name, values)| TornadoRow { name, values });
    let rows = prop::collection::vec(row, 1..20);
    (rows, number(), prop::option::of(number())).prop_map(|(rows, baseline, threshold)| {
        Plot::Tornado(Tornado {
            value: Axis::linear("v", None),
            baseline,
            threshold,
            ends: [String::new(), String::new()],
            rows,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_checked_figure_is_drawn_inside_its_sheet(
        plot in prop_oneof![
            some_bars(), some_map(), some_tornado(), some_points(true, true), some_points(true, false),
            some_points(false, true), some_points(false, false),
        ],
        title in ".{0,60}",
    ) {
        let figure = Figure::new("any", &title, &title, 3, plot).unwrap();
        let svg = draw(&figure).unwrap();
        prop_assert!(stays_inside(&svg));
        prop_assert!(!svg.contains("=\"NaN") && !svg.contains("=\"inf"));
    }
}

/// A number among the attributes of the first tag of that name.
fn attribute(svg: &str, tag: &str, name: &str) -> Option<f64> {
    let inside = &svg[svg.find(tag)?..];
    let start = inside.find(&format!(" {name}=\""))? + name.len() + 3;
    let value = &inside[start..];
    value[..value.find('"')?].parse().ok()
}

#[test]
fn drawing_has_titles_units_legend_and_runs() {
    let svg = draw(&lines()).unwrap();
    for text in [
        "Decision time by cores",
        "Decision time (µs)",
        "Cores",
        "policy 3",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(svg.contains("Mean of 5 runs per value. Whiskers are 95 percent intervals."));
}

#[test]
fn noise_about_the_baseline_costs_no_tick() {
    let with_low = |low: f64| {
        let bars = BarChart {
            category: String::new(),
            value: Axis::linear("v", None),
            baseline: 0.0,
            groups: names(&["a", "b"]),
            series: vec![BarSeries {
                name: String::new(),
                bars: vec![bar(low, 0.001), bar(1.0, 0.001)],
            }],
        };
        draw(&Figure::new("a", "", "", 2, Plot::Bars(bars)).unwrap()).unwrap()
    };
    assert!(!with_low(-0.01).contains("-0.2"));
    assert!(with_low(-0.1).contains("-0.2"));
}

#[test]
fn names_cannot_break_the_document() {
    let svg = draw(&bars()).unwrap();
    assert!(svg.contains("Speedup by workload &amp; policy"));
    assert!(!svg.contains("workload & policy"));
}

#[test]
fn each_bar_and_cell_is_drawn_once() {
    let boxes = |figure: &Figure| draw(figure).unwrap().matches("<rect").count();
    // Ground, three marks in the legend, three times four bars.
    assert_eq!(boxes(&bars()), 1 + 3 + 12);
    // Ground, nine cells, 64 steps of the scale.
    assert_eq!(boxes(&heat(3)), 1 + 9 + 64);
}

#[test]
fn a_bar_of_no_height_has_a_label() {
    let figure = |values: &[f64]| {
        let bars = BarChart {
            category: "Program".to_owned(),
            value: Axis::linear("FPU usage", Some("share of cycles")),
            baseline: 0.0,
            groups: values.iter().map(|value| format!("at {value}")).collect(),
            series: vec![BarSeries {
                name: "one".to_owned(),
                bars: values
                    .iter()
                    .map(|value| Some(Bar::exact(*value)))
                    .collect(),
            }],
        };
        draw(&Figure::new("flat", "Flat", "", 1, Plot::Bars(bars)).unwrap()).unwrap()
    };
    let texts = |svg: &str| svg.matches("<text").count();
    let (high, flat) = (figure(&[0.5, 1.0, 0.7]), figure(&[0.0, 1.0, 0.000_2]));
    assert_eq!(texts(&flat), texts(&high) + 2);
    assert!(
        flat.contains(">\n0\n</text>") && flat.contains("2.000e-4") || flat.contains("0.000"),
        "{flat}"
    );
}

#[test]
fn every_colour_has_a_dark_one() {
    let svg = draw(&many_bars()).unwrap();
    let (style, drawing) = svg.split_once("</style>").unwrap();
    assert!(style.contains("prefers-color-scheme: dark"));
    for attribute in ["stroke=\"#222222\"", "fill=\"#222222\"", "fill=\"#555555\""] {
        assert!(drawing.contains(attribute), "{attribute} is not drawn");
        assert!(style.contains(attribute), "{attribute} stays as it is");
    }
    let first = drawing.split('<').nth(1).unwrap();
    assert!(
        first.starts_with("rect") && first.contains("#FFFFFF"),
        "the ground is {first}"
    );
}

fn spans() -> Figure {
    let span = |from: f64, to: f64, series: Option<usize>, share: f64| RowSpan {
        from,
        to,
        series,
        share,
        label: series.map_or_else(String::new, |cpu| format!("CPU {cpu}")),
    };
    let rows = vec![
        SpanRow {
            name: "worker 71".to_owned(),
            spans: vec![span(0.0, 4.0, Some(0), 1.0), span(4.0, 9.5, Some(1), 0.5)],
            marks: vec![4.0],
        },
        SpanRow {
            name: "reader 72".to_owned(),
            spans: vec![span(0.0, 2.0, Some(1), 0.02), span(2.0, 3.0, None, 0.0)],
            marks: Vec::new(),
        },
    ];
    let chart = SpanChart {
        time: Axis::linear("Time", Some("s")),
        end: 9.5,
        series: names(&["CPU 0", "CPU 1"]),
        rows,
        shaded: vec![[5.0, 7.0]],
    };
    Figure::new(
        "spans",
        "Who ran where",
        "Shaded: unmanaged.",
        1,
        Plot::Spans(chart),
    )
    .unwrap()
}

#[test]
fn spans_shades_and_marks_are_drawn_once() {
    let svg = draw(&spans()).unwrap();
    // Ground, two marks in the legend, a shade, three spans.
    assert_eq!(svg.matches("<rect").count(), 1 + 2 + 1 + 3);
    assert!(svg.contains("Time (s)") && svg.contains("worker 71"));
    // The legend and the two spans with room for their labels.
    assert_eq!(svg.matches("CPU 0\n").count(), 2);
    assert!(!svg.contains("One run per value"));
}
