//! Merges the bodies of a step that both sides squashed with other steps.
//!
//! `squash` puts a new heading above the text of the first step, and the texts of the other steps below it. Squashed
//! again, a step has several headings above its first text.

use crate::text::markdown;

/// The body of a squashed step, as texts between its headings of level 1.
struct Squashed<'a> {
    /// The first heading.
    title: &'a str,
    /// The headings of earlier squashes, newest first.
    older: Vec<&'a str>,
    /// The texts of the other steps.
    others: Vec<&'a str>,
}

/// If both sides squashed different steps into this one, returns both texts with all parts in the same order;
/// only the titles can differ.
pub(super) fn alike([base, ours, theirs]: &[String; 3]) -> Option<[String; 2]> {
    let base = base.trim();
    let (own, their) = (split(ours, base)?, split(theirs, base)?);
    let eol = if ours.contains("\r\n") { "\r\n" } else { "\n" };
    // OURS keeps its bytes; what only THEIRS has is added behind its own.
    let missing = |own: &[&str], their: &[&str]| -> String {
        let new = their.iter().filter(|it| !own.contains(it));
        new.map(|it| format!("{eol}{eol}{it}")).collect()
    };
    let first = ours.find(base)?;
    let (above, end) = (ours[..first].trim_end().len(), ours.trim_end().len());
    let title = ours.len() - ours.trim_start().len() + own.title.len();
    let rest = [
        &ours[title..above],
        &missing(&own.older, &their.older),
        &ours[above..end],
        &missing(&own.others, &their.others),
        &ours[end..],
    ]
    .concat();
    let lead = &theirs[..theirs.len() - theirs.trim_start().len()];
    Some([format!("{}{rest}", &ours[..title]), format!("{lead}{}{rest}", their.title)])
}

fn split<'a>(side: &'a str, base: &str) -> Option<Squashed<'a>> {
    let at = side.find(base).filter(|_| !base.is_empty())?;
    let headings = markdown::sections(side).headings.into_iter().filter(|it| it.level == 1);
    let starts: Vec<_> = headings.map(|it| it.span.start).collect();
    let section = |from: usize| {
        let to = starts.iter().find(|it| **it > from).copied().unwrap_or(side.len());
        side[from..to].trim()
    };
    let mut above: Vec<_> = starts.iter().filter(|it| **it < at).map(|it| section(*it)).collect();
    let behind = at + base.len();
    let others: Vec<_> = starts.iter().filter(|it| **it >= behind).map(|it| section(*it)).collect();
    let is_only_headings = side[..at].lines().all(|it| it.trim().is_empty() || it.starts_with("# "));
    let is_squashed = side[behind..].trim_start().starts_with("# ");
    if above.is_empty() || others.is_empty() || !is_only_headings || !is_squashed {
        return None;
    }
    let title = above.remove(0);
    Some(Squashed { title, older: above, others })
}
