//! The templates that come with planwatch. Each has a directory in `templates/`, whose files are included unchanged.

macro_rules! templates {
    ($($name:literal: $($file:literal)*;)*) => {
        &[$(($name, &[$(($file, include_str!(concat!("../../../templates/", $name, "/", $file)))),*])),*]
    };
}

type Files = &'static [(&'static str, &'static str)];

/// The name and the files of each template; `plan.md` is the first file.
pub(super) const ALL: &[(&str, Files)] = templates! {
    "feature": "plan.md" "step-1.md" "step-2.md" "step-3.md" "step-4.md" "step-5.md" "step-6.md" "step-7.md";
    "bugfix": "plan.md" "step-1.md" "step-2.md" "step-3.md" "step-4.md" "step-5.md";
    "refactor": "plan.md" "step-1.md" "step-2.md" "step-3.md" "step-4.md" "step-5.md";
    "documentation": "plan.md" "step-1.md" "step-2.md" "step-3.md" "step-4.md" "step-5.md" "step-6.md";
    "analysis": "plan.md" "step-1.md" "step-2.md" "step-3.md" "step-4.md" "step-5.md";
    "investigation": "plan.md" "step-1.md" "step-2.md" "step-3.md" "step-4.md" "step-5.md";
};
