//! `consort top`: what a daemon does, as a terminal view that follows it.

mod view;

use super::daemon::{DaemonStatus, ThreadExplanation};
use super::daemon_requests::{connect_to_daemon, refusal_as_input};
use crate::failure::bad_input;
use crate::options::parse_interval;
use crate::output;
use anyhow::{Context, Result};
use clap::Args;
use consort_linux::control::{
    AttachTargets, DaemonConnection, DaemonConnectionError, DaemonRequest,
};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use view::{Panel, Prompt, TopView};

#[derive(Clone, Debug, Args)]
pub(crate) struct TopArgs {
    /// Socket of the daemon, instead of this user's or the host's
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Time between two updates
    #[arg(short, long, value_name = "TIME", alias = "every", value_parser = parse_interval, default_value = "1s")]
    pub(crate) interval: Duration,
    /// Print one view and exit, as when stdout is no terminal
    #[arg(long)]
    pub(crate) once: bool,
}

pub(crate) fn execute(args: &TopArgs) -> Result<ExitCode> {
    let mut call = connect_to_daemon(args.socket.as_deref())?;
    let status = request_status(&mut call)?;
    if args.once || !std::io::stdout().is_terminal() {
        // One view as text: for pipes, and for scripts.
        let width = output::page::width().unwrap_or(100).clamp(40, 400) as u16;
        let chip_rows = view::chip_row_count(&status, width);
        let rows = 13 + chip_rows + status.threads.len().min(200) as u16;
        output::print_text(&view::as_text(&status, width, rows))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut terminal = ratatui::try_init().context("the terminal cannot be drawn on")?;
    let result = TopSession::new(call, status, args.interval).follow(&mut terminal);
    // Before an error is printed, so that it does not vanish with the drawn screen.
    ratatui::restore();
    result.map(|()| ExitCode::SUCCESS)
}

fn request_status(call: &mut DaemonConnection) -> Result<DaemonStatus> {
    let reported = call
        .send_request(&DaemonRequest::Status)
        .map_err(refusal_as_input)?;
    serde_json::from_value(reported).context("the daemon's answer")
}

/// The view while it is followed.
struct TopSession {
    call: DaemonConnection,
    view: TopView,
    every: Duration,
    next: Instant,
}

impl TopSession {
    fn new(call: DaemonConnection, status: DaemonStatus, every: Duration) -> Self {
        Self {
            call,
            view: TopView::new(status),
            every,
            next: Instant::now() + every,
        }
    }

    fn follow(&mut self, terminal: &mut DefaultTerminal) -> Result<()> {
        loop {
            terminal.draw(|frame| self.view.draw(frame))?;
            let left = self.next.saturating_duration_since(Instant::now());
            if event::poll(left)? {
                if let Event::Key(key) = event::read()?
                    && key.kind != KeyEventKind::Release
                    && self.handle_key(key)?
                {
                    return Ok(());
                }
            } else {
                self.next = Instant::now() + self.every;
                if !self.view.frozen {
                    self.view.renew(request_status(&mut self.call)?);
                }
            }
        }
    }

    /// Carries out a key's action; returns true if it ends the view.
    fn handle_key(&mut self, key: KeyEvent) -> Result<bool> {
        if let Some(prompt) = self.view.typing.take() {
            self.edit_prompt(prompt, key.code)?;
            return Ok(false);
        }
        let interrupted =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') => return Ok(true),
            _ if interrupted => return Ok(true),
            KeyCode::Esc => {
                self.view.panel = Panel::Threads;
                self.view.set_filter(String::new());
            }
            KeyCode::Char('?' | 'h') => self.view.panel = Panel::Help,
            KeyCode::Char(' ') => self.view.frozen = !self.view.frozen,
            KeyCode::Down | KeyCode::Char('j') => self.view.select(1),
            KeyCode::Up | KeyCode::Char('k') => self.view.select(-1),
            KeyCode::PageDown => self.view.select(10),
            KeyCode::PageUp => self.view.select(-10),
            KeyCode::Char('s') => self.view.sort_by_next(),
            KeyCode::Char('t') => self.view.toggle_programs(),
            KeyCode::Char('/') => self.view.typing = Some(Prompt::Filter(String::new())),
            KeyCode::Char('p') => self.view.typing = Some(Prompt::Policy(String::new())),
            KeyCode::Char('d') => {
                if let Some((pid, _)) = self.view.selected_key() {
                    self.send_request(&DaemonRequest::Detach(AttachTargets {
                        pids: vec![pid],
                        ..AttachTargets::default()
                    }))?;
                }
            }
            KeyCode::Enter => self.explain()?,
            _ => {}
        }
        Ok(false)
    }

    /// Edits the line that is being typed; a filter takes effect with each letter.
    fn edit_prompt(&mut self, mut prompt: Prompt, key: KeyCode) -> Result<()> {
        let (Prompt::Policy(typed) | Prompt::Filter(typed)) = &mut prompt;
        match key {
            KeyCode::Enter => {
                return match prompt {
                    Prompt::Policy(policy) => self.send_request(&DaemonRequest::Policy { policy }),
                    Prompt::Filter(_) => Ok(()),
                };
            }
            KeyCode::Esc => typed.clear(),
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Char(letter) if typed.len() < 100 => typed.push(letter),
            _ => {}
        }
        if let Prompt::Filter(filter) = &prompt {
            self.view.set_filter(filter.clone());
        }
        if key != KeyCode::Esc {
            self.view.typing = Some(prompt);
        }
        Ok(())
    }

    fn explain(&mut self) -> Result<()> {
        let Some((pid, tid)) = self.view.selected_key() else {
            return Ok(());
        };
        // A process stands for all its busy threads.
        let tid = tid.unwrap_or(pid);
        match self.call.send_request(&DaemonRequest::Explain { tid }) {
            Ok(reported) => {
                let why: ThreadExplanation = serde_json::from_value(reported)?;
                self.view.panel = Panel::Why(super::daemon_requests::explanation(&why));
            }
            Err(DaemonConnectionError::Refused(why)) => self.view.message = why,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Requests a change; a refusal is shown, and the view continues.
    fn send_request(&mut self, request: &DaemonRequest) -> Result<()> {
        match self.call.send_request(request) {
            Ok(_) => self.view.message = "done".to_owned(),
            Err(DaemonConnectionError::Refused(why)) => self.view.message = why,
            Err(DaemonConnectionError::Language(error)) => return Err(bad_input(error)),
            Err(error) => return Err(error.into()),
        }
        self.view.renew(request_status(&mut self.call)?);
        Ok(())
    }
}
