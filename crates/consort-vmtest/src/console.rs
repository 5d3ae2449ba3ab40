//! A guest's serial console, and the marked sections in it.

use crate::error::VmError;

const BEGIN: &str = "@@begin ";
const END: &str = "@@end ";
const DONE: &str = "@@done";
const TAIL_LINES: usize = 30;

/// Output of one command of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSection {
    /// The name that the command was given.
    pub name: String,
    /// Standard output and error together, without the end of the last line.
    pub text: String,
    /// Exit status.
    pub status: i32,
}

/// Everything that a guest wrote until it was switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestOutput {
    /// The serial console, with line ends as on Unix.
    pub console: String,
    /// The complete sections, in the order in which they ended.
    pub sections: Vec<OutputSection>,
}

impl GuestOutput {
    /// Reads the sections of a console. They may lie within each other; the lines of an inner one
    /// belong to the outer one too.
    #[must_use]
    pub fn parse(console: &str) -> Self {
        let console = console.replace('\r', "");
        let mut open: Vec<OutputSection> = Vec::new();
        let mut sections = Vec::new();
        for line in console.lines() {
            if let Some(name) = line.strip_prefix(BEGIN) {
                open.push(OutputSection {
                    name: name.to_owned(),
                    text: String::new(),
                    status: 0,
                });
            } else if let Some((name, status)) = parse_end(line) {
                sections.extend(close(&mut open, name, status));
            } else {
                for section in &mut open {
                    section.text.push_str(line);
                    section.text.push('\n');
                }
            }
        }
        Self { console, sections }
    }

    /// The section of that name.
    ///
    /// # Errors
    /// [`VmError::NoSection`] if it is not there or never ended.
    pub fn section(&self, name: &str) -> Result<&OutputSection, VmError> {
        let mut sections = self.sections.iter();
        sections
            .find(|section| section.name == name)
            .ok_or_else(|| VmError::NoSection(name.to_owned()))
    }

    /// Output of the command of that name.
    ///
    /// # Errors
    /// There is no such section, or the command failed.
    pub fn output(&self, name: &str) -> Result<&str, VmError> {
        let section = self.section(name)?;
        if section.status == 0 {
            return Ok(&section.text);
        }
        Err(VmError::Failed {
            name: name.to_owned(),
            status: section.status,
            text: section.text.clone(),
        })
    }

    pub(crate) fn is_done(&self) -> bool {
        self.console.lines().any(|line| line == DONE)
    }

    pub(crate) fn tail(&self) -> String {
        let lines: Vec<&str> = self.console.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

fn parse_end(line: &str) -> Option<(&str, i32)> {
    let (name, status) = line.strip_prefix(END)?.rsplit_once(' ')?;
    Some((name, status.parse().ok()?))
}

fn close(open: &mut Vec<OutputSection>, name: &str, status: i32) -> Option<OutputSection> {
    let index = open.iter().rposition(|section| section.name == name)?;
    let mut section = open.remove(index);
    section.status = status;
    section.text.truncate(section.text.trim_end().len());
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sections_carry_text_and_status() {
        let outcome = GuestOutput::parse(
            "boot noise\r\n@@begin a\r\none\r\n two\r\n\r\n@@end a 0\r\n@@begin b\r\n@@end b 3\r\n@@done\r\n",
        );
        assert_eq!(outcome.output("a").unwrap(), "one\n two");
        assert!(matches!(
            outcome.output("b"),
            Err(VmError::Failed { status: 3, .. })
        ));
        assert!(matches!(outcome.output("c"), Err(VmError::NoSection(_))));
        assert!(outcome.is_done());
    }

    #[test]
    fn inner_sections_belong_to_the_outer_one_too() {
        let outcome =
            GuestOutput::parse("@@begin out\n@@begin in\nx\n@@end in 0\ny\n@@end out 0\n");
        assert_eq!(outcome.output("in").unwrap(), "x");
        assert_eq!(outcome.output("out").unwrap(), "x\ny");
    }

    #[test]
    fn unended_section_is_not_there() {
        let outcome = GuestOutput::parse("@@begin a\none\nKernel panic");
        assert!(outcome.section("a").is_err());
        assert!(!outcome.is_done());
        assert!(outcome.tail().ends_with("Kernel panic"));
    }

    proptest! {
        #[test]
        fn any_console_can_be_read(console in "(@@begin a\n|@@end a 0\n|@@end\n|x y\n|\\PC{0,20}\n){0,20}") {
            let outcome = GuestOutput::parse(&console);
            prop_assert!(outcome.sections.len() <= console.matches("@@end").count());
        }
    }
}
