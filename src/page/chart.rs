//! Bar charts as SVG, with a table of their numbers.

use maud::{Markup, html};

use super::text;

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub label: String,
    pub value: f64,
    /// The value as people read it, with its unit.
    pub shown: String,
    /// A class for its colour, such as [`super::look::Look::class`]; may be empty.
    pub class: &'static str,
    /// The address that the label links to.
    pub href: Option<String>,
}

impl Bar {
    pub fn new(label: impl Into<String>, value: f64, shown: impl Into<String>) -> Self {
        Self { label: label.into(), value, shown: shown.into(), class: "", href: None }
    }

    pub fn count(label: impl Into<String>, value: usize) -> Self {
        let shown = value.to_string();
        #[expect(clippy::cast_precision_loss, reason = "counts are small, and it is a length on a screen")]
        Self::new(label, value as f64, shown)
    }
}

/// Horizontal bars: a table with one row per bar, so that the numbers are next to the bars.
pub fn bars(title: &str, columns: [&str; 2], of: &[Bar]) -> Markup {
    let most = most(of);
    html! {
        table.bars {
            caption { (title) }
            thead { tr { th scope="col" { (columns[0]) } th.bar-head aria-hidden="true" {} th.number scope="col" { (columns[1]) } } }
            tbody {
                @for bar in of {
                    tr {
                        th scope="row" { (label(bar)) }
                        td.bar aria-hidden="true" {
                            svg viewBox="0 0 200 12" width="200" height="12" preserveAspectRatio="none" {
                                rect class={ "bar " (bar.class) } x="0" y="1" height="10" rx="2" width=(length(bar.value, most, 200.0)) {}
                            }
                        }
                        td.number { (bar.shown) }
                    }
                }
            }
        }
    }
}

/// The width of a label, in pixels.
const LABEL: f64 = 70.0;

/// Vertical bars, for values over time: a drawing, and below it the table of the numbers.
pub fn columns(title: &str, columns: [&str; 2], of: &[Bar]) -> Markup {
    let most = most(of);
    let count = u32::try_from(of.len()).unwrap_or(u32::MAX).max(1);
    let step = (720.0 / f64::from(count)).clamp(6.0, 60.0);
    let width = step * f64::from(count);
    let every = (LABEL / step).ceil();
    let last = ((f64::from(count) - 1.0) / every).floor() * every;
    let width = width.max(last * step + step * 0.12 + LABEL);
    html! {
        figure.chart {
            figcaption { (title) }
            div.scroll tabindex="0" role="group" aria-label=(title) {
                svg viewBox={ "0 0 " (decimal(width)) " 150" } width=(decimal(width)) height="150" role="img" aria-label=(title) {
                    @for (nth, bar) in (0_u32..).zip(of) {
                        @let (x, height) = (f64::from(nth) * step, length(bar.value, most, 110.0));
                        g {
                            title { (text::one_line(&bar.label)) ": " (bar.shown) }
                            rect class={ "bar " (bar.class) } x=(decimal(x + step * 0.12)) y=(decimal(128.0 - height))
                                width=(decimal(step * 0.76)) height=(height) rx="2" {}
                            @if bar.value > 0.0 && step >= 24.0 {
                                text.value x=(decimal(x + step / 2.0)) y=(decimal(123.0 - height)) text-anchor="middle" { (bar.shown) }
                            }
                            @if f64::from(nth) % every == 0.0 {
                                text.tick x=(decimal(x + step * 0.12)) y="144" { (text::clip(&bar.label, 10)) }
                            }
                        }
                    }
                }
            }
            details { summary { "Numbers" } (table(columns, of)) }
        }
    }
}

/// The numbers alone.
pub fn table(columns: [&str; 2], of: &[Bar]) -> Markup {
    html! {
        table.numbers {
            thead { tr { th scope="col" { (columns[0]) } th.number scope="col" { (columns[1]) } } }
            tbody {
                @for bar in of { tr { th scope="row" { (label(bar)) } td.number { (bar.shown) } } }
            }
        }
    }
}

fn label(bar: &Bar) -> Markup {
    html! {
        @match &bar.href {
            Some(address) => { a href=(address) { (text::isolated(&bar.label)) } }
            None => (text::isolated(&bar.label)),
        }
    }
}

fn most(of: &[Bar]) -> f64 {
    of.iter().map(|it| it.value).filter(|it| it.is_finite()).fold(0.0, f64::max)
}

/// The length of a bar; a value above zero is always visible.
fn length(value: f64, most: f64, whole: f64) -> f64 {
    if value <= 0.0 || most <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    decimal((value / most * whole).max(2.0))
}

fn decimal(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_label_is_inside_the_drawing() {
        for n in [1, 2, 13, 27, 52, 100] {
            let bars: Vec<_> = (0..n).map(|_| Bar::count("2026-11-23", 1)).collect();
            let html = columns("T", ["A", "B"], &bars).into_string();
            let width: f64 =
                html.split("viewBox=\"0 0 ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            let last = html.rsplit("class=\"tick\" x=\"").next().unwrap();
            let x: f64 = last.split('"').next().unwrap().parse().unwrap();
            assert!(x + 65.0 <= width, "{n}: {x} of {width}");
        }
    }

    #[test]
    fn a_bar_has_its_share_and_its_number_and_is_escaped() {
        let bars = [
            Bar::count("<b>", 4),
            Bar::count("two", 2),
            Bar::count("none", 0),
            Bar::new("nan", f64::NAN, "?"),
        ];
        for html in [super::bars("T", ["A", "B"], &bars), columns("T", ["A", "B"], &bars)] {
            let html = html.into_string();
            assert!(
                html.contains("<bdi>&lt;b&gt;</bdi>") && !html.contains("<b>") && !html.contains("NaN"),
                "{html}"
            );
        }
        assert_eq!([4.0, 2.0, 0.0, 0.001].map(|it| length(it, 4.0, 200.0)), [200.0, 100.0, 0.0, 2.0]);
        assert_eq!(length(0.0, 0.0, 200.0), 0.0);
    }
}
