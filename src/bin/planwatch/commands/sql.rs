//! `sql`: prints the result of a query as a table.

use planwatch::index::Table as Answer;
use planwatch::ops::search;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::args::setup::Sql;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::{BOLD, DIM, count};
use crate::table::{cut, paint};

pub(crate) fn run(session: &Session, args: &Sql) -> Result<u8, Failure> {
    let answer = {
        let context = session.context()?;
        session.with_spinner(|| search::sql(&context, &args.query))?
    };
    session.answer("table", || search::table_to_json(&answer), |width| screen(&answer, width))
}

/// All columns, each as wide as its widest value. If the terminal is too narrow, the widest columns are cut, except
/// columns that identify rows.
fn screen(answer: &Answer, width: Option<usize>) -> String {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => escaped(text).into_owned(),
        other => other.to_string(),
    };
    let heads: Vec<_> = answer.columns.iter().map(|it| escaped(it).into_owned()).collect();
    let rows: Vec<Vec<_>> = answer.rows.iter().map(|row| row.iter().map(text).collect()).collect();
    let mut widths: Vec<_> = heads.iter().map(|it| it.width()).collect();
    for row in &rows {
        row.iter().zip(&mut widths).for_each(|(it, most)| *most = (*most).max(it.width()));
    }
    let are_names: Vec<_> = answer.columns.iter().map(|it| is_name(it)).collect();
    fit(&mut widths, &are_names, width);
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(it, width)| {
            let it = cut(it, *width);
            let pad = width.saturating_sub(it.width());
            it + &" ".repeat(pad)
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head = paint(BOLD, &line(&heads));
    let rows: String = rows.iter().map(|it| format!("{}\n", line(it))).collect();
    let n = if width.is_some() {
        format!("{}\n", paint(DIM, &count(answer.rows.len(), "row")))
    } else {
        String::new()
    };
    format!("{head}\n{rows}{n}")
}

/// Whether a column identifies rows and is therefore never cut.
fn is_name(column: &str) -> bool {
    matches!(column, "id" | "plan" | "step" | "program" | "number" | "path" | "claim_id")
        || column.ends_with("_id")
}

fn fit(widths: &mut [usize], are_names: &[bool], width: Option<usize>) {
    let Some(width) = width else { return };
    let gaps = 2 * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        let texts = widths.iter_mut().zip(are_names).filter(|(_, is_name)| !**is_name).map(|(it, _)| it);
        let Some(widest) = texts.max().filter(|it| **it > 8) else { return };
        *widest -= 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(columns: &[&str], rows: Vec<Vec<Value>>) -> Answer {
        Answer { columns: columns.iter().map(|it| (*it).to_owned()).collect(), rows }
    }

    #[test]
    fn a_table_of_values_fits_the_terminal() {
        let long = "x".repeat(200);
        let answer =
            answer(&["id", "text"], vec![vec![json!("a"), json!(long)], vec![Value::Null, json!("é\n")]]);
        let plain = |width| anstream::adapter::strip_str(&screen(&answer, width)).to_string();
        assert!(plain(Some(40)).lines().all(|it| it.width() <= 40));
        let ids = ["one", "two"].map(|it| format!("{}-{it}", "a-long-name".repeat(5)));
        let rows = ids.iter().map(|it| vec![json!(it), json!(long)]).collect();
        let drawn = screen(&self::answer(&["id", "text"], rows), Some(40));
        assert!(ids.iter().all(|it| drawn.contains(it)), "{drawn}");
        assert!(plain(None).contains(&"x".repeat(200)) && plain(None).contains("é\\n"));
    }
}
